/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * Interposition, for the three libraries that are preloaded into a program (agent, pin, plan). A hook is our
 * function under the name of a C library function. It forwards to the next definition of that name: the C library's, or that
 * of another preloaded library or allocator.
 *
 * The list below is the only one. A library chooses its groups before it includes this header:
 *
 *   #define FT_INTERPOSED(X) FT_MEMORY_FUNCTIONS(X) FT_SANDBOX_FUNCTIONS(X)
 *
 * and defines `ft_real` and `ft_resolve` in one source.
 */
#ifndef FIRSTTOUCH_INTERPOSE_H
#define FIRSTTOUCH_INTERPOSE_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/types.h>

#define FT_EXPORT __attribute__((visibility("default")))
#define FT_NOINLINE __attribute__((noinline))
#define ft_likely(x) __builtin_expect(!!(x), 1)
#define ft_unlikely(x) __builtin_expect(!!(x), 0)

#ifndef MREMAP_DONTUNMAP
#define MREMAP_DONTUNMAP 4
#endif

/* X(name, result, parameters) for each function. */
#define FT_MEMORY_FUNCTIONS(X)                              \
    X(malloc, void *, (size_t))                             \
    X(calloc, void *, (size_t, size_t))                     \
    X(realloc, void *, (void *, size_t))                    \
    X(free, void, (void *))                                 \
    X(posix_memalign, int, (void **, size_t, size_t))       \
    X(aligned_alloc, void *, (size_t, size_t))              \
    X(memalign, void *, (size_t, size_t))                   \
    X(valloc, void *, (size_t))                             \
    X(pvalloc, void *, (size_t))                            \
    X(mmap, void *, (void *, size_t, int, int, int, off_t)) \
    X(munmap, int, (void *, size_t))                        \
    X(mremap, void *, (void *, size_t, size_t, int, ...))   \
    X(madvise, int, (void *, size_t, int))

/* System V shared memory. */
#define FT_SEGMENT_FUNCTIONS(X)                \
    X(shmat, void *, (int, const void *, int)) \
    X(shmdt, int, (const void *))

/* Functions that touch all pages of a range. mlock2 is of glibc 2.27. */
#define FT_LOCK_FUNCTIONS(X)                             \
    X(mlock2, int, (const void *, size_t, unsigned int)) \
    X(mlock, int, (const void *, size_t))                \
    X(mlockall, int, (int))                              \
    X(munlockall, int, (void))

/* Functions that start threads and programs. */
#define FT_START_FUNCTIONS(X)                                                                               \
    X(pthread_create, int, (pthread_t *, const pthread_attr_t *, void *(*)(void *), void *))                \
    X(execve, int, (const char *, char *const[], char *const[]))                                            \
    X(execvpe, int, (const char *, char *const[], char *const[]))                                           \
    X(execveat, int, (int, const char *, char *const[], char *const[], int))                                \
    X(fexecve, int, (int, char *const[], char *const[]))                                                    \
    X(posix_spawn, int,                                                                                     \
      (pid_t *, const char *, const posix_spawn_file_actions_t *, const posix_spawnattr_t *, char *const[], \
       char *const[]))                                                                                      \
    X(posix_spawnp, int,                                                                                    \
      (pid_t *, const char *, const posix_spawn_file_actions_t *, const posix_spawnattr_t *, char *const[], \
       char *const[]))                                                                                      \
    X(system, int, (const char *))                                                                          \
    X(popen, FILE *, (const char *, const char *))

/* Functions by which a process can restrict its own system calls (seccomp). */
#define FT_SANDBOX_FUNCTIONS(X)                                  \
    X(syscall, long, (long, long, long, long, long, long, long)) \
    X(prctl, int, (int, unsigned long, unsigned long, unsigned long, unsigned long))

