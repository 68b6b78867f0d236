/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * Checks the arithmetic of partitions against a count of single bytes: random partitions, addresses, sizes and owners, with pages of
 * 16 to 64 bytes so that every border case comes often.
 */
#include "../library.h"
#include "check.h"

#include <stdlib.h>
#include <string.h>

#define MAX_BYTES 4096
#define MAX_PARTS 40

static uint64_t state = 88172645463325252u;

static size_t random_below(size_t limit) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (size_t)(state % limit);
}

/* The part that owns a byte, by the definitions in firsttouch.h. Weights are whole numbers, whose sums are exact. */
static size_t part_of(const ft_partition *p, size_t byte, size_t bytes) {
    double total = 0, sum = 0;
    switch (p->kind) {
    case FT_CYCLIC:
        return byte / p->chunk % p->parts;
    case FT_BLOCKED:
        for (size_t i = 0; i < p->parts; i++) {
            if (byte < (i + 1) * bytes / p->parts) {
                return i;
            }
        }
        break;
    case FT_BY_BOUNDS:
        for (size_t i = 0; i + 1 < p->parts; i++) {
            if (byte < p->bounds[i + 1]) {
                return i;
            }
        }
        return p->parts - 1;
    case FT_WEIGHTED:
        for (size_t i = 0; i < p->parts; i++) {
            total += p->weights[i];
        }
        for (size_t i = 0; i < p->parts; i++) {
            sum += p->weights[i];
            /* byte < bytes * sum / total, without the error of a division that is exact only for some totals */
            if ((double)(byte + 1) * total <= (double)bytes * sum) {
                return i;
            }
        }
        return p->parts - 1;
    default:
        break;
    }
    return 0;
}

typedef struct answer {
    size_t page;
    uintptr_t address, expected_next;
    size_t bytes;
    const ft_partition *partition;
    const ftl_owners *owners;
    int byte_node[MAX_BYTES];
    size_t pages;
} answer;

static bool check_piece(void *to_what, uintptr_t from, uintptr_t to, int node, const ftl_sharers *sharers) {
    answer *a = to_what;
    CHECK(from == a->expected_next, "a gap");
    CHECK(from % a->page == 0 && to % a->page == 0 && from < to, "not pages");
    CHECK(sharers == NULL || to - from == a->page, "a shared piece of several pages");
    a->expected_next = to;
    for (uintptr_t page = from; page < to; page += a->page) {
        size_t of_node[8] = {0}, first_of[8], distinct = 0;
        for (size_t i = 0; i < 8; i++) {
            first_of[i] = SIZE_MAX;
        }
        a->pages++;
        for (uintptr_t at = page; at < page + a->page; at++) {
            if (at >= a->address && at < a->address + a->bytes) {
                size_t byte = at - a->address;
                of_node[a->byte_node[byte]]++;
                if (first_of[a->byte_node[byte]] == SIZE_MAX) {
                    first_of[a->byte_node[byte]] = byte;
                }
            }
        }
        size_t most = 0;
        for (size_t i = 0; i < 8; i++) {
            distinct += of_node[i] > 0;
            most = of_node[i] > most ? of_node[i] : most;
        }
        CHECK(node >= 0 && node < 8 && of_node[node] == most, "kind %d page %zu: node %d has %zu bytes, another %zu",
              a->partition->kind, (size_t)page, node, of_node[node], most);
        CHECK((sharers != NULL && sharers->count > 1) == (distinct > 1), "kind %d: %zu owners", a->partition->kind,
              distinct);
        for (size_t i = 0; sharers != NULL && i < sharers->count; i++) {
            CHECK(sharers->bytes[i] == of_node[sharers->node[i]], "kind %d: bytes of node %d", a->partition->kind,
                  sharers->node[i]);
        }
    }
    return failures < 20;
}

static void check_random(ftl_nodes *nodes) {
    size_t bounds[MAX_PARTS + 1];
    double weights[MAX_PARTS];
    int16_t table[MAX_PARTS];
    answer a = {.page = (size_t)16 << random_below(3), .bytes = 1 + random_below(MAX_BYTES - 1)};
    size_t parts = 1 + random_below(MAX_PARTS);
    static const int kinds[] = {FT_BLOCKED, FT_CYCLIC, FT_BY_BOUNDS, FT_WEIGHTED, FT_BIND};
    ft_partition p = {.kind = kinds[random_below(5)], .parts = parts, .bounds = bounds, .weights = weights, .node = 3};
    p.chunk = 1 + random_below(random_below(2) ? 12 : 300);
    double any = 0;
    for (size_t i = 0; i < parts; i++) {
        table[i] = (int16_t)random_below(1 + random_below(8));
        weights[i] = (double)(random_below(3) == 0 ? 0 : random_below(9));
        any += weights[i];
        bounds[i] = random_below(MAX_BYTES * 5 / 4);
    }
    bounds[parts] = random_below(MAX_BYTES * 5 / 4);
    weights[0] += any == 0;
    for (size_t i = 1; i <= parts; i++) { /* insertion sort */
        for (size_t j = i; j > 0 && bounds[j] < bounds[j - 1]; j--) {
            size_t swap = bounds[j];
            bounds[j] = bounds[j - 1];
            bounds[j - 1] = swap;
        }
    }
    if (p.kind == FT_WEIGHTED) {
        /* Cuts at bytes * sum / total are exact if the total divides the bytes. */
        double total = 0;
        for (size_t i = 0; i < parts; i++) {
            total += weights[i];
        }
        a.bytes = a.bytes / (size_t)total * (size_t)total;
        /* Sums of weights / most are exact if the largest is a power of two. */
        double most = 0;
        for (size_t i = 0; i < parts; i++) {
            most = weights[i] > most ? weights[i] : most;
        }
        if (a.bytes == 0 || (most != 1 && most != 2 && most != 4 && most != 8)) {
            return;
        }
    }
    ftl_owners owners = {.parts = parts, .nodes = nodes, .table = table, .table_count = parts};
    a.address = 4096 + random_below(4096);
    a.expected_next = a.address - a.address % a.page;
    a.partition = &p;
    a.owners = &owners;
    for (size_t i = 0; i < a.bytes; i++) {
        a.byte_node[i] = p.kind == FT_BIND ? 3 : table[part_of(&p, i, a.bytes)];
    }
    CHECK(ftl_check(&p) == 0, "refused");
    ftl_for_pieces(&p, &owners, a.address, a.bytes, a.page, check_piece, &a);
    uintptr_t end = a.address + a.bytes;
    CHECK(failures > 0 || a.expected_next == end + (a.page - end % a.page) % a.page, "kind %d ends early", p.kind);
}

