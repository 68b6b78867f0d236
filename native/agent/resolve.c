/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * Resolves the interposed functions, serves the allocations made before that, and finds the size of a live block.
 */
#include "agent.h"

#include <string.h>

/* dlsym may allocate (glibc before 2.34 does). Those few blocks come from here and are never released. */
_Alignas(16) unsigned char ft_early[FT_EARLY_BYTES];
static size_t early_used;

static void *early_block(size_t size) {
    if (size > sizeof ft_early) {
        errno = ENOMEM;
        return NULL;
    }
    size_t bytes = ((size + 15) & ~(size_t)15) + 16;
    size_t offset = __atomic_fetch_add(&early_used, bytes, __ATOMIC_RELAXED);
    if (offset + bytes > sizeof ft_early) {
        errno = ENOMEM;
        return NULL;
    }
    memcpy(ft_early + offset, &size, sizeof size);
    return ft_early + offset + 16;
}

void *ft_realloc_early_block(void *block, size_t size) {
    size_t old_size;
    memcpy(&old_size, (unsigned char *)block - 16, sizeof old_size);
    void *moved = ft_real.malloc(size);
    if (moved != NULL) {
        memcpy(moved, block, old_size < size ? old_size : size);
    }
    return moved;
}

static void *first_malloc(size_t size) {
    if (ft_thread.resolving) {
        return early_block(size);
    }
    ft_resolve();
    return ft_real.malloc(size);
}

static void *first_calloc(size_t count, size_t size) {
    if (ft_thread.resolving) {
        size_t bytes;
        return __builtin_mul_overflow(count, size, &bytes) ? NULL : early_block(bytes); /* .bss is zero */
    }
    ft_resolve();
    return ft_real.calloc(count, size);
}

static void *first_realloc(void *block, size_t size) {
    if (ft_thread.resolving) {
        return block == NULL ? early_block(size) : NULL;
    }
    ft_resolve();
    return ft_real.realloc(block, size);
}

static void first_free(void *block) {
    if (!ft_thread.resolving) {
        ft_resolve();
        ft_real.free(block);
    }
}

static size_t unknown_size(void *block) {
    (void)block;
    return 0;
}

struct ft_real ft_real = {
    .malloc = first_malloc,
    .calloc = first_calloc,
    .realloc = first_realloc,
    .free = first_free,
};
size_t (*ft_usable_size)(void *) = unknown_size;

void ft_resolve(void) {
    ft_thread.resolving = true;
    ft_find_real();
    ft_thread.resolving = false;
}

/* Without malloc_usable_size large blocks are marked in a bitmap, by a hash of their address. Bits are never cleared: a
 * collision causes a redundant FREE record, which the reader ignores, and no release is missed. */
#define MARK_BITS (1u << 19)
static unsigned char marks[MARK_BITS / 8];
static bool marking;

static size_t mark_of(const void *block) {
    return (size_t)(((uint64_t)(uintptr_t)block * 0x9e3779b97f4a7c15ull) >> 45);
}
_Static_assert(MARK_BITS == 1u << (64 - 45), "mark_of yields one bit number");

static size_t size_by_mark(void *block) {
    size_t mark = mark_of(block);
    return (__atomic_load_n(&marks[mark / 8], __ATOMIC_RELAXED) >> (mark % 8)) & 1 ? SIZE_MAX : 0;
}

void ft_mark_block(const void *block) {
    if (ft_unlikely(marking)) {
        size_t mark = mark_of(block);
        __atomic_fetch_or(&marks[mark / 8], (unsigned char)(1u << (mark % 8)), __ATOMIC_RELAXED);
    }
}

/* malloc_usable_size reads the allocator's own block header, so it must come from the same library as `free`. Otherwise
 * the C library's would read the blocks of an allocator that lacks it. */
void ft_resolve_usable_size(void) {
    size_t (*usable_size)(void *) = (size_t(*)(void *))dlsym(RTLD_NEXT, "malloc_usable_size");
    Dl_info of_free, of_size;
    marking = usable_size == NULL || dladdr((void *)ft_real.free, &of_free) == 0 ||
              dladdr((void *)usable_size, &of_size) == 0 || of_free.dli_fbase != of_size.dli_fbase;
    __atomic_store_n(&ft_usable_size, marking ? size_by_mark : usable_size, __ATOMIC_RELEASE);
}
