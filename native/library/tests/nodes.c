/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * The library on recorded machines with several nodes, with the kernel of fake_policy.c: nodes.c MACHINE... reads each machine, and
 * the first one's nodes hold the memory of the tests.
 */
#include "fake_policy.h"
#include "check.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define PAGE ((size_t)4096)
#define MIB ((size_t)1 << 20)

static double share_of(const void *at, size_t bytes, ft_partition p) {
    ft_verdict verdict;
    return ft_verify(at, bytes, &p, &verdict) == 0 ? verdict.share : -1;
}

typedef struct named {
    const char *name;
    ft_partition partition;
    size_t most_mbinds;
} named;

static size_t bounds[] = {0, 3 * MIB + 100, 3 * MIB + 200, 5 * MIB, 8 * MIB};
static double weights[] = {3, 1, 0, 4};

static size_t partitions(named *list) {
    named all[] = {
        {"blocked", ft_blocked(4), 4},
        {"blocked(0)", ft_blocked(0), 4},
        {"blocked(7)", ft_blocked(7), 7},
        {"blocked over nodes", ft_over_nodes(ft_blocked(0)), 4},
        {"cyclic", ft_cyclic(4, MIB), 8},
        {"cyclic, odd", ft_cyclic(4, 300001), 28},
        {"cyclic, pages over nodes", ft_over_nodes(ft_cyclic(0, PAGE)), 1},
        {"cyclic, bytes", ft_cyclic(4, 8), 1},
        {"by bounds", ft_by_bounds(bounds, 4), 4},
        {"weighted", ft_weighted(weights, 4), 4},
        {"interleaved", ft_interleaved(), 1},
        {"bind", ft_bind(1), 1},
    };
    memcpy(list, all, sizeof all);
    return sizeof all / sizeof all[0];
}

/* The team's threads run on CPUs of alternating nodes. */
static void join(void) {
    const ftl_nodes *nodes = ftl_nodes_get();
    for (size_t i = 0; i < 4; i++) {
        fake_cpu = nodes->cpus[i * nodes->cpu_count / 4].cpu;
        CHECK(ft_team_join(0, i, 4) == 0, "join");
    }
    fake_cpu = 0;
    CHECK(ft_team_size(0) == 4 && ft_team_node(0, 3) == nodes->cpus[3 * nodes->cpu_count / 4].node, "team");
    CHECK(ft_team_join(0, 4, 4) == -1 && errno == EINVAL, "a thread outside of the team");
    CHECK(ft_team_join(64, 0, 1) == -1 && errno == EINVAL, "a team too many");
}

static void test_alloc(void) {
    named list[20];
    size_t count = partitions(list);
    for (size_t i = 0; i < count; i++) {
        for (size_t bytes = 8 * MIB; bytes > MIB; bytes = bytes == 8 * MIB ? 8 * MIB - 12345 : 0) {
            fake_reset();
            ft_clear_doubt();
            char *at = ft_alloc(bytes, &list[i].partition, FT_STRICT);
            CHECK(at != NULL && (uintptr_t)at % PAGE == 0, "%s", list[i].name);
            CHECK(fake_mbinds <= list[i].most_mbinds, "%s: %zu calls of mbind", list[i].name, fake_mbinds);
            CHECK(fake_node(at) == -1, "%s: it is touched", list[i].name);
            fake_touch(at, bytes, false);
            double share = share_of(at, bytes, list[i].partition);
            CHECK(share >= 0.999, "%s: %.4f on target", list[i].name, share);
            CHECK(ft_expect(at, bytes, &list[i].partition, 0.99) == 1, "%s", list[i].name);
            CHECK(ft_size(at) == bytes, "size");
            at[0] = at[bytes - 1] = 1;
            ft_free(at);
            CHECK(ft_size(at) == 0, "still known");
        }
    }
}

