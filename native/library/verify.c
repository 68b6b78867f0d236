/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * Where pages are, against where a partition wants them. Each page of the range is asked about, 512 in a call: nothing is sampled.
 */
#include "library.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BATCH_PAGES 512
#define TURNS 16 /* in a stretch of interleaved memory */

typedef struct checker {
    size_t page;
    uintptr_t first, last; /* whole pages */
    size_t count;
    void *pages[BATCH_PAGES];
    int target[BATCH_PAGES];    /* -1: none */
    uint64_t also[BATCH_PAGES]; /* nodes below 64 that own bytes of a shared page; 0: one owner */
    size_t on_node[FTL_MAX_NODES];
    ft_verdict *verdict;
} checker;

static void flush_batch(checker *c) {
    int node[BATCH_PAGES];
    ft_verdict *v = c->verdict;
    if (c->count > 0 && v->error == 0) {
        v->error = ftl_query_pages(c->pages, node, c->count) != 0 ? errno : 0;
        for (size_t i = 0; v->error == 0 && i < c->count; i++) {
            if (node[i] < 0 || node[i] >= FTL_MAX_NODES) {
                continue; /* absent, or the page of zeros that all share */
            }
            bool is_shared_owner = node[i] < 64 && (c->also[i] >> node[i] & 1) != 0;
            v->present++;
            v->on_target += node[i] == c->target[i] || is_shared_owner;
            v->border += c->also[i] != 0;
            v->node_pages[node[i] < 64 ? node[i] : 63]++;
            c->on_node[node[i]]++;
        }
    }
    c->count = 0;
}

static bool check_piece(void *to_what, uintptr_t from, uintptr_t to, int node, const ftl_sharers *sharers) {
    checker *c = to_what;
    uint64_t also = 0;
    for (size_t i = 0; sharers != NULL && sharers->count > 1 && i < sharers->count; i++) {
        also |= sharers->node[i] < 64 ? (uint64_t)1 << sharers->node[i] : 0;
    }
    from = from > c->first ? from : c->first;
    to = to < c->last ? to : c->last;
    for (uintptr_t at = from; at < to && c->verdict->error == 0; at += c->page) {
        c->pages[c->count] = (void *)at;
        c->target[c->count] = node;
        c->also[c->count++] = also;
        c->verdict->pages++;
        if (c->count == BATCH_PAGES) {
            flush_batch(c);
        }
    }
    return c->verdict->error == 0;
}

/* A range whose pages all have one target (-1: none). */
static void check_whole(checker *c, uintptr_t address, size_t bytes, int target) {
    c->first = address + (c->page - address % c->page) % c->page;
    c->last = address + bytes - (address + bytes) % c->page;
    check_piece(c, c->first, c->last, target, NULL);
    flush_batch(c);
}

/* Interleaved: of each stretch of the range, a node may have its fair share of the pages; what it has more is not on target. (Of the
 * whole range, a first half on one node and a second half on the other would be fair shares too.) Pages need not be in turn exactly. */
static size_t check_interleaved(checker *c, uintptr_t address, size_t bytes, const ftl_nodes *nodes) {
    c->first = address + (c->page - address % c->page) % c->page;
    c->last = address + bytes - (address + bytes) % c->page;
    size_t stretch = nodes->count * ftl_turn_bytes(nodes, bytes) * TURNS, spread = 0;
    for (uintptr_t from = c->first, to; from < c->last; from = to) {
        to = c->last - from < stretch + stretch / 2 ? c->last : from + stretch;
        size_t before = c->verdict->present;
        memset(c->on_node, 0, sizeof c->on_node);
        check_piece(c, from, to, -1, NULL);
        flush_batch(c);
        size_t fair = (c->verdict->present - before + nodes->count - 1) / nodes->count;
        for (size_t i = 0; i < nodes->count; i++) {
            size_t pages = c->on_node[nodes->number[i]];
            spread += pages < fair ? pages : fair;
        }
    }
    return spread;
}

static int check_replicated(checker *c, const void *pointer, size_t bytes, const ftl_nodes *nodes) {
    ftl_block block;
    if (!ftl_find(pointer, &block) || block.partition.kind != FT_REPLICATED || bytes > block.mapped) {
        return EINVAL;
    }
    for (size_t i = 0; i < block.copies; i++) {
        check_whole(c, (uintptr_t)block.copy[i], bytes, nodes->number[i]);
    }
    return 0;
}

