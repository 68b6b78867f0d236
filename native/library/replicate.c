/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * Replicated blocks: a mapping on each node. The program fills the first; ft_replicate copies it to the others.
 */
#include "library.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static int ftl_map_copy(ftl_block *block, const ftl_nodes *nodes, size_t i) {
    size_t page = ftl_page_bytes();
    bool is_huge = (block->flags & FT_HUGE_PAGES) != 0 && nodes->huge_bytes > page && block->bytes >= nodes->huge_bytes;
    void *at = ftl_map(block->mapped, is_huge ? nodes->huge_bytes : page, 0, 0, page);
    if (at == MAP_FAILED) {
        return -1;
    }
    block->copy[block->copies++] = at;
    uintptr_t from = (uintptr_t)at, to = from + block->mapped;
    int error = ftl_advise_huge(from, to, block->flags, block->action) != 0 ? errno : 0;
    if (nodes->count > 1) {
        ftl_layout layout = {.shape = FTL_SHAPE_PIECES, .count = 1};
        layout.pieces[0] = (ftl_piece){from, to, nodes->number[i]};
        error = ftl_apply(&layout, nodes, from, to, block->action) != 0 ? errno : error;
    }
    if (error != 0 && (block->flags & FT_STRICT) != 0) {
        errno = error;
        return -1;
    }
    return 0;
}

int ftl_map_copies(ftl_block *block, const ftl_nodes *nodes) {
    block->copy = calloc(nodes->count, sizeof *block->copy);
    for (size_t i = 0; block->copy != NULL && i < nodes->count; i++) {
        if (ftl_map_copy(block, nodes, i) != 0) {
            int error = errno;
            for (size_t j = 0; j < block->copies; j++) {
                munmap(block->copy[j], block->mapped);
            }
            errno = error;
            return -1;
        }
    }
    if (block->copy == NULL) {
        return -1;
    }
    block->pointer = block->copy[0];
    if (nodes->count == 1) {
        ftl_doubt_text("ft_alloc" FTL_ONE_NODE);
    }
    return 0;
}

static void copy_to_node(const void *argument, size_t i, size_t end) {
    const ftl_block *block = argument;
    (void)end;
    memcpy(block->copy[i], block->pointer, block->bytes);
}

int ft_replicate(void *pointer) {
    ftl_block block;
    if (pointer == NULL || !ftl_find(pointer, &block) || block.partition.kind != FT_REPLICATED) {
        errno = EINVAL;
        return -1;
    }
    ftl_work_on_nodes(ftl_nodes_get(), 1, copy_to_node, &block, "ft_replicate");
    return (int)block.copies;
}

void *ft_local_copy(const void *pointer) {
    ftl_block block;
    if (pointer == NULL || !ftl_find(pointer, &block) || block.partition.kind != FT_REPLICATED) {
        return (void *)pointer;
    }
    const ftl_nodes *nodes = ftl_nodes_get();
    size_t i = ftl_node_index(nodes, ftl_current_node(nodes));
    return i < block.copies ? block.copy[i] : block.pointer;
}
