/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * The memory interposers. Each forwards its call unchanged and, at or above the size limit, records it. The part that
 * records is a function of its own, so that a small allocation costs one comparison and one jump.
 *
 * Order (see firsttouch_ring.h): a release is recorded before the real call and an allocation after it, both with the
 * time of entry (mremap's, which may fail, keeps its place: ft_open_record). Nothing in record.c changes errno.
 */
#include "agent.h"

#include <errno.h>
#include <malloc.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static void *record_block(void *block, size_t size, uint8_t kind, uint64_t time_ns, struct ft_caller caller) {
    if (ft_likely(block != NULL)) {
        ft_mark_block(block);
        ft_record_with_stack(
            &(struct ft_record){
                .type = FT_REC_ALLOC, .kind = kind, .time_ns = time_ns, .address = (uintptr_t)block, .size = size},
            caller);
    }
    return block;
}

static void record_free(void *block, uint64_t time_ns) {
    ft_record_plain(&(struct ft_record){.type = FT_REC_FREE, .time_ns = time_ns, .address = (uintptr_t)block});
}

static FT_NOINLINE void *large_malloc(size_t size) {
    uint64_t time_ns = ft_now();
    return record_block(ft_real.malloc(size), size, FT_KIND_MALLOC, time_ns, ft_caller());
}

FT_EXPORT void *malloc(size_t size) {
    if (ft_likely(size <= ft_gate())) {
        return ft_real.malloc(size);
    }
    return large_malloc(size);
}

static FT_NOINLINE void *large_calloc(size_t count, size_t size) {
    uint64_t time_ns = ft_now();
    return record_block(ft_real.calloc(count, size), count * size, FT_KIND_CALLOC, time_ns, ft_caller());
}

FT_EXPORT void *calloc(size_t count, size_t size) {
    size_t bytes;
    if (ft_unlikely(__builtin_mul_overflow(count, size, &bytes)) || ft_likely(bytes <= ft_gate())) {
        return ft_real.calloc(count, size);
    }
    return large_calloc(count, size);
}

static FT_NOINLINE void large_free(void *block) {
    record_free(block, ft_now());
    ft_real.free(block);
}

FT_EXPORT void free(void *block) {
    if (ft_unlikely(ft_is_early_block(block))) {
        return;
    }
    if (ft_likely(ft_real.usable_size(block) <= ft_gate())) {
        ft_real.free(block);
        return;
    }
    large_free(block);
}

static FT_NOINLINE void *large_realloc(void *block, size_t size, size_t old_size) {
    uint64_t time_ns = ft_now();
    bool was_large = old_size > ft_gate();
    if (was_large) {
        record_free(block, time_ns);
    }
    void *moved = ft_real.realloc(block, size);
    if (moved != NULL) {
        return size > ft_gate() ? record_block(moved, size, FT_KIND_REALLOC, time_ns, ft_caller()) : moved;
    }
    /* Out of memory: the old block lives on. (A size of 0 has released it.) SIZE_MAX is a mark, not a size. */
    if (size != 0 && was_large && old_size != SIZE_MAX) {
        record_block(block, old_size, FT_KIND_REALLOC, ft_now(), ft_caller());
    }
    return NULL;
}

FT_EXPORT void *realloc(void *block, size_t size) {
    if (ft_unlikely(ft_is_early_block(block))) {
        return ft_realloc_early_block(block, size);
    }
    size_t old_size = ft_real.usable_size(block);
    if (ft_likely(size <= ft_gate() && old_size <= ft_gate())) {
        return ft_real.realloc(block, size);
    }
    return large_realloc(block, size, old_size);
}

/* Not forwarded to the real one: glibc's calls `realloc` through the symbol, which would be recorded twice. */
FT_EXPORT void *reallocarray(void *block, size_t count, size_t size) {
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes)) {
        errno = ENOMEM;
        return NULL;
    }
    if (ft_unlikely(ft_is_early_block(block))) {
        return ft_realloc_early_block(block, bytes);
    }
    size_t old_size = ft_real.usable_size(block);
    if (ft_likely(bytes <= ft_gate() && old_size <= ft_gate())) {
        return ft_real.realloc(block, bytes);
    }
    return large_realloc(block, bytes, old_size);
}

FT_EXPORT int posix_memalign(void **result, size_t alignment, size_t size) {
    if (size <= ft_gate()) {
        return FT_REAL(posix_memalign)(result, alignment, size);
    }
    uint64_t time_ns = ft_now();
    int error = FT_REAL(posix_memalign)(result, alignment, size);
    if (error == 0) {
        record_block(*result, size, FT_KIND_ALIGNED, time_ns, ft_caller());
    }
    return error;
}

FT_EXPORT void *aligned_alloc(size_t alignment, size_t size) {
    if (size <= ft_gate()) {
        return FT_REAL(aligned_alloc)(alignment, size);
    }
    uint64_t time_ns = ft_now();
    return record_block(FT_REAL(aligned_alloc)(alignment, size), size, FT_KIND_ALIGNED, time_ns, ft_caller());
}