static void test_place(void) {
    named list[20];
    size_t count = partitions(list), bytes = 8 * MIB;
    char *memory = aligned_alloc(2 * MIB, 12 * MIB);
    for (size_t i = 0; i < count; i++) {
        /* Neither end is at a page. */
        char *at = memory + 2 * MIB + 1000;
        ft_partition p = list[i].partition;
        fake_reset();
        fake_touch(memory, 12 * MIB, false);
        double before = share_of(at, bytes, p);
        ptrdiff_t moved = ft_place(at, bytes, &p, FT_STRICT);
        double after = share_of(at, bytes, p);
        /* Off a page, chunks of a page or less share each page: no page is wrong, or all are by their majority only. */
        bool is_shared = p.kind == FT_CYCLIC && p.chunk <= PAGE;
        CHECK((is_shared || before < 0.999) && after >= 0.999, "%s: %.4f, then %.4f on target", list[i].name, before,
              after);
        CHECK((is_shared || moved > 0) && moved <= 2048, "%s: %td pages moved", list[i].name, moved);
        CHECK(fake_node(memory + 2 * MIB) == 0 && fake_node(at + bytes) == 0, "%s: a shared page moved", list[i].name);
        CHECK(ft_place(at, bytes, &p, FT_STRICT) == 0, "%s: moved again", list[i].name);
        fake_reset();
        fake_touch(at, bytes / 2, false);
        CHECK(ft_place(at, bytes, &p, FT_KEEP_PRESENT) == 0 && fake_node(at + bytes / 2 - 2 * PAGE) == 0, "%s: kept",
              list[i].name);
    }
    /* Huge pages move as a whole, unless several parts share them. */
    fake_reset();
    fake_touch(memory, 12 * MIB, true);
    ft_partition p = ft_over_nodes(ft_blocked(2));
    CHECK(ft_place(memory, 12 * MIB, &p, 0) == 1536 && share_of(memory, 12 * MIB, p) == 1, "huge pages");
    fake_reset();
    fake_touch(memory, 12 * MIB, true);
    size_t uneven[] = {0, 5 * MIB + 5 * PAGE, 12 * MIB};
    p = ft_over_nodes(ft_by_bounds(uneven, 2));
    ptrdiff_t moved = ft_place(memory, 12 * MIB, &p, FT_STRICT);
    CHECK(moved == 1787 && share_of(memory, 12 * MIB, p) == 1, "the huge page at the border is split: %td moved",
          moved);
    fake_reset();
    fake_touch(memory, 12 * MIB, true);
    p = ft_interleaved();
    CHECK(ft_place(memory, 12 * MIB, &p, FT_STRICT) > 0 && share_of(memory, 12 * MIB, p) == 1,
          "huge pages are split for pages in turn");
    /* A half on each of two nodes is an even division, and not interleaved. */
    ft_partition halves = ft_over_nodes(ft_blocked(2));
    fake_reset();
    fake_touch(memory, 4 * MIB, false);
    CHECK(ft_place(memory, 4 * MIB, &halves, FT_STRICT) >= 0 && share_of(memory, 4 * MIB, p) < 0.6, "halves: %.4f",
          share_of(memory, 4 * MIB, p));
    CHECK(ft_place(memory, 4 * MIB, &p, FT_STRICT) > 0 && share_of(memory, 4 * MIB, p) == 1, "halves are interleaved");
    p = ft_replicated();
    CHECK(ft_place(memory, MIB, &p, 0) == -1 && errno == EINVAL, "replicated");
    free(memory);
}

static void test_localise(void) {
    named list[20];
    size_t count = partitions(list), bytes = 8 * MIB;
    char *memory = aligned_alloc(PAGE, 9 * MIB);
    for (size_t i = 0; i <= count; i++) {
        /* The last: more pieces than policies, by the policy of the thread. */
        ft_partition p = i < count ? list[i].partition : ft_over_nodes(ft_cyclic(2, 2 * PAGE));
        fake_reset();
        fake_touch(memory + MIB, PAGE, false);
        CHECK(ft_localise(memory + 100, bytes, &p) == 0, "localise");
        CHECK(share_of(memory + 100, bytes, p) >= 0.999, "%zu: %.4f on target", i, share_of(memory + 100, bytes, p));
        CHECK(fake_node(memory) >= 0 && fake_node(memory + bytes) >= 0, "the ends are populated");
    }
    free(memory);
}

static void test_replicated(void) {
    const ftl_nodes *nodes = ftl_nodes_get();
    ft_partition p = ft_replicated();
    for (size_t bytes = 1000; bytes <= 3 * MIB; bytes += 3 * MIB - 1000) {
        fake_reset();
        fake_cpu = 0;
        char *at = ft_alloc(bytes, &p, FT_STRICT);
        CHECK(at != NULL && ft_size(at) == bytes, "replicated");
        memset(at, 7, bytes);
        CHECK(ft_replicate(at) == (int)nodes->count, "copies");
        for (size_t i = 0; i < nodes->cpu_count; i++) {
            fake_cpu = nodes->cpus[i].cpu;
            char *local = ft_local_copy(at);
            fake_touch(local, bytes, false);
            CHECK(memcmp(local, at, bytes) == 0, "contents");
            CHECK(fake_node(local) == nodes->cpus[i].node, "the copy of CPU %d is on node %d", fake_cpu,
                  fake_node(local));
            CHECK((local == at) == (nodes->cpus[i].node == nodes->number[0]), "the first copy");
        }
        CHECK(bytes < PAGE || share_of(at, bytes, p) == 1, "verify");
        CHECK(ft_realloc(at, 2 * bytes) == NULL && errno == EINVAL, "realloc");
        ft_free(at);
    }
    char other[10];
    CHECK(ft_replicate(other) == -1 && errno == EINVAL && ft_local_copy(other) == other, "memory of another kind");
}

