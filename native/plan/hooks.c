/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * The interposed functions. Each forwards its call; what is large enough is then looked at. A small allocation costs one
 * comparison and one jump.
 */
#include "plan.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

/* The C library's own allocator, which serves what dlsym allocates in glibc before 2.34. */
extern void *__libc_malloc(size_t) __attribute__((weak));
extern void *__libc_calloc(size_t, size_t) __attribute__((weak));
extern void *__libc_realloc(void *, size_t) __attribute__((weak));

static _Thread_local bool resolving __attribute__((tls_model("initial-exec")));
static _Thread_local bool busy __attribute__((tls_model("initial-exec")));

static void *first_malloc(size_t size);
static void *first_calloc(size_t count, size_t size);
static void *first_realloc(void *block, size_t size);

static struct {
    void *(*malloc)(size_t);
    void *(*calloc)(size_t, size_t);
    void *(*realloc)(void *, size_t);
    int (*posix_memalign)(void **, size_t, size_t);
    void *(*aligned_alloc)(size_t, size_t);
    void *(*memalign)(size_t, size_t);
    void *(*valloc)(size_t);
    void *(*pvalloc)(size_t);
    void *(*mmap)(void *, size_t, int, int, int, off_t);
    void *(*mremap)(void *, size_t, size_t, int, ...);
    int (*munmap)(void *, size_t);
    int (*prctl)(int, unsigned long, unsigned long, unsigned long, unsigned long);
} real = {.malloc = first_malloc, .calloc = first_calloc, .realloc = first_realloc};

/* Idempotent, so that racing threads do no harm. */
static void resolve(void) {
    int saved_errno = errno;
    resolving = true;
#define FIND(name)                                                         \
    do {                                                                   \
        void *next = dlsym(RTLD_NEXT, #name);                              \
        if (next != NULL) {                                                \
            __atomic_store_n((void **)&real.name, next, __ATOMIC_RELEASE); \
        }                                                                  \
    } while (0)
    FIND(malloc);
    FIND(calloc);
    FIND(realloc);
    FIND(posix_memalign);
    FIND(aligned_alloc);
    FIND(memalign);
    FIND(valloc);
    FIND(pvalloc);
    FIND(mmap);
    FIND(mremap);
    FIND(munmap);
    FIND(prctl);
#undef FIND
    resolving = false;
    errno = saved_errno;
}

static void *first_malloc(size_t size) {
    if (resolving) {
        return __libc_malloc != NULL ? __libc_malloc(size) : NULL;
    }
    resolve();
    return real.malloc != first_malloc ? real.malloc(size) : NULL;
}

static void *first_calloc(size_t count, size_t size) {
    if (resolving) {
        return __libc_calloc != NULL ? __libc_calloc(count, size) : NULL;
    }
    resolve();
    return real.calloc != first_calloc ? real.calloc(count, size) : NULL;
}

static void *first_realloc(void *block, size_t size) {
    if (resolving) {
        return __libc_realloc != NULL ? __libc_realloc(block, size) : NULL;
    }
    resolve();
    return real.realloc != first_realloc ? real.realloc(block, size) : NULL;
}

#define REAL(name) (ft_likely(real.name != NULL) ? real.name : (resolve(), real.name))
#define CALLER ((uintptr_t)__builtin_extract_return_addr(__builtin_return_address(0)))

/* A signal handler that allocates while this thread is in here is left alone. */
static FT_NOINLINE void placed_as(void *block, size_t size, uintptr_t caller_ip, bool is_mapping) {
    if (block == NULL || busy) {
        return;
    }
    int saved_errno = errno;
    busy = true;
    uint64_t turn = 0;
    struct ft_plan_entry *entry = ft_match(caller_ip, &turn);
    if (entry != NULL) {
        (is_mapping ? ft_place_mapping : ft_place)(entry, (uintptr_t)block, size, turn);
    }
    ft_place_statics(); /* of a library that was loaded since */
    busy = false;
    errno = saved_errno;
}

static void placed(void *block, size_t size, uintptr_t caller_ip) {
    placed_as(block, size, caller_ip, false);
}

static inline bool is_small(size_t size) {
    return ft_likely(size < __atomic_load_n(&ft_gate, __ATOMIC_RELAXED));
}

static FT_NOINLINE void *large_malloc(size_t size, uintptr_t caller_ip) {
    void *block = real.malloc(size);
    placed(block, size, caller_ip);
    return block;
}

FT_EXPORT void *malloc(size_t size) {
    return is_small(size) ? real.malloc(size) : large_malloc(size, CALLER);
}

static FT_NOINLINE void *large_calloc(size_t count, size_t size, uintptr_t caller_ip) {
    void *block = real.calloc(count, size);
    placed(block, count * size, caller_ip);
    return block;
}

FT_EXPORT void *calloc(size_t count, size_t size) {
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes) || is_small(bytes)) {
        return real.calloc(count, size);
    }
    return large_calloc(count, size, CALLER);
}

