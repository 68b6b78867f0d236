/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * Blocks of memory. Small ones are malloc's; the others are mappings of their own, so that a page belongs to one block.
 *
 * All functions that map memory have names with ftl_: `firsttouch profile` leaves them out of the stacks of allocations, also where
 * the static library has no lines (crates/symbols/src/ownership.rs).
 */
#include "library.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static bool fits(const void *at, size_t alignment, size_t modulus, size_t remainder, size_t page) {
    uintptr_t address = (uintptr_t)at;
    return address % alignment == 0 && (modulus == 0 || address / page % modulus == remainder);
}

static void *ftl_map_pages(size_t bytes) {
    void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED) {
        errno = ENOMEM; /* also for EAGAIN, a limit of locked memory, and EINVAL, more than the address space */
    }
    return at;
}

/* The kernel mostly aligns large mappings itself (since 6.7). Where it does not, map more, and give back both ends. */
void *ftl_map(size_t bytes, size_t alignment, size_t modulus, size_t remainder, size_t page) {
    void *at = ftl_map_pages(bytes);
    if (at == MAP_FAILED || fits(at, alignment, modulus, remainder, page)) {
        return at;
    }
    munmap(at, bytes);
    size_t more = modulus != 0 ? modulus * page : alignment;
    if (bytes > PTRDIFF_MAX - more) {
        errno = ENOMEM;
        return MAP_FAILED;
    }
    char *wide = ftl_map_pages(bytes + more);
    if (wide == MAP_FAILED) {
        return MAP_FAILED;
    }
    size_t before = 0;
    while (!fits(wide + before, alignment, modulus, remainder, page)) {
        before += page;
    }
    if (before > 0) {
        munmap(wide, before);
    }
    if (more > before) {
        munmap(wide + before + bytes, more - before);
    }
    return wide + before;
}

static bool copy_arrays(ft_partition *partition) {
    const size_t *bounds = partition->bounds;
    const double *weights = partition->weights;
    partition->bounds = NULL;
    partition->weights = NULL;
    if (partition->kind == FT_BY_BOUNDS) {
        size_t *copy = malloc((partition->parts + 1) * sizeof *copy);
        if (copy == NULL) {
            return false;
        }
        partition->bounds = memcpy(copy, bounds, (partition->parts + 1) * sizeof *copy);
    }
    if (partition->kind == FT_WEIGHTED) {
        double *copy = malloc(partition->parts * sizeof *copy);
        if (copy == NULL) {
            return false;
        }
        partition->weights = memcpy(copy, weights, partition->parts * sizeof *copy);
    }
    return true;
}

static int ftl_map_divided(ftl_block *block, const ftl_nodes *nodes, size_t page, size_t alignment) {
    ftl_owners owners;
    if (ftl_owners_of(&block->partition, nodes, &owners) != 0) {
        return -1;
    }
    /* The layout depends on the address in one thing only: with which node pages in turn begin. */
    ftl_layout layout;
    ftl_layout_of(&block->partition, &owners, 0, block->bytes, page, &layout);
    unsigned flags = ftl_page_flags(&layout, nodes, block->bytes, block->flags);
    block->pointer =
        ftl_map(block->mapped, layout.modulus != 0 ? page : alignment, layout.modulus, layout.remainder, page);
    if (block->pointer == MAP_FAILED) {
        ftl_owners_release(&owners);
        return -1;
    }
    uintptr_t from = (uintptr_t)block->pointer;
    for (size_t i = 0; i < layout.count; i++) {
        layout.pieces[i].from += from;
        layout.pieces[i].to += from;
    }
    ftl_doubt_layout(&layout, block->action);
    int error =
        layout.shape != FTL_SHAPE_DEFAULT && ftl_apply(&layout, nodes, from, from + block->mapped, block->action) != 0
            ? errno
            : 0;
    if (ftl_advise_huge(from, from + block->mapped, flags, block->action) != 0 && error == 0) {
        error = errno;
    }
    ftl_owners_release(&owners);
    if (error == 0 && layout.is_coarser) {
        error = E2BIG;
    }
    if (error != 0 && (block->flags & FT_STRICT) != 0) {
        munmap(block->pointer, block->mapped);
        errno = error;
        return -1;
    }
    return 0;
}

