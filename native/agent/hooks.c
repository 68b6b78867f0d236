/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * What the agent does in each memory hook (preload/memory_hooks.h): it records the call if its size is at or above the
 * threshold, and a sample of the allocations below it (small.c).
 *
 * Order (see firsttouch_ring.h): a release is recorded before the real call and an allocation after it, both with the
 * time of entry. mremap may fail, so its release reserves a slot that is filled after the call (ft_open_record).
 */
#include "agent.h"

static inline bool ft_hook_ignores(size_t size) {
    return ft_likely(size <= ft_threshold()) && ft_likely(!ft_small_is_due(size));
}

/* Under a sandbox the agent is silent, and must not read the clock. */
static inline uint64_t ft_hook_enter(void) {
    return ft_silent() ? 0 : ft_now();
}

static inline void ft_hook_allocated(void *block, size_t size, uint8_t kind, uint64_t time_ns,
                                     struct ft_caller caller) {
    if (ft_unlikely(block == NULL)) {
        return;
    }
    const struct ft_record record = {
        .type = FT_REC_ALLOC, .kind = kind, .time_ns = time_ns, .address = (uintptr_t)block, .size = size};
    if (size <= ft_threshold()) {
        ft_small_allocated(&record, caller);
        return;
    }
    ft_mark_block(block);
    ft_record_with_stack(&record, caller);
}

static void record_free(void *block, uint64_t time_ns) {
    ft_record_plain(&(struct ft_record){.type = FT_REC_FREE, .time_ns = time_ns, .address = (uintptr_t)block});
}

/* The old or the new block is large, or a sample of small ones is due. */
static FT_NOINLINE void *large_realloc(void *block, size_t size, size_t old_size) {
    uint64_t time_ns = ft_hook_enter();
    bool was_large = old_size > ft_threshold();
    if (was_large) {
        record_free(block, time_ns);
    }
    void *moved = ft_real.realloc(block, size);
    if (size > ft_threshold() || !was_large) {
        ft_hook_allocated(moved, size, FT_KIND_REALLOC, time_ns, ft_caller());
    }
    /* Out of memory: the old block stays live. (A size of 0 has released it.) SIZE_MAX means marked, size unknown. */
    if (moved == NULL && size != 0 && was_large && old_size != SIZE_MAX) {
        ft_hook_allocated(block, old_size, FT_KIND_REALLOC, ft_now(), ft_caller());
    }
    return moved;
}

static inline void *ft_hook_realloc(void *block, size_t size) {
    if (ft_unlikely(ft_is_early_block(block))) {
        return ft_realloc_early_block(block, size);
    }
    size_t old_size = ft_usable_size(block);
    if (ft_likely(size <= ft_threshold() && old_size <= ft_threshold() && !ft_small_is_due(size))) {
        return ft_real.realloc(block, size);
    }
    return large_realloc(block, size, old_size);
}

static void record_map(void *address, size_t size, uint8_t kind, uint64_t aux, uint64_t time_ns,
                       struct ft_caller caller) {
    ft_record_with_stack(&(struct ft_record){.type = FT_REC_MAP,
                                             .kind = kind,
                                             .time_ns = time_ns,
                                             .address = (uintptr_t)address,
                                             .size = size,
                                             .aux = aux},
                         caller);
}

static void record_range(uint16_t type, void *address, size_t size, uint64_t time_ns) {
    ft_record_plain(&(struct ft_record){.type = type, .time_ns = time_ns, .address = (uintptr_t)address, .size = size});
}

static size_t whole_pages(size_t size) {
    return (size + ft_agent.page_bytes - 1) & ~(ft_agent.page_bytes - 1);
}

static inline bool ft_hook_ignores_map(size_t size) {
    return size <= ft_threshold();
}

static inline void ft_hook_mapped(void *mapped, size_t size, int protection, int flags, uint64_t time_ns,
                                  struct ft_caller caller) {
    /* After MAP_POPULATE and the like, what was present before does not show. */
    bool tells = (flags & (MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE | MAP_LOCKED)) == MAP_SHARED;
    record_map(mapped, size, flags & MAP_ANONYMOUS ? FT_KIND_MMAP : FT_KIND_MMAP_FILE,
               ((uint32_t)protection & 0xff) | (tells ? ft_present(mapped, size) : 0) | (uint64_t)(uint32_t)flags << 32,
               time_ns, caller);
}