static bool count_piece(void *to_what, uintptr_t from, uintptr_t to, int node, const ftl_sharers *sharers) {
    (void)from;
    (void)to;
    (void)node;
    (void)sharers;
    ++*(size_t *)to_what;
    return true;
}

/* Large sizes neither overflow nor take long. */
static void check_large(ftl_nodes *nodes) {
    const size_t bytes = (size_t)1 << 46, page = 4096;
    int16_t table[4] = {0, 0, 1, 1};
    ftl_owners owners = {.parts = 4, .nodes = nodes, .table = table, .table_count = 4};
    size_t pieces = 0;
    ft_partition p = ft_blocked(4);
    ftl_for_pieces(&p, &owners, page, bytes, page, count_piece, &pieces);
    CHECK(pieces == 2, "%zu pieces: neighbours of one node are merged", pieces);
    ftl_layout layout;
    ft_partition fine = ft_cyclic(4, 1);
    ftl_layout_of(&fine, &owners, page, bytes, page, &layout);
    CHECK(layout.shape == FTL_SHAPE_MANY, "bytes in turn");
    ft_partition alternate = ft_cyclic(4, 2 * page);
    ftl_layout_of(&alternate, &owners, page, bytes, page, &layout);
    CHECK(layout.shape == FTL_SHAPE_MANY, "more than %d pieces", FTL_MAX_PIECES);
    int16_t same[4] = {1, 1, 1, 1};
    owners.table = same;
    pieces = 0;
    ftl_for_pieces(&fine, &owners, page, bytes, page, count_piece, &pieces);
    CHECK(pieces == 1, "%zu pieces of one node", pieces);
    /* A million parts of a little memory. */
    owners.parts = FTL_MAX_PARTS;
    ft_partition many = ft_blocked(FTL_MAX_PARTS);
    pieces = 0;
    owners.table = table;
    ftl_for_pieces(&many, &owners, page, 64 * page, page, count_piece, &pieces);
    CHECK(pieces == 64, "%zu pages, each shared by all", pieces);
}

static void check_interleave(ftl_nodes *nodes) {
    int16_t in_turn[6] = {1, 2, 0, 1, 2, 0}, not [6] = {0, 0, 1, 1, 2, 2};
    ftl_owners owners = {.parts = 6, .nodes = nodes, .table = in_turn, .table_count = 6};
    ftl_layout layout;
    ft_partition p = ft_cyclic(6, 4096);
    ftl_layout_of(&p, &owners, 0, (size_t)1 << 30, 4096, &layout);
    CHECK(layout.shape == FTL_SHAPE_INTERLEAVE && layout.modulus == 3 && layout.remainder == 1,
          "pages in turn: %d %zu %zu", layout.shape, layout.modulus, layout.remainder);
    owners.table = not ;
    ftl_layout_of(&p, &owners, 0, (size_t)1 << 30, 4096, &layout);
    CHECK(layout.shape == FTL_SHAPE_MANY, "pages in pairs are not in turn");
}

static void check_invalid(void) {
    size_t falling[3] = {0, 8, 4};
    double none[2] = {0, 0}, negative[2] = {1, -1}, infinite[2] = {1, 1e308 * 10};
    ft_partition invalid[] = {{.kind = -1},
                              {.kind = 8},
                              {.unit = 2},
                              {.team = 64},
                              {.team = -1},
                              {.kind = FT_BLOCKED, .parts = FTL_MAX_PARTS + 1},
                              ft_cyclic(2, 0),
                              ft_by_bounds(falling, 2),
                              ft_by_bounds(NULL, 2),
                              ft_by_bounds(falling, 0),
                              ft_weighted(none, 2),
                              ft_weighted(negative, 2),
                              ft_weighted(infinite, 2),
                              ft_weighted(NULL, 2),
                              ft_bind(-1),
                              ft_bind(FTL_MAX_NODES)};
    for (size_t i = 0; i < sizeof invalid / sizeof invalid[0]; i++) {
        CHECK(ftl_check(&invalid[i]) != 0, "invalid partition %zu is accepted", i);
    }
}

int main(void) {
    static ftl_nodes nodes = {.count = 3, .number = {0, 1, 2}, .cpu_count = 1};
    for (int i = 0; i < 15000 && failures < 20; i++) {
        check_random(&nodes);
    }
    check_large(&nodes);
    check_interleave(&nodes);
    check_invalid();
    return checked("partition");
}