static FT_NOINLINE void *large_realloc(void *block, size_t size, uintptr_t caller_ip) {
    void *moved = real.realloc(block, size);
    placed(moved, size, caller_ip);
    return moved;
}

FT_EXPORT void *realloc(void *block, size_t size) {
    return is_small(size) ? real.realloc(block, size) : large_realloc(block, size, CALLER);
}

/* Not forwarded to the real one: glibc's calls `realloc` through the symbol, which would be taken for another call. */
FT_EXPORT void *reallocarray(void *block, size_t count, size_t size) {
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes)) {
        errno = ENOMEM;
        return NULL;
    }
    return is_small(bytes) ? real.realloc(block, bytes) : large_realloc(block, bytes, CALLER);
}

FT_EXPORT int posix_memalign(void **result, size_t alignment, size_t size) {
    int error = REAL(posix_memalign)(result, alignment, size);
    if (error == 0 && !is_small(size)) {
        placed(*result, size, CALLER);
    }
    return error;
}

FT_EXPORT void *aligned_alloc(size_t alignment, size_t size) {
    void *block = REAL(aligned_alloc)(alignment, size);
    if (!is_small(size)) {
        placed(block, size, CALLER);
    }
    return block;
}

FT_EXPORT void *memalign(size_t alignment, size_t size);
FT_EXPORT void *memalign(size_t alignment, size_t size) {
    void *block = REAL(memalign)(alignment, size);
    if (!is_small(size)) {
        placed(block, size, CALLER);
    }
    return block;
}

FT_EXPORT void *valloc(size_t size) {
    void *block = REAL(valloc)(size);
    if (!is_small(size)) {
        placed(block, size, CALLER);
    }
    return block;
}

FT_EXPORT void *pvalloc(size_t size);
FT_EXPORT void *pvalloc(size_t size) {
    void *block = REAL(pvalloc)(size);
    if (!is_small(size)) {
        placed(block, size, CALLER);
    }
    return block;
}

static void forget(void *address, size_t size) {
    if (__atomic_load_n(&ft_has_kept, __ATOMIC_RELAXED) && !busy) {
        busy = true;
        ft_forget((uintptr_t)address, size);
        busy = false;
    }
}

static bool is_programs_memory(int flags) {
    return (flags & MAP_ANONYMOUS) != 0 && (flags & (MAP_STACK | MAP_GROWSDOWN)) == 0;
}

FT_EXPORT void *mmap(void *address, size_t size, int protection, int flags, int fd, off_t offset) {
    void *mapped = REAL(mmap)(address, size, protection, flags, fd, offset);
    if (mapped != MAP_FAILED) {
        forget(mapped, size);
    }
    if (mapped != MAP_FAILED && !is_small(size) && is_programs_memory(flags)) {
        placed_as(mapped, size, CALLER, true);
    }
    return mapped;
}

_Static_assert(sizeof(off_t) == 8, "mmap64 is mmap");
FT_EXPORT __typeof__(mmap) mmap64 __attribute__((alias("mmap")));

FT_EXPORT void *mremap(void *address, size_t old_size, size_t size, int flags, ...) {
    void *to = NULL;
    if (flags & MREMAP_FIXED) {
        va_list arguments;
        va_start(arguments, flags);
        to = va_arg(arguments, void *);
        va_end(arguments);
    }
    void *mapped = REAL(mremap)(address, old_size, size, flags, to);
    if (mapped != MAP_FAILED) {
        forget(address, old_size);
        forget(mapped, size);
    }
    if (mapped != MAP_FAILED && !is_small(size)) {
        placed_as(mapped, size, CALLER, true);
    }
    return mapped;
}

FT_EXPORT int munmap(void *address, size_t size) {
    int result = REAL(munmap)(address, size);
    if (result == 0 && __atomic_load_n(&ft_has_kept, __ATOMIC_RELAXED) && !busy &&
        __atomic_load_n(&ft_gate, __ATOMIC_RELAXED) != SIZE_MAX) {
        int saved_errno = errno;
        busy = true;
        ft_unmapped((uintptr_t)address, size);
        busy = false;
        errno = saved_errno;
    }
    return result;
}

/* A program that locks itself in may be killed for a system call of ours: nothing more is placed. (native/agent/sandbox.c
 * explains the name.) */
FT_EXPORT int ft_hooked_prctl(int option, unsigned long a, unsigned long b, unsigned long c,
                              unsigned long d) __asm__("prctl");

FT_EXPORT int ft_hooked_prctl(int option, unsigned long a, unsigned long b, unsigned long c, unsigned long d) {
    if (option == PR_SET_SECCOMP) {
        __atomic_store_n(&ft_gate, SIZE_MAX, __ATOMIC_RELEASE);
        ft_lock_in();
    }
    return REAL(prctl)(option, a, b, c, d);
}

FT_EXPORT void _exit(int status) {
    ft_end();
    for (;;) {
        syscall(SYS_exit_group, status);
    }
}

FT_EXPORT void _Exit(int status) {
    _exit(status);
}
