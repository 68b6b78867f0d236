// SPDX-License-Identifier: Apache-2.0 OR MIT
// libfirsttouch on real nodes. Run it with OMP_PROC_BIND=true.
//   library check          prints a line for each way to place memory: the share of pages on target, and what went with it
//   library use SECONDS    threads use arrays that one thread initialised, and whose pages the library placed
// corpus: build = gcc -O2 -g -Wall -Wextra -Werror -fopenmp -pthread -I{dir}/../../../native/library/include {src} {dir}/../../../native/library/*.c -o {out}
// corpus: needs = ../../../native/library/alloc.c ../../../native/library/doubt.c ../../../native/library/huge.c ../../../native/library/layout.c ../../../native/library/library.h ../../../native/library/nodes.c ../../../native/library/parallel.c ../../../native/library/partition.c ../../../native/library/place.c ../../../native/library/policy.c ../../../native/library/registry.c ../../../native/library/replicate.c ../../../native/library/report.c ../../../native/library/team.c ../../../native/library/verify.c ../../../native/library/include/firsttouch.h
#define _GNU_SOURCE
#include <omp.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <firsttouch.h>

#define MIB ((size_t)1 << 20)
#define BYTES (4 * MIB)

static size_t bounds[] = {0, MIB + 100, 2 * MIB, 3 * MIB - 4000, BYTES};
static const double weights[] = {3, 1, 2, 2};

// One thread touches every page: without a policy, all would be on its node.
static void touch(char *at, size_t bytes) {
    for (size_t i = 0; i < bytes; i += 4096)
        at[i] = 1;
}

static void say(const char *how, const char *name, const void *at, size_t bytes, ft_partition partition,
                const char *more) {
    ft_verdict verdict;
    if (ft_verify(at, bytes, &partition, &verdict) != 0)
        verdict.share = -1;
    printf("%s %s: %.4f of %zu%s%s%s\n", how, name, verdict.share, verdict.present, more,
           ft_last_doubt() ? " DOUBT: " : "", ft_last_doubt() ? ft_last_doubt() : "");
    if (!(verdict.share >= 0.99)) {
        char text[2000];
        ft_report(text, sizeof text, name, at, bytes, &partition);
        printf("%s", text);
    }
    ft_clear_doubt();
}

// Memory without a history: what malloc gives again has the policies that were set before.
static char *fresh(size_t bytes) {
    char *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED)
        exit(1);
    return at;
}

// Of the mapping that contains the address.
static size_t huge_kib(const void *at) {
    FILE *maps = fopen("/proc/self/smaps", "r");
    char line[512];
    unsigned long from, to;
    bool inside = false;
    size_t kib = 0;
    while (maps != NULL && fgets(line, sizeof line, maps) != NULL) {
        if (sscanf(line, "%lx-%lx ", &from, &to) == 2)
            inside = (unsigned long)at >= from && (unsigned long)at < to;
        if (inside)
            sscanf(line, "AnonHugePages: %zu", &kib);
    }
    if (maps != NULL)
        fclose(maps);
    return kib;
}

static size_t mappings(void) {
    FILE *maps = fopen("/proc/self/maps", "r");
    size_t lines = 0;
    for (int c; (c = getc(maps)) != EOF;)
        lines += c == '\n';
    fclose(maps);
    return lines;
}

