/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * The hooks of malloc's family and of mappings. One source of a library includes this file, after it has defined what
 * the library does on each call:
 *
 *   bool ft_hook_ignores(size_t size)
 *       Is a request for `size` bytes forwarded and nothing else? At most a few instructions: every small allocation pays for them.
 *   uint64_t ft_hook_enter(void)
 *       Before the real call. The result is passed on as `entered`.
 *   void ft_hook_allocated(void *block, size_t size, uint8_t kind, uint64_t entered, struct ft_caller caller)
 *       After it. `block` is NULL if the call failed. `kind` is an enum ft_alloc_kind.
 *   void *ft_hook_realloc(void *block, size_t size)
 *       All of realloc, including the real call. It may end in a call of a function that uses ft_caller().
 *   bool ft_hook_ignores_map(size_t size)
 *       As ft_hook_ignores, for mmap and mremap (which passes the larger of its sizes).
 *   void ft_hook_mapped(void *mapped, size_t size, int protection, int flags, uint64_t entered, struct ft_caller caller)
 *       After an mmap that succeeded.
 *   struct ft_remap ft_hook_remap_begin(void *address, size_t size, int flags)
 *       Before mremap. The library defines the struct; it must hold whatever ft_hook_remap_end needs.
 *   void ft_hook_remap_end(struct ft_remap, void *mapped, size_t size, struct ft_caller caller)
 *       After it, whether it succeeded or not: `mapped` may be MAP_FAILED.
 *   void ft_hook_unmap_begin(void *address, size_t size)
 *   void ft_hook_unmap_end(void *address, size_t size, int result)
 *       Before and after munmap.
 *
 * None of them may change errno (but for the real realloc), allocate, or wait. They may run in signal handlers, in a child of vfork, and
 * before the library's constructor. Functions that only one library interposes (free, madvise) are not here.
 *
 * A large request continues in a function of its own, so that a small one costs one comparison and one jump.
 */
#ifndef FIRSTTOUCH_MEMORY_HOOKS_H
#define FIRSTTOUCH_MEMORY_HOOKS_H

#include "interpose.h"
#include "../include/firsttouch_ring.h" /* enum ft_alloc_kind */

#include <malloc.h>
#include <stdarg.h>
#include <stdlib.h>

static FT_NOINLINE void *large_malloc(size_t size) {
    uint64_t entered = ft_hook_enter();
    void *block = ft_real.malloc(size);
    ft_hook_allocated(block, size, FT_KIND_MALLOC, entered, ft_caller());
    return block;
}

FT_EXPORT void *malloc(size_t size) {
    return ft_likely(ft_hook_ignores(size)) ? ft_real.malloc(size) : large_malloc(size);
}

static FT_NOINLINE void *large_calloc(size_t count, size_t size) {
    uint64_t entered = ft_hook_enter();
    void *block = ft_real.calloc(count, size);
    ft_hook_allocated(block, count * size, FT_KIND_CALLOC, entered, ft_caller());
    return block;
}

FT_EXPORT void *calloc(size_t count, size_t size) {
    size_t bytes;
    if (ft_unlikely(__builtin_mul_overflow(count, size, &bytes)) || ft_likely(ft_hook_ignores(bytes))) {
        return ft_real.calloc(count, size);
    }
    return large_calloc(count, size);
}

FT_EXPORT void *realloc(void *block, size_t size) {
    return ft_hook_realloc(block, size);
}

/* Not forwarded to the real one: glibc's calls `realloc` through the symbol, which would be a second call for us. */
FT_EXPORT void *reallocarray(void *block, size_t count, size_t size) {
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes)) {
        errno = ENOMEM;
        return NULL;
    }
    return ft_hook_realloc(block, bytes);
}

FT_EXPORT int posix_memalign(void **result, size_t alignment, size_t size) {
    if (ft_hook_ignores(size)) {
        return FT_REAL(posix_memalign)(result, alignment, size);
    }
    uint64_t entered = ft_hook_enter();
    int error = FT_REAL(posix_memalign)(result, alignment, size);
    if (error == 0) {
        ft_hook_allocated(*result, size, FT_KIND_ALIGNED, entered, ft_caller());
    }
    return error;
}

/* The aligned forms that return the block. Their parameter `size` is what is asked for. */
#define FT_HOOK_ALIGNED(name, parameters, arguments)                           \
    FT_EXPORT void *name parameters {                                          \
        if (ft_hook_ignores(size)) {                                           \
            return FT_REAL(name) arguments;                                    \
        }                                                                      \
        uint64_t entered = ft_hook_enter();                                    \
        void *block = FT_REAL(name) arguments;                                 \
        ft_hook_allocated(block, size, FT_KIND_ALIGNED, entered, ft_caller()); \
        return block;                                                          \
    }

FT_HOOK_ALIGNED(aligned_alloc, (size_t alignment, size_t size), (alignment, size))
FT_HOOK_ALIGNED(memalign, (size_t alignment, size_t size), (alignment, size))
FT_HOOK_ALIGNED(valloc, (size_t size), (size))
FT_HOOK_ALIGNED(pvalloc, (size_t size), (size))
#undef FT_HOOK_ALIGNED

FT_EXPORT void *mmap(void *address, size_t size, int protection, int flags, int fd, off_t offset) {
    if (ft_hook_ignores_map(size)) {
        return FT_REAL(mmap)(address, size, protection, flags, fd, offset);
    }
    uint64_t entered = ft_hook_enter();
    void *mapped = FT_REAL(mmap)(address, size, protection, flags, fd, offset);
    if (mapped != MAP_FAILED) {
        ft_hook_mapped(mapped, size, protection, flags, entered, ft_caller());
    }
    return mapped;
}

_Static_assert(sizeof(off_t) == 8, "mmap64 is mmap");
FT_EXPORT __typeof__(mmap) mmap64 __attribute__((alias("mmap")));

FT_EXPORT void *mremap(void *old_address, size_t old_size, size_t new_size, int flags, ...) {
    void *wanted = NULL;
    if (flags & (MREMAP_FIXED | MREMAP_DONTUNMAP)) {
        va_list arguments;
        va_start(arguments, flags);
        wanted = va_arg(arguments, void *);
        va_end(arguments);
    }
    if (ft_hook_ignores_map(old_size > new_size ? old_size : new_size)) {
        return FT_REAL(mremap)(old_address, old_size, new_size, flags, wanted);
    }
    struct ft_remap remap = ft_hook_remap_begin(old_address, old_size, flags);
    void *mapped = FT_REAL(mremap)(old_address, old_size, new_size, flags, wanted);
    ft_hook_remap_end(remap, mapped, new_size, ft_caller());
    return mapped;
}

FT_EXPORT int munmap(void *address, size_t size) {
    ft_hook_unmap_begin(address, size);
    int result = FT_REAL(munmap)(address, size);
    ft_hook_unmap_end(address, size, result);
    return result;
}

#endif