static void test_realloc(void) {
    named list[20];
    size_t count = partitions(list);
    for (size_t i = 0; i < count; i++) {
        static const size_t sizes[] = {3 * MIB, 8 * MIB, 2 * MIB + 77, 70000};
        fake_reset();
        unsigned char *at = ft_alloc(MIB, &list[i].partition, 0);
        memset(at, 42, MIB);
        for (size_t j = 0; j < sizeof sizes / sizeof sizes[0]; j++) {
            at = ft_realloc(at, sizes[j]);
            fake_touch(at, sizes[j], false);
            CHECK(at != NULL && ft_size(at) == sizes[j] && at[0] == 42 && at[69999] == 42, "%s: contents",
                  list[i].name);
            double share = share_of(at, sizes[j], list[i].partition);
            CHECK(share >= 0.99 || (sizes[j] < MIB && share > 0.9), "%s: %zu bytes: %.4f", list[i].name, sizes[j],
                  share);
        }
        ft_free(at);
    }
}

static void test_doubts(void) {
    ft_partition absent = ft_bind(7), blocked = ft_over_nodes(ft_blocked(2));
    fake_reset();
    ft_clear_doubt();
    char *at = ft_alloc(MIB, &absent, 0);
    CHECK(at != NULL && ft_last_doubt() != NULL && strstr(ft_last_doubt(), "node"), "%s", ft_last_doubt());
    CHECK(ft_place(at, MIB, &absent, FT_STRICT) == -1 && errno == ENODEV, "absent node");
    ft_free(at);
    CHECK(ft_alloc(MIB, &absent, FT_STRICT) == NULL && errno == ENODEV, "absent node, strict");
    static const int errors[] = {EPERM, ENOSYS};
    for (size_t i = 0; i < 2; i++) {
        fake_refused = errors[i];
        ft_clear_doubt();
        at = ft_alloc(MIB, &blocked, 0);
        CHECK(at != NULL && ft_last_doubt() != NULL && strstr(ft_last_doubt(), strerror(errors[i])), "%s",
              ft_last_doubt());
        ft_verdict verdict;
        CHECK(ft_verify(at, MIB, &blocked, &verdict) == -1 && errno == errors[i] && verdict.error == errors[i],
              "verify");
        CHECK(ft_expect(at, MIB, &blocked, 0) == -1, "not known is no success");
        CHECK(ft_place(at, MIB, &blocked, 0) == 0 && ft_place(at, MIB, &blocked, FT_STRICT) == -1 && errno == errors[i],
              "place");
        memset(at, 1, MIB);
        fake_touch(at, MIB, false);
        ft_place(at, MIB, &blocked, 0);
        CHECK(strstr(ft_last_doubt(), "mbind") != NULL && strstr(ft_last_doubt(), "move_pages") != NULL, "%s",
              ft_last_doubt());
        CHECK(ft_localise(at, MIB, &blocked) == 0, "localise");
        ft_free(at);
        CHECK(ft_alloc(MIB, &blocked, FT_STRICT) == NULL && errno == errors[i], "alloc, strict");
    }
    fake_reset();
    /* More pieces than policies. */
    ft_partition fine = ft_over_nodes(ft_cyclic(2, 2 * PAGE));
    at = ft_alloc(4 * MIB, &fine, 0);
    CHECK(at != NULL && strstr(ft_last_doubt(), "more than 256 times"), "%s", ft_last_doubt());
    fake_touch(at, 4 * MIB, false);
    CHECK(ft_place(at, 4 * MIB, &fine, FT_STRICT) == -1 && errno == E2BIG && ft_place(at, 4 * MIB, &fine, 0) == 0,
          "pieces, strict: the present pages were moved all the same");
    CHECK(share_of(at, 4 * MIB, fine) == 1, "%.3f", share_of(at, 4 * MIB, fine));
    ft_free(at);
    CHECK(ft_alloc(4 * MIB, &fine, FT_STRICT) == NULL && errno == E2BIG, "pieces, strict");
    fake_reset();
    ft_clear_doubt();
    ft_partition nobody = ft_for_team(ft_blocked(4), 5);
    at = ft_alloc(MIB, &nobody, 0);
    CHECK(ft_last_doubt() != NULL && strstr(ft_last_doubt(), "team 5") && strstr(ft_last_doubt(), "in each of them"),
          "%s", ft_last_doubt());
    CHECK((strstr(ft_last_doubt(), "of the whole cpuset") != NULL) == (getenv("FAKE_GUESS") != NULL), "%s",
          ft_last_doubt());
    ft_free(at);
    ft_partition other = ft_blocked(6);
    at = ft_alloc(MIB, &other, 0);
    CHECK(ft_last_doubt() != NULL && strstr(ft_last_doubt(), "6 parts"), "%s", ft_last_doubt());
    ft_free(at);
    char text[1000], small[20];
    at = ft_alloc(MIB, &blocked, 0);
    fake_touch(at, MIB / 2, false);
    size_t length = ft_report(text, sizeof text, "field", at, MIB, &blocked);
    CHECK(length == strlen(text) && strstr(text, "field: 1.0 MiB, wanted in equal parts for nodes 0 to 1: 128 of 128"),
          "%s", text);
    CHECK(strstr(text, "node 0: 128 pages, 128 wanted") && strstr(text, "node 1: 0 pages, 128 wanted"), "%s", text);
    CHECK(ft_report(small, sizeof small, "field", at, MIB, &blocked) == length && strlen(small) == 19, "%s", small);
    CHECK(ft_report(NULL, 0, "field", at, MIB, &blocked) == length, "length only");
    ft_free(at);
}