static void check(void) {
    int nodes[8];
    int last = nodes[ft_nodes(nodes, 8) - 1];
    const struct {
        const char *name;
        ft_partition partition;
    } list[] = {{"blocked", ft_blocked(0)},
                {"blocked-over-nodes", ft_over_nodes(ft_blocked(0))},
                {"cyclic", ft_cyclic(0, 256 * 1024)},
                {"cyclic-pages", ft_over_nodes(ft_cyclic(0, 4096))},
                {"by-bounds", ft_by_bounds(bounds, 4)},
                {"weighted", ft_weighted(weights, 4)},
                {"interleaved", ft_interleaved()},
                {"bind", ft_bind(last)}};
    char more[100];
    for (size_t i = 0; i < sizeof list / sizeof list[0]; i++) {
        ft_partition p = list[i].partition;
        size_t before = mappings();
        char *at = ft_alloc(BYTES, &p, FT_STRICT);
        if (at == NULL) {
            printf("alloc %s: refused: %s\n", list[i].name, ft_last_doubt());
            continue;
        }
        snprintf(more, sizeof more, ", %zu mappings", mappings() - before);
        touch(at, BYTES);
        say("alloc", list[i].name, at, BYTES, p, more);
        ft_free(at);

        at = fresh(BYTES + 10000);
        touch(at, BYTES + 10000);
        ptrdiff_t moved = ft_place(at + 100, BYTES, &p, FT_STRICT);
        snprintf(more, sizeof more, ", %s", moved > 0 ? "moved" : "NOT MOVED");
        say("place", list[i].name, at + 100, BYTES, p, more);
        munmap(at, BYTES + 10000);

        // What read() touches first is placed all the same.
        at = fresh(BYTES);
        int zeros = open("/dev/zero", O_RDONLY);
        bool is_read = ft_localise(at, BYTES, &p) == 0 && read(zeros, at, BYTES) == (ssize_t)BYTES;
        close(zeros);
        say("localise", list[i].name, at, BYTES, p, is_read ? "" : ", NOT READ");
        munmap(at, BYTES);

        at = fresh(BYTES);
        ft_zero_parallel(at, BYTES, &p);
        say("zero-parallel", list[i].name, at, BYTES, p, "");
        munmap(at, BYTES);
    }

    // More pieces than policies: by the policy of the thread that populates.
    ft_partition fine = ft_over_nodes(ft_cyclic(0, 8192));
    char *at = fresh(BYTES);
    ft_localise(at, BYTES, &fine);
    say("localise", "fine", at, BYTES, fine, "");
    munmap(at, BYTES);

    // Nobody's parts: each CPU takes as much, and no huge page covers two of them.
    at = fresh(9 * MIB);
    madvise(at, 9 * MIB, MADV_HUGEPAGE);
    ft_zero_parallel(at, 9 * MIB, NULL);
    say("zero-parallel", "nobody", at, 9 * MIB, ft_blocked(0), "");
    munmap(at, 9 * MIB);

    ft_partition halves = ft_over_nodes(ft_blocked(2));
    at = ft_alloc(4 * BYTES, &halves, FT_HUGE_PAGES | FT_STRICT);
    touch(at, 4 * BYTES);
    snprintf(more, sizeof more, ", huge: %zu and %zu KiB", huge_kib(at), huge_kib(at + 3 * BYTES));
    say("alloc", "huge", at, 4 * BYTES, halves, more);
    at = ft_realloc(at, 5 * BYTES);
    touch(at, 5 * BYTES);
    say("realloc", "huge", at, 5 * BYTES, halves, "");
    ft_free(at);

    // Huge pages that are there, and that several parts share.
    const ft_partition shared[] = {ft_over_nodes(ft_cyclic(0, 16384)), ft_interleaved()};
    for (size_t i = 0; i < 2; i++) {
        at = fresh(BYTES + 2 * MIB);
        madvise(at, BYTES + 2 * MIB, MADV_HUGEPAGE);
        touch(at, BYTES + 2 * MIB);
        snprintf(more, sizeof more, ", huge before: %zu KiB", huge_kib(at));
        ft_place(at, BYTES + 2 * MIB, &shared[i], 0);
        ft_clear_doubt();
        say("split", i == 0 ? "cyclic" : "interleaved", at, BYTES + 2 * MIB, shared[i], more);
        munmap(at, BYTES + 2 * MIB);
    }

    ft_partition copies = ft_replicated();
    char *table = ft_alloc(BYTES / 4, &copies, FT_STRICT);
    memset(table, 7, BYTES / 4);
    ft_replicate(table);
    say("replicate", "table", table, BYTES / 4, copies, "");
    int local = 0;
#pragma omp parallel reduction(+ : local)
    {
        char *mine = ft_local_copy(table);
        local += ft_expect(mine, BYTES / 4, NULL, 1) == 1 && mine[12345] == 7;
    }
    printf("local copies: %d of %zu threads\n", local, ft_team_size(0));
    ft_free(table);
}

static void use(double seconds) {
    size_t count = 3 * MIB / sizeof(double);
    ft_partition blocked = ft_blocked(0), copies = ft_replicated();
    double *field = ft_alloc(count * sizeof *field, &blocked, FT_STRICT);
    double *table = ft_alloc(MIB, &copies, FT_STRICT);
    if (field == NULL || table == NULL)
        exit(1);
    for (size_t i = 0; i < count; i++)
        field[i] = 1;
    for (size_t i = 0; i < MIB / sizeof *table; i++)
        table[i] = 1;
    ft_replicate(table);
    double end = omp_get_wtime() + seconds, sum = 0;
#pragma omp parallel reduction(+ : sum)
    {
        const double *mine = ft_local_copy(table);
        while (omp_get_wtime() < end) {
#pragma omp for schedule(static) nowait
            for (size_t i = 0; i < count; i++)
                sum += field[i] * mine[i % (MIB / sizeof *mine)];
        }
    }
    printf("%s\n", sum > 0 ? "used" : "nothing");
    say("use", "field", field, count * sizeof *field, blocked, "");
    say("use", "table", table, MIB, copies, "");
    ft_free(field);
    ft_free(table);
}

int main(int count, char **words) {
    ft_team_openmp(0);
    if (count == 2 && strcmp(words[1], "check") == 0)
        check();
    else if (count == 3 && strcmp(words[1], "use") == 0)
        use(strtod(words[2], NULL));
    else
        return 2;
    return 0;
}
