/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * A partition as policies. A policy of its own splits a mapping, and a process may have 65,530 of them: a block gets at most
 * FTL_MAX_PIECES. Finer partitions become pages in turn over the nodes that own parts.
 */
#include "library.h"

static bool add_piece(void *to_what, uintptr_t from, uintptr_t to, int node, const ftl_sharers *sharers) {
    (void)sharers;
    ftl_layout *layout = to_what;
    if (layout->count > 0 && layout->pieces[layout->count - 1].node == node) {
        layout->pieces[layout->count - 1].to = to;
        return true;
    }
    if (layout->count == FTL_MAX_PIECES) {
        layout->shape = FTL_SHAPE_MANY;
        return false;
    }
    layout->pieces[layout->count++] = (ftl_piece){from, to, node};
    return true;
}

static size_t collect_nodes(const ftl_owners *owners, ftl_node_set *nodes) {
    size_t count = 0;
    *nodes = (ftl_node_set){{0}};
    for (size_t i = 0; i < owners->parts; i++) {
        size_t node = (size_t)ftl_owner(owners, i);
        if (!ftl_is_set(nodes->words, node)) {
            ftl_set(nodes->words, node);
            count++;
        }
    }
    return count;
}

void ftl_layout_of(const ft_partition *partition, const ftl_owners *owners, uintptr_t address, size_t bytes,
                   size_t page, ftl_layout *layout) {
    layout->count = layout->modulus = layout->remainder = 0;
    layout->is_coarser = false;
    layout->shape = FTL_SHAPE_DEFAULT;
    if (partition->kind == FT_INTERLEAVED) {
        layout->shape = FTL_SHAPE_INTERLEAVE;
        layout->nodes = (ftl_node_set){{0}};
        for (size_t i = 0; i < owners->nodes->count; i++) {
            ftl_set(layout->nodes.words, (size_t)owners->nodes->number[i]);
        }
        return;
    }
    if (!ftl_has_owners(partition)) {
        return;
    }
    layout->shape = FTL_SHAPE_PIECES;
    size_t distinct = 0, first = 0;
    if (ftl_is_page_interleave(partition, owners, page, &layout->nodes, &distinct, &first) && distinct > 1 &&
        bytes / page > distinct) {
        layout->shape = FTL_SHAPE_INTERLEAVE;
        layout->modulus = distinct;
        layout->remainder = first;
        return;
    }
    if (partition->kind == FT_CYCLIC && ftl_shares_every_page(partition, owners->parts, page) &&
        collect_nodes(owners, &layout->nodes) > 1) {
        layout->shape = FTL_SHAPE_MANY;
        return;
    }
    ftl_for_pieces(partition, owners, address, bytes, page, add_piece, layout);
    if (layout->shape == FTL_SHAPE_MANY) {
        layout->count = 0;
        layout->is_coarser = true;
        collect_nodes(owners, &layout->nodes);
    }
}
