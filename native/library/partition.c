/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * Pure arithmetic: a partition and the owners of its parts -> which node each page belongs to.
 *
 * Bytes fall into segments [from, to) of one node each, in ascending order; a page goes to the node with most of its bytes. Every
 * walk costs at most a step for each part, and one for each chunk or shared page of FT_CYCLIC.
 */
#include "library.h"

#include <errno.h>
#include <math.h>

int ftl_check_kind(const ft_partition *p) {
    if (p->kind < FT_LOCAL || p->kind > FT_BIND || (p->unit != FT_THREADS && p->unit != FT_NODES) || p->team < 0 ||
        p->team >= FTL_MAX_TEAMS || p->parts > FTL_MAX_PARTS) {
        return EINVAL;
    }
    switch (p->kind) {
    case FT_CYCLIC:
        return p->chunk == 0 ? EINVAL : 0;
    case FT_BY_BOUNDS:
        return p->parts == 0 || p->bounds == NULL ? EINVAL : 0;
    case FT_WEIGHTED:
        return p->parts == 0 || p->weights == NULL ? EINVAL : 0;
    case FT_BIND:
        return p->node < 0 || p->node >= FTL_MAX_NODES ? EINVAL : 0;
    default:
        return 0;
    }
}

int ftl_check(const ft_partition *p) {
    int error = ftl_check_kind(p);
    if (error != 0) {
        return error;
    }
    if (p->kind == FT_BY_BOUNDS) {
        for (size_t i = 0; i < p->parts; i++) {
            if (p->bounds[i] > p->bounds[i + 1]) {
                return EINVAL;
            }
        }
    }
    if (p->kind == FT_WEIGHTED) {
        bool any = false;
        for (size_t i = 0; i < p->parts; i++) {
            if (!isfinite(p->weights[i]) || p->weights[i] < 0) {
                return EINVAL;
            }
            any = any || p->weights[i] > 0;
        }
        return any ? 0 : EINVAL;
    }
    return 0;
}

bool ftl_has_owners(const ft_partition *p) {
    return p->kind != FT_LOCAL && p->kind != FT_INTERLEAVED && p->kind != FT_REPLICATED;
}

/* The segments of a block, one after another. Neighbours of one node are one segment. */
typedef struct segments {
    const ft_partition *partition;
    const ftl_owners *owners;
    size_t bytes;
    size_t part;    /* the next part; FT_CYCLIC: the next chunk */
    size_t cut;     /* where the last part ended */
    double most;    /* FT_WEIGHTED: the largest weight, so that sums stay finite */
    double total;   /* the sum of weights / most */
    double reached; /* the same up to the next part */
    bool is_single; /* all of it belongs to one node */
    size_t from, to;
    int node;
} segments;

static bool has_single_owner(const ft_partition *p, const ftl_owners *owners) {
    for (size_t i = 1; p->kind == FT_CYCLIC && i < owners->parts; i++) {
        if (ftl_owner(owners, i) != ftl_owner(owners, 0)) {
            return false;
        }
    }
    return p->kind == FT_CYCLIC || p->kind == FT_BIND;
}

static segments begin_segments(const ft_partition *p, const ftl_owners *owners, size_t bytes) {
    segments s = {.partition = p, .owners = owners, .bytes = bytes, .is_single = has_single_owner(p, owners)};
    if (p->kind == FT_WEIGHTED) {
        for (size_t i = 0; i < p->parts; i++) {
            s.most = p->weights[i] > s.most ? p->weights[i] : s.most;
        }
        for (size_t i = 0; i < p->parts; i++) {
            s.total += p->weights[i] / s.most;
        }
    }
    return s;
}

/* Where the next part ends. */
static size_t next_cut(segments *s) {
    const ft_partition *p = s->partition;
    size_t parts = s->owners->parts, cut = s->bytes;
    switch (p->kind) {
    case FT_BLOCKED:
        /* bytes * (part + 1) / parts, without overflow: there are at most 2^20 parts. */
        cut = s->bytes / parts * (s->part + 1) + (size_t)((uint64_t)(s->bytes % parts) * (s->part + 1) / parts);
        break;
    case FT_CYCLIC:
        return s->bytes - s->cut <= p->chunk ? s->bytes : s->cut + p->chunk;
    case FT_BY_BOUNDS:
        cut = p->bounds[s->part + 1];
        break;
    case FT_WEIGHTED:
        s->reached += p->weights[s->part] / s->most;
        double end = (double)s->bytes * s->reached / s->total;
        cut = end < (double)s->bytes ? (size_t)end : s->bytes;
        break;
    default:
        break;
    }
    return s->part + 1 >= parts || cut > s->bytes ? s->bytes : cut < s->cut ? s->cut : cut;
}

/* Goes to the next segment. Call it only while `to` is less than `bytes`. */
static void next_segment(segments *s) {
    s->from = s->to;
    if (s->is_single) {
        s->node = s->partition->kind == FT_BIND ? s->partition->node : ftl_owner(s->owners, 0);
        s->to = s->bytes;
        return;
    }
    while (s->cut < s->bytes) {
        size_t part = s->partition->kind == FT_CYCLIC ? s->part % s->owners->parts : s->part;
        int node = ftl_owner(s->owners, part);
        if (s->to > s->from && node != s->node) {
            return;
        }
        size_t cut = next_cut(s);
        s->part++;
        if (cut > s->cut) {
            s->node = node;
            s->cut = s->to = cut;
        }
    }
}