/* Functions that install handlers of signals. `signal` is __sysv_signal in programs that ask for strict ISO C. */
typedef void ft_signal_handler(int);
#define FT_SIGNAL_LIKE_FUNCTIONS(X) X(signal) X(__sysv_signal) X(sysv_signal) X(bsd_signal) X(ssignal) X(sigset)
#define FT_SIGNAL_FUNCTIONS(X)                                        \
    X(__sysv_signal, ft_signal_handler *, (int, ft_signal_handler *)) \
    X(sysv_signal, ft_signal_handler *, (int, ft_signal_handler *))   \
    X(bsd_signal, ft_signal_handler *, (int, ft_signal_handler *))    \
    X(ssignal, ft_signal_handler *, (int, ft_signal_handler *))       \
    X(sigset, ft_signal_handler *, (int, ft_signal_handler *))        \
    X(signal, ft_signal_handler *, (int, ft_signal_handler *))        \
    X(sigaction, int, (int, const struct sigaction *, struct sigaction *))

#pragma GCC visibility push(hidden)

/* The next definition of each function. A member is NULL until ft_resolve has run, and stays NULL if there is none
 * (execveat before glibc 2.34). A library that interposes malloc, calloc, realloc and free initialises those members with
 * functions that resolve, so that the hot hooks need no test. */
struct ft_real {
#define FT_MEMBER(name, result, parameters) result(*name) parameters;
    FT_INTERPOSED(FT_MEMBER)
#undef FT_MEMBER
};
extern struct ft_real ft_real;

/* Fills ft_real. Each library defines it, around ft_find_real. Any thread may call it at any time: it is idempotent and
 * keeps errno. dlsym may allocate (glibc before 2.34 does), so a library that interposes malloc must serve these calls
 * without ft_real. dlsym takes the loader's lock: the agent and the pin library call this in their constructors, because
 * their hooks also run in forked children. */
void ft_resolve(void);

/* For any member: resolves if the call comes before the constructor. */
#define FT_REAL(function) (ft_likely(ft_real.function != NULL) ? ft_real.function : (ft_resolve(), ft_real.function))

#pragma GCC visibility pop

static inline void ft_find_real(void) {
    static const struct {
        const char *name;
        size_t offset;
    } functions[] = {
#define FT_ENTRY(name, result, parameters) {#name, offsetof(struct ft_real, name)},
        FT_INTERPOSED(FT_ENTRY)
#undef FT_ENTRY
    };
    /* A search that succeeds clears the error of one that failed, which the program could ask for (dlerror): each group
     * ends with a function that every C library has. */
    int saved_errno = errno;
    for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++) {
        void *next = dlsym(RTLD_NEXT, functions[i].name);
        if (next != NULL) {
            __atomic_store_n((void **)((char *)&ft_real + functions[i].offset), next, __ATOMIC_RELEASE);
        }
    }
    errno = saved_errno;
}

/* Where the program called an interposed function. */
struct ft_caller {
    uintptr_t ip;            /* the return address */
    uintptr_t stack_pointer; /* after the return */
    uintptr_t frame_pointer;
};

/* Pre-condition: called in the interposed function itself, or in a function that it calls as its last act (at -O2 that is
 * a jump, so the function finds the stack as the interposed one did). */
static inline __attribute__((always_inline)) struct ft_caller ft_caller(void) {
    const uintptr_t *frame = __builtin_frame_address(0);
#if defined(__x86_64__) /* saved frame pointer, return address */
    return (struct ft_caller){frame[1], (uintptr_t)(frame + 2), frame[0]};
#else
    return (struct ft_caller){(uintptr_t)__builtin_extract_return_addr(__builtin_return_address(0)), (uintptr_t)frame,
                              0};
#endif
}

/* prctl is declared with variable arguments. This is the same symbol with five: an argument that the caller did not give is
 * whatever lies in its register, here as in the C library. */
FT_EXPORT int ft_hooked_prctl(int option, unsigned long a, unsigned long b, unsigned long c,
                              unsigned long d) __asm__("prctl");

#endif
