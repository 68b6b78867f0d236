/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * What the plan library does in each memory hook (preload/memory_hooks.h): after an allocation that is large enough it
 * looks for an entry of the plan and places the memory.
 */
#include "plan.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The C library's own allocator serves what dlsym allocates. `free` is not interposed here, so these blocks must be
 * valid for the C library's `free`. */
extern void *__libc_malloc(size_t) __attribute__((weak));
extern void *__libc_calloc(size_t, size_t) __attribute__((weak));
extern void *__libc_realloc(void *, size_t) __attribute__((weak));

static _Thread_local bool resolving __attribute__((tls_model("initial-exec")));
static _Thread_local bool busy __attribute__((tls_model("initial-exec")));

static void *first_malloc(size_t size);
static void *first_calloc(size_t count, size_t size);
static void *first_realloc(void *block, size_t size);

struct ft_real ft_real = {.malloc = first_malloc, .calloc = first_calloc, .realloc = first_realloc};

void ft_resolve(void) {
    resolving = true;
    ft_find_real();
    resolving = false;
}

static void *first_malloc(size_t size) {
    if (resolving) {
        return __libc_malloc != NULL ? __libc_malloc(size) : NULL;
    }
    ft_resolve();
    return ft_real.malloc != first_malloc ? ft_real.malloc(size) : NULL;
}

static void *first_calloc(size_t count, size_t size) {
    if (resolving) {
        return __libc_calloc != NULL ? __libc_calloc(count, size) : NULL;
    }
    ft_resolve();
    return ft_real.calloc != first_calloc ? ft_real.calloc(count, size) : NULL;
}

static void *first_realloc(void *block, size_t size) {
    if (resolving) {
        return __libc_realloc != NULL ? __libc_realloc(block, size) : NULL;
    }
    ft_resolve();
    return ft_real.realloc != first_realloc ? ft_real.realloc(block, size) : NULL;
}

/* Not reentrant: memory that a signal handler allocates while this thread is in here is not placed. */
static FT_NOINLINE void place(void *block, size_t size, uintptr_t caller_ip, bool is_mapping) {
    if (block == NULL || busy) {
        return;
    }
    int saved_errno = errno;
    busy = true;
    uint64_t index = 0;
    struct ft_plan_entry *entry = ft_match(caller_ip, &index);
    if (entry != NULL) {
        (is_mapping ? ft_place_mapping : ft_place)(entry, (uintptr_t)block, size, index);
    }
    ft_place_statics(); /* those of a library loaded since */
    busy = false;
    errno = saved_errno;
}

static inline bool ft_hook_ignores(size_t size) {
    return ft_likely(size < __atomic_load_n(&ft_min_size, __ATOMIC_RELAXED));
}

static inline uint64_t ft_hook_enter(void) {
    return 0;
}

static inline void ft_hook_allocated(void *block, size_t size, uint8_t kind, uint64_t entered,
                                     struct ft_caller caller) {
    (void)kind, (void)entered;
    place(block, size, caller.ip, false);
}

static FT_NOINLINE void *large_realloc(void *block, size_t size) {
    void *moved = ft_real.realloc(block, size);
    place(moved, size, ft_caller().ip, false);
    return moved;
}

static inline void *ft_hook_realloc(void *block, size_t size) {
    return ft_hook_ignores(size) ? ft_real.realloc(block, size) : large_realloc(block, size);
}

static void replaced(void *address, size_t size) {
    if (__atomic_load_n(&ft_has_mappings, __ATOMIC_RELAXED) && !busy) {
        busy = true;
        ft_mapping_gone((uintptr_t)address, size);
        busy = false;
    }
}

/* Private file contents and stacks are not memory that a plan places. Processes share memory by files of a file system in
 * memory, as MPI libraries do for shared windows. */
static bool is_data_mapping(int flags) {
    return (flags & (MAP_ANONYMOUS | MAP_SHARED)) != 0 && (flags & (MAP_STACK | MAP_GROWSDOWN)) == 0;
}

/* Small mappings matter too: one may take the addresses of a mapping that was placed. */
static inline bool ft_hook_ignores_map(size_t size) {
    (void)size;
    return false;
}

static inline void ft_hook_mapped(void *mapped, size_t size, int protection, int flags, uint64_t entered,
                                  struct ft_caller caller) {
    (void)protection, (void)entered;
    replaced(mapped, size);
    if (!ft_hook_ignores(size) && is_data_mapping(flags)) {
        place(mapped, size, caller.ip, true);
    }
}

struct ft_remap {
    void *old_address;
    size_t old_size;
};

static inline struct ft_remap ft_hook_remap_begin(void *old_address, size_t old_size, int flags) {
    (void)flags;
    return (struct ft_remap){old_address, old_size};
}

static inline void ft_hook_remap_end(struct ft_remap remap, void *mapped, size_t size, struct ft_caller caller) {
    if (mapped == MAP_FAILED) {
        return;
    }
    replaced(remap.old_address, remap.old_size);
    replaced(mapped, size);
    if (!ft_hook_ignores(size)) {
        place(mapped, size, caller.ip, true);
    }
}

static inline void ft_hook_unmap_begin(void *address, size_t size) {
    (void)address, (void)size;
}

static inline void ft_hook_unmap_end(void *address, size_t size, int result) {
    if (result == 0 && __atomic_load_n(&ft_has_mappings, __ATOMIC_RELAXED) && !busy &&
        __atomic_load_n(&ft_min_size, __ATOMIC_RELAXED) != SIZE_MAX) {
        int saved_errno = errno;
        busy = true;
        ft_mapping_trimmed((uintptr_t)address, size);
        busy = false;
        errno = saved_errno;
    }
}

#include "../preload/memory_hooks.h"

/* A seccomp filter may kill the program for one of our system calls: nothing more is placed. */
FT_EXPORT int ft_hooked_prctl(int option, unsigned long a, unsigned long b, unsigned long c, unsigned long d) {
    if (option == PR_SET_SECCOMP) {
        __atomic_store_n(&ft_min_size, SIZE_MAX, __ATOMIC_RELEASE);
        ft_enter_sandbox();
    }
    return FT_REAL(prctl)(option, a, b, c, d);
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