/* Each byte is worked on once, by a thread on its node. */
typedef struct record {
    unsigned char count[4 * MIB];
    int16_t node[4 * MIB / PAGE + 1];
} record;

static void note_work(const void *argument, size_t from, size_t to) {
    record *r = (record *)(uintptr_t)argument;
    int16_t node = (int16_t)fake_thread_node();
    for (size_t at = from; at < to; at++) {
        __atomic_fetch_add(&r->count[at], 1, __ATOMIC_RELAXED);
        __atomic_store_n(&r->node[at / PAGE], node, __ATOMIC_RELAXED);
    }
}

static bool check_work(void *to_what, uintptr_t from, uintptr_t to, int node, const ftl_sharers *sharers) {
    record *r = to_what;
    for (uintptr_t page = from / PAGE; sharers == NULL && page < to / PAGE; page++) {
        CHECK(r->node[page] == node, "page %zu by a thread that takes memory of node %d, not %d", (size_t)page,
              r->node[page], node);
    }
    return failures < 20;
}

static void test_parallel(void) {
    static record r;
    named list[20];
    size_t count = partitions(list);
    for (size_t i = 0; i < count; i++) {
        size_t bytes = 4 * MIB - 777;
        ftl_owners owners;
        memset(&r, 0, sizeof r);
        CHECK(ftl_work_parallel(PAGE, bytes, &list[i].partition, note_work, &r, "test") == 0, "%s", list[i].name);
        size_t wrong = 0;
        for (size_t j = 0; j < 4 * MIB; j++) {
            wrong += r.count[j] != (j < bytes);
        }
        CHECK(wrong == 0, "%s: %zu bytes not done once", list[i].name, wrong);
        if (ftl_has_owners(&list[i].partition)) {
            ftl_owners_of(&list[i].partition, ftl_nodes_get(), &owners);
            ftl_for_pieces(&list[i].partition, &owners, 0, bytes, PAGE, check_work, &r);
            ftl_owners_release(&owners);
        }
    }
}

static void test_machines(char **roots) {
    static ftl_nodes nodes;
    for (; *roots != NULL; roots++) {
        ftl_nodes_read(*roots, NULL, NULL, &nodes);
        printf("%s: nodes", strrchr(*roots, '/') + 1);
        for (size_t i = 0; i < nodes.count; i++) {
            printf(" %d", nodes.number[i]);
        }
        printf(" of %zu, CPUs", nodes.machine_count);
        for (size_t i = 0; i < nodes.cpu_count; i++) {
            printf(" %d:%d", nodes.cpus[i].cpu, nodes.cpus[i].node);
        }
        printf("\n");
    }
}

int main(int argument_count, char **arguments) {
    if (argument_count < 2) {
        return 2;
    }
    fake_root = arguments[1];
    test_machines(arguments + 1);
    join();
    test_alloc();
    test_place();
    test_localise();
    test_replicated();
    test_realloc();
    test_doubts();
    test_parallel();
    return checked("nodes");
}