int ft_verify(const void *pointer, size_t bytes, const ft_partition *partition, ft_verdict *verdict) {
    ft_partition local = ft_local();
    partition = partition == NULL ? &local : partition;
    uintptr_t address = (uintptr_t)pointer;
    if (verdict == NULL || bytes > PTRDIFF_MAX || (bytes > 0 && pointer == NULL) || address > UINTPTR_MAX - bytes ||
        ftl_check(partition) != 0) {
        errno = EINVAL;
        return -1;
    }
    *verdict = (ft_verdict){.share = NAN};
    const ftl_nodes *nodes = ftl_nodes_get();
    size_t page = ftl_page_bytes();
    checker c = {.page = page, .first = address + (page - address % page) % page, .verdict = verdict};
    c.last = address + bytes - (address + bytes) % page;
    if (partition->kind == FT_REPLICATED) {
        int error = check_replicated(&c, pointer, bytes, nodes);
        if (error != 0) {
            errno = verdict->error = error;
            return -1;
        }
    } else if (!ftl_has_owners(partition)) {
        if (partition->kind == FT_INTERLEAVED) {
            verdict->on_target = check_interleaved(&c, address, bytes, nodes);
        } else {
            check_whole(&c, address, bytes, partition->kind == FT_LOCAL ? ftl_current_node(nodes) : -1);
        }
    } else {
        ftl_owners owners;
        if (ftl_owners_of(partition, nodes, &owners) != 0) {
            verdict->error = errno;
            return -1;
        }
        ftl_for_pieces(partition, &owners, address, bytes, page, check_piece, &c);
        flush_batch(&c);
        ftl_owners_release(&owners);
    }
    if (verdict->error != 0) {
        ftl_doubt("ft_verify: it is not known where the memory is: move_pages: %s: %s", strerror(verdict->error),
                  ftl_advice(verdict->error));
        errno = verdict->error;
        return -1;
    }
    if (verdict->present > 0) {
        verdict->share = (double)verdict->on_target / (double)verdict->present;
    }
    return 0;
}

int ft_expect(const void *pointer, size_t bytes, const ft_partition *partition, double share) {
    ft_verdict verdict;
    if (!(share >= 0 && share <= 1)) {
        errno = EINVAL;
        return -1;
    }
    if (ft_verify(pointer, bytes, partition, &verdict) != 0) {
        return -1;
    }
    uintptr_t address = (uintptr_t)pointer;
    if (verdict.present == 0 && verdict.pages > 0 &&
        !ftl_is_mapped(address - address % ftl_page_bytes(), address + bytes)) {
        ftl_doubt("ft_expect: nothing was judged: the range, or a part of it, is not mapped: give memory that has been "
                  "allocated");
        errno = EFAULT;
        return -1;
    }
    if (verdict.present == 0) {
        ftl_doubt("ft_expect: nothing was judged: no whole page of the range is present: touch the memory first");
        errno = ENODATA;
        return -1;
    }
    if (ftl_nodes_get()->machine_count == 1) {
        ftl_doubt_text(
            "ft_expect: nothing was tested, because this machine has one node: run the test on a machine with several");
    }
    return verdict.share >= share;
}

void ft_expect_or_abort(const void *pointer, size_t bytes, const ft_partition *partition, double share,
                        const char *file, int line, const char *expression) {
    int expected = ft_expect(pointer, bytes, partition, share);
    if (expected > 0) {
        return;
    }
    char text[2048];
    if (expected < 0) {
        int error = errno;
        const char *doubt = error == EINVAL ? "the arguments are invalid" : ft_last_doubt();
        fprintf(stderr, "%s:%d: placement of %s not judged: %s\n", file, line, expression,
                doubt != NULL ? doubt : strerror(error));
        return;
    }
    ft_report(text, sizeof text, expression, pointer, bytes, partition);
    fprintf(stderr, "%s:%d: expected at least %.1f %% of the present pages on target\n%s", file, line, share * 100,
            text);
    abort();
}