FT_EXPORT void *memalign(size_t alignment, size_t size) {
    if (size <= ft_gate()) {
        return FT_REAL(memalign)(alignment, size);
    }
    uint64_t time_ns = ft_now();
    return record_block(FT_REAL(memalign)(alignment, size), size, FT_KIND_ALIGNED, time_ns, ft_caller());
}

FT_EXPORT void *valloc(size_t size) {
    if (size <= ft_gate()) {
        return FT_REAL(valloc)(size);
    }
    uint64_t time_ns = ft_now();
    return record_block(FT_REAL(valloc)(size), size, FT_KIND_ALIGNED, time_ns, ft_caller());
}

FT_EXPORT void *pvalloc(size_t size) {
    if (size <= ft_gate()) {
        return FT_REAL(pvalloc)(size);
    }
    uint64_t time_ns = ft_now();
    return record_block(FT_REAL(pvalloc)(size), size, FT_KIND_ALIGNED, time_ns, ft_caller());
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

FT_EXPORT void *mmap(void *address, size_t size, int protection, int flags, int fd, off_t offset) {
    if (size <= ft_gate()) {
        return FT_REAL(mmap)(address, size, protection, flags, fd, offset);
    }
    uint64_t time_ns = ft_now();
    void *mapped = FT_REAL(mmap)(address, size, protection, flags, fd, offset);
    if (mapped != MAP_FAILED) {
        record_map(mapped, size, flags & MAP_ANONYMOUS ? FT_KIND_MMAP : FT_KIND_MMAP_FILE,
                   (uint32_t)protection | (uint64_t)(uint32_t)flags << 32, time_ns, ft_caller());
    }
    return mapped;
}

_Static_assert(sizeof(off_t) == 8, "mmap64 is mmap");
FT_EXPORT __typeof__(mmap) mmap64 __attribute__((alias("mmap")));

/* As the kernel judges it: what it refuses must not release all that lies above `address`. */
static bool is_user_range(const void *address, size_t size) {
    uintptr_t last = (uintptr_t)address + (size - 1);
    return size != 0 && last >= (uintptr_t)address && last < (uintptr_t)1 << 56 &&
           ((uintptr_t)address & (ft_agent.page_bytes - 1)) == 0;
}

/* Recorded whatever its size: it may cut a piece out of a recorded mapping. */
FT_EXPORT int munmap(void *address, size_t size) {
    if (ft_unlikely(ft_agent.runs_python)) {
        ft_python_forget_pages();
    }
    if (!ft_silent() && is_user_range(address, size)) {
        record_range(FT_REC_UNMAP, address, whole_pages(size), ft_now());
    }
    return FT_REAL(munmap)(address, size);
}

#ifndef MREMAP_DONTUNMAP
#define MREMAP_DONTUNMAP 4
#endif

FT_EXPORT void *mremap(void *old_address, size_t old_size, size_t new_size, int flags, ...) {
    void *wanted = NULL;
    if (flags & (MREMAP_FIXED | MREMAP_DONTUNMAP)) {
        va_list arguments;
        va_start(arguments, flags);
        wanted = va_arg(arguments, void *);
        va_end(arguments);
    }
    if (old_size <= ft_gate() && new_size <= ft_gate()) {
        return FT_REAL(mremap)(old_address, old_size, new_size, flags, wanted);
    }
    uint64_t time_ns = ft_now();
    uint64_t aux = (uint64_t)(uint32_t)flags << 32;
    bool releases = old_size != 0 && !(flags & MREMAP_DONTUNMAP); /* an old size of 0 makes a second mapping */
    uint64_t release;
    bool opened = releases && ft_open_record(&release);
    void *mapped = FT_REAL(mremap)(old_address, old_size, new_size, flags, wanted);
    if (opened) {
        const struct ft_record unmap = {
            .type = FT_REC_UNMAP, .time_ns = time_ns, .address = (uintptr_t)old_address, .size = whole_pages(old_size)};
        ft_close_record(release, mapped != MAP_FAILED ? &unmap : NULL);
    }
    if (mapped == MAP_FAILED) {
        return mapped;
    }
    if (flags & MREMAP_DONTUNMAP) {
        record_range(FT_REC_ADVISE_FREE, old_address, whole_pages(old_size), time_ns);
    }
    record_map(mapped, new_size, FT_KIND_MREMAP, aux, time_ns, ft_caller());
    return mapped;
}

/* No ownership changes hands, so it is recorded once it has succeeded. */
FT_EXPORT int madvise(void *address, size_t size, int advice) {
    bool drops = advice == MADV_DONTNEED || advice == MADV_FREE || advice == MADV_REMOVE;
    if (!drops || size <= ft_gate()) {
        return FT_REAL(madvise)(address, size, advice);
    }
    uint64_t time_ns = ft_now();
    int result = FT_REAL(madvise)(address, size, advice);
    if (result == 0) {
        record_range(FT_REC_ADVISE_FREE, address, whole_pages(size), time_ns);
    }
    return result;
}