/* An mremap from its entry to its end. The release of the old range keeps its place in the order of ownership, since the
 * call may fail. */
struct ft_remap {
    void *old_address;
    size_t old_size;
    int flags;
    uint64_t time_ns;
    bool has_release; /* an open record */
    uint64_t release;
};

static inline struct ft_remap ft_hook_remap_begin(void *old_address, size_t old_size, int flags) {
    struct ft_remap remap = {.old_address = old_address, .old_size = old_size, .flags = flags, .time_ns = ft_now()};
    bool releases = old_size != 0 && !(flags & MREMAP_DONTUNMAP); /* an old size of 0 makes a second mapping */
    remap.has_release = releases && ft_open_record(&remap.release);
    return remap;
}

static inline void ft_hook_remap_end(struct ft_remap remap, void *mapped, size_t size, struct ft_caller caller) {
    if (remap.has_release) {
        const struct ft_record unmap = {.type = FT_REC_UNMAP,
                                        .time_ns = remap.time_ns,
                                        .address = (uintptr_t)remap.old_address,
                                        .size = whole_pages(remap.old_size)};
        ft_close_record(remap.release, mapped != MAP_FAILED ? &unmap : NULL);
    }
    if (mapped == MAP_FAILED) {
        return;
    }
    if (remap.flags & MREMAP_DONTUNMAP) {
        record_range(FT_REC_ADVISE_FREE, remap.old_address, whole_pages(remap.old_size), remap.time_ns);
    }
    record_map(mapped, size, FT_KIND_MREMAP, (uint64_t)(uint32_t)remap.flags << 32, remap.time_ns, caller);
}

/* Applies the kernel's own checks: a range that it refuses must not release all that lies above `address`. */
static bool is_user_range(const void *address, size_t size) {
    uintptr_t last = (uintptr_t)address + (size - 1);
    return size != 0 && last >= (uintptr_t)address && last < (uintptr_t)1 << 56 &&
           ((uintptr_t)address & (ft_agent.page_bytes - 1)) == 0;
}

/* Recorded whatever its size: it may cut a piece out of a recorded mapping. */
static inline void ft_hook_unmap_begin(void *address, size_t size) {
    if (ft_unlikely(ft_agent.runs_python)) {
        ft_python_forget_pages();
    }
    if (!ft_silent() && is_user_range(address, size)) {
        record_range(FT_REC_UNMAP, address, whole_pages(size), ft_now());
    }
}

static inline void ft_hook_unmap_end(void *address, size_t size, int result) {
    (void)address, (void)size, (void)result;
}

#include "../preload/memory_hooks.h"

static FT_NOINLINE void large_free(void *block) {
    record_free(block, ft_now());
    ft_real.free(block);
}

FT_EXPORT void free(void *block) {
    if (ft_unlikely(ft_is_early_block(block))) {
        return;
    }
    if (ft_likely(ft_usable_size(block) <= ft_threshold())) {
        ft_real.free(block);
        return;
    }
    large_free(block);
}

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

/* Ownership does not change, so it is recorded after success. */
FT_EXPORT int madvise(void *address, size_t size, int advice) {
    bool drops = advice == MADV_DONTNEED || advice == MADV_FREE || advice == MADV_REMOVE;
    if ((!drops && advice != MADV_POPULATE_WRITE) || size <= ft_threshold()) {
        return FT_REAL(madvise)(address, size, advice);
    }
    uint64_t time_ns = ft_now();
    int result = FT_REAL(madvise)(address, size, advice);
    if (result != 0) {
        return result;
    }
    if (drops) {
        record_range(FT_REC_ADVISE_FREE, address, whole_pages(size), time_ns);
    } else {
        ft_populated(FT_KIND_MADVISE, address, size, 0, time_ns, ft_caller());
    }
    return result;
}