static int ftl_map_whole(ftl_block *block, const ftl_nodes *nodes, size_t page, size_t alignment) {
    const ft_partition *p = &block->partition;
    bool is_absent = p->kind == FT_BIND && p->node != nodes->number[0];
    bool is_refused = is_absent && (block->flags & FT_STRICT) != 0;
    block->pointer = is_refused ? MAP_FAILED : ftl_map(block->mapped, alignment, 0, 0, page);
    if (block->pointer == MAP_FAILED && !is_refused) {
        return -1;
    }
    if (is_absent) {
        ftl_doubt("%s: memory was not placed on node %d: it has no memory that this process may use: %s", block->action,
                  p->node, ftl_advice(EINVAL));
    } else if (p->kind != FT_LOCAL) {
        ftl_doubt("%s" FTL_ONE_NODE, block->action);
    }
    if (is_refused) {
        errno = ENODEV;
        return -1;
    }
    uintptr_t from = (uintptr_t)block->pointer;
    if (ftl_advise_huge(from, from + block->mapped, block->flags, block->action) != 0 &&
        (block->flags & FT_STRICT) != 0) {
        int error = errno;
        munmap(block->pointer, block->mapped);
        errno = error;
        return -1;
    }
    return 0;
}

static int ftl_map_block(ftl_block *block) {
    const ftl_nodes *nodes = ftl_nodes_get();
    size_t page = ftl_page_bytes();
    block->mapped = (block->bytes + page - 1) / page * page;
    /* Huge pages lie at multiples of their size. */
    bool is_large =
        nodes->huge_bytes > page && (block->bytes / 2 >= nodes->huge_bytes ||
                                     ((block->flags & FT_HUGE_PAGES) != 0 && block->bytes >= nodes->huge_bytes));
    size_t alignment = is_large && (block->flags & FT_SMALL_PAGES) == 0 ? nodes->huge_bytes : page;
    if (block->partition.kind == FT_REPLICATED) {
        return ftl_map_copies(block, nodes);
    }
    if (nodes->count == 1 || block->partition.kind == FT_LOCAL) {
        return ftl_map_whole(block, nodes, page, alignment);
    }
    return ftl_map_divided(block, nodes, page, alignment);
}

static void unmap_block(const ftl_block *block) {
    munmap(block->pointer, block->mapped);
    for (size_t i = 1; i < block->copies; i++) {
        munmap(block->copy[i], block->mapped);
    }
}

/* Also in place of what was said about placement meanwhile. */
static void *no_memory(size_t bytes, const char *action) {
    ftl_doubt("%s: %zu bytes could not be mapped: there is no memory for them, or a limit (ulimit -v, a container's, "
              "vm.max_map_count): ask for less, or raise the limit",
              action, bytes);
    errno = ENOMEM;
    return NULL;
}

__attribute__((noinline)) static void *ftl_allocate(size_t bytes, const ft_partition *partition, unsigned flags,
                                                    const char *action) {
    if (bytes > PTRDIFF_MAX - ftl_page_bytes()) {
        return no_memory(bytes, action);
    }
    ftl_block *block = calloc(1, sizeof *block);
    if (block == NULL) {
        return no_memory(bytes, action);
    }
    block->action = action;
    block->bytes = bytes;
    block->flags = flags;
    block->partition = *partition;
    if (!copy_arrays(&block->partition) || ftl_map_block(block) != 0) {
        int error = errno;
        bool is_mapped = block->pointer != NULL && block->pointer != MAP_FAILED;
        ftl_block_delete(block);
        errno = error;
        return error == ENOMEM && !is_mapped ? no_memory(bytes, action) : NULL;
    }
    void *pointer = block->pointer;
    if (!ftl_register(block)) {
        unmap_block(block);
        ftl_block_delete(block);
        return no_memory(bytes, action);
    }
    return pointer;
}

__attribute__((noinline)) static void *ftl_allocate_checked(size_t bytes, const ft_partition *partition,
                                                            unsigned flags) {
    static const ft_partition local;
    const unsigned known = FT_HUGE_PAGES | FT_SMALL_PAGES | FT_STRICT, sizes = FT_HUGE_PAGES | FT_SMALL_PAGES;
    const ft_partition *p = partition == NULL ? &local : partition;
    if ((flags & ~known) != 0 || (flags & sizes) == sizes || ftl_check(p) != 0) {
        errno = EINVAL;
        return NULL;
    }
    bool is_small = bytes == 0 || (bytes < FT_SMALL_BYTES && p->kind != FT_REPLICATED);
    return is_small ? malloc(bytes) : ftl_allocate(bytes, p, flags, "ft_alloc");
}