static void share(ftl_sharers *sharers, int node, size_t bytes) {
    for (size_t i = 0; i < sharers->count; i++) {
        if (sharers->node[i] == node) {
            sharers->bytes[i] += bytes;
            return;
        }
    }
    if (bytes > 0 && sharers->count < FTL_MAX_SHARERS) {
        sharers->node[sharers->count] = node;
        sharers->bytes[sharers->count++] = bytes;
    }
}

static int most_bytes(const ftl_sharers *sharers) {
    size_t best = 0;
    for (size_t i = 1; i < sharers->count; i++) {
        best = sharers->bytes[i] > sharers->bytes[best] ? i : best;
    }
    return sharers->node[best];
}

bool ftl_shares_every_page(const ft_partition *p, size_t parts, size_t page) {
    return p->kind == FT_CYCLIC && p->chunk <= page && parts <= page / p->chunk;
}

/* How many of the first `bytes` bytes belong to one part of FT_CYCLIC. */
static size_t dealt_before(size_t bytes, size_t part, size_t parts, size_t chunk) {
    size_t period = parts * chunk, rest = bytes % period, start = part * chunk;
    size_t more = rest <= start ? 0 : rest - start < chunk ? rest - start : chunk;
    return bytes / period * chunk + more;
}

/* Pages that all parts share: without a step for each chunk. The first of several with most bytes is the first of the parts. */
static void for_shared_pages(const ft_partition *p, const ftl_owners *owners, uintptr_t address, size_t bytes,
                             size_t page, ftl_piece_fn *piece, void *to_what) {
    uintptr_t end = address + bytes;
    for (uintptr_t at = address - address % page; at < end; at += page) {
        size_t from = at < address ? 0 : at - address, to = end - at < page ? bytes : at + page - address;
        ftl_sharers sharers = {.count = 0};
        for (size_t part = 0; part < owners->parts; part++) {
            share(&sharers, ftl_owner(owners, part),
                  dealt_before(to, part, owners->parts, p->chunk) - dealt_before(from, part, owners->parts, p->chunk));
        }
        if (!piece(to_what, at, at + page, most_bytes(&sharers), sharers.count > 1 ? &sharers : NULL)) {
            return;
        }
    }
}

void ftl_for_pieces(const ft_partition *p, const ftl_owners *owners, uintptr_t address, size_t bytes, size_t page,
                    ftl_piece_fn *piece, void *to_what) {
    segments s = begin_segments(p, owners, bytes);
    if (bytes == 0) {
        return;
    }
    if (!s.is_single && ftl_shares_every_page(p, owners->parts, page)) {
        for_shared_pages(p, owners, address, bytes, page, piece, to_what);
        return;
    }
    uintptr_t at = address - address % page, end = address + bytes, last = end + (page - end % page) % page;
    next_segment(&s);
    while (at < last) {
        uintptr_t page_end = end - at < page ? end : at + page;
        while (address + s.to <= (at < address ? address : at)) {
            next_segment(&s);
        }
        if (address + s.to >= page_end) {
            uintptr_t border = address + s.to;
            uintptr_t to = border == end ? last : border - border % page;
            if (!piece(to_what, at, to, s.node, NULL)) {
                return;
            }
            at = to;
            continue;
        }
        ftl_sharers sharers = {.count = 0};
        uintptr_t from = at < address ? address : at;
        while (address + s.to < page_end) {
            share(&sharers, s.node, address + s.to - from);
            from = address + s.to;
            next_segment(&s);
        }
        share(&sharers, s.node, page_end - from);
        if (!piece(to_what, at, at + page, most_bytes(&sharers), &sharers)) {
            return;
        }
        at += page;
    }
}

bool ftl_is_page_interleave(const ft_partition *p, const ftl_owners *owners, size_t page, ftl_node_set *nodes,
                            size_t *count, size_t *first) {
    *nodes = (ftl_node_set){{0}};
    if (p->kind != FT_CYCLIC || p->chunk != page) {
        return false;
    }
    int16_t number[FTL_MAX_NODES];
    size_t distinct = 0, start = 0;
    for (size_t i = 0; i < owners->parts && i < FTL_MAX_NODES; i++) {
        ftl_set(nodes->words, (size_t)ftl_owner(owners, i));
    }
    for (size_t node = 0; node < FTL_MAX_NODES; node++) {
        if (ftl_is_set(nodes->words, node)) {
            start = (int)node == ftl_owner(owners, 0) ? distinct : start;
            number[distinct++] = (int16_t)node;
        }
    }
    if (owners->parts % distinct != 0) {
        return false;
    }
    for (size_t i = 0; i < owners->parts; i++) {
        if (ftl_owner(owners, i) != number[(start + i) % distinct]) {
            return false;
        }
    }
    *count = distinct;
    *first = start;
    return true;
}