_Static_assert(FTL_MAX_TEAMS == 64 && FTL_MAX_PARTS == (size_t)1 << 20, "the bounds of ft_is_plain_");

void *ft_alloc_block_(size_t bytes, const ft_partition *partition, unsigned flags) {
    /* For callers that the header does not spare this call: a few comparisons, and a jump. */
    if (__builtin_expect(bytes < FT_SMALL_BYTES && flags == 0 && ft_is_plain_(partition), 1)) {
        return malloc(bytes);
    }
    return ftl_allocate_checked(bytes, partition, flags);
}

void *ft_alloc(size_t bytes, const ft_partition *partition, unsigned flags) __attribute__((alias("ft_alloc_block_")));

/* malloc's large blocks begin behind a header, so an address within a page is never ours. */
static bool may_be_block(const void *pointer) {
    return ((uintptr_t)pointer & 4095) == 0;
}

bool ft_free_block_(void *pointer) {
    if (pointer == NULL) {
        return true;
    }
    int error = errno;
    ftl_block *block = ftl_unregister(pointer);
    if (block == NULL) {
        return false;
    }
    unmap_block(block);
    ftl_block_delete(block);
    errno = error;
    return true;
}

void ft_free(void *pointer) {
    if (__builtin_expect(!may_be_block(pointer), 1) || !ft_free_block_(pointer)) {
        free(pointer);
    }
}

size_t ft_size(const void *pointer) {
    ftl_block block;
    return pointer != NULL && may_be_block(pointer) && ftl_find(pointer, &block) ? block.bytes : 0;
}

/* Moves the contents to a new block: where mremap cannot go, because policies have split the mapping. */
static void *ftl_copy_to_new(ftl_block *block, size_t bytes) {
    void *pointer = ftl_allocate(bytes, &block->partition, block->flags, "ft_realloc");
    if (pointer == NULL) {
        return NULL;
    }
    memcpy(pointer, block->pointer, block->bytes < bytes ? block->bytes : bytes);
    ft_free(block->pointer);
    return pointer;
}

static bool is_placed_by_address(const ft_partition *p, const ftl_nodes *nodes) {
    return nodes->count > 1 && p->kind == FT_CYCLIC;
}

void *ft_realloc(void *pointer, size_t bytes) {
    ftl_block found;
    if (bytes == 0) {
        errno = EINVAL;
        return NULL;
    }
    if (pointer == NULL) {
        return ft_alloc(bytes, NULL, 0);
    }
    if (!may_be_block(pointer) || !ftl_find(pointer, &found)) {
        return realloc(pointer, bytes);
    }
    size_t page = ftl_page_bytes();
    if (found.partition.kind == FT_REPLICATED) {
        errno = EINVAL;
        return NULL;
    }
    if (bytes > PTRDIFF_MAX - page) {
        return no_memory(bytes, "ft_realloc");
    }
    const ftl_nodes *nodes = ftl_nodes_get();
    size_t mapped = (bytes + page - 1) / page * page;
    if (mapped > found.mapped && is_placed_by_address(&found.partition, nodes)) {
        return ftl_copy_to_new(&found, bytes);
    }
    /* Out of the list while it moves: another thread may get its old address. */
    ftl_block *block = ftl_take_out(pointer);
    if (block == NULL) {
        errno = EINVAL; /* freed by another thread meanwhile */
        return NULL;
    }
    void *moved = pointer;
    if (mapped < block->mapped) {
        munmap((char *)pointer + mapped, block->mapped - mapped);
    } else if (mapped > block->mapped) {
        moved = mremap(pointer, block->mapped, mapped, MREMAP_MAYMOVE);
    }
    if (moved == MAP_FAILED) {
        ftl_put_back(block);
        return ftl_copy_to_new(block, bytes);
    }
    block->pointer = moved;
    block->bytes = bytes;
    block->mapped = mapped;
    if (nodes->count > 1 && block->partition.kind != FT_LOCAL) {
        ftl_place_pages((uintptr_t)moved, mapped, &block->partition, block->flags & ~(unsigned)FT_STRICT, "ft_realloc");
    }
    ftl_put_back(block);
    return moved;
}
