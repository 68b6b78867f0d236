// SPDX-License-Identifier: Apache-2.0 OR MIT
// corpus: build = gcc -O2 -g -Wall -Wextra -fno-tree-vectorize -fopenmp {src} -o {out}
// corpus: run = {out} --threads 8 --seconds 10 --mib 64 --init serial
//
// Five points of u, in rows of 8 KiB, give one of next: 5/6 and 1/6 of all accesses. Each thread has a block of rows and reads a row of each
// neighbour. The inner loop takes a microsecond and begins anew for each row.

#include "team.h"

enum { COLUMNS = 2 * PAGE_WORDS };

static struct options options;
static size_t rows;
static double *u, *next;

KERNEL void row_of(double *to, const double *centre) {
    const double *above = centre - COLUMNS, *below = centre + COLUMNS;
    for (size_t j = 1; j < COLUMNS - 1; j++)
        to[j] = above[j] + centre[j - 1] + centre[j] + centre[j + 1] + below[j];
}

// The rows of a thread in a block partition; the first and the last row are the border.
static struct range rows_of(int thread) {
    const size_t begin = rows * (size_t)thread / (size_t)options.threads;
    const size_t end = rows * (size_t)(thread + 1) / (size_t)options.threads;
    return (struct range){begin ? begin : 1, end < rows ? end : rows - 1};
}

static struct range words_of_rows(size_t words, int thread, int threads) {
    const size_t all = words / COLUMNS;
    return (struct range){all * (size_t)thread / (size_t)threads * COLUMNS,
                          all * (size_t)(thread + 1) / (size_t)threads * COLUMNS};
}

static void sweep(int thread) {
    const struct range mine = rows_of(thread);
    for (size_t i = mine.begin; i < mine.end; i++)
        row_of(next + i * COLUMNS, u + i * COLUMNS);
}

// What a thread reads of u for one row of next, in one sweep.
static void count_row(struct object *truth, int thread, size_t row, uint64_t sweeps) {
    static const ptrdiff_t points[] = {-COLUMNS, -1, 0, 1, COLUMNS};
    for (size_t k = 0; k < sizeof points / sizeof *points; k++) {
        const size_t first = row * COLUMNS + (size_t)points[k];
        count(truth, thread, options.threads, (struct range){first + 1, first + COLUMNS - 1}, sweeps);
    }
}

int main(int argc, char **argv) {
    options = options_from(argc, argv);
    const size_t words = words_of(&options, 2) / COLUMNS * COLUMNS;
    rows = words / COLUMNS;
    u = aligned_alloc(PAGE, words * sizeof *u);
    next = aligned_alloc(PAGE, words * sizeof *next);
    struct object truth_u = object_of("u", u, words);
    struct object truth_next = object_of("next", next, words);
    initialise(&truth_u, u, 0.5, &options, words_of_rows);
    initialise(&truth_next, next, 0.0, &options, words_of_rows);

    const uint64_t sweeps = run_sweeps(&options, options.sweeps ? options.sweeps : UINT64_MAX, sweep);

    const struct range inside = {COLUMNS + 1, 2 * COLUMNS - 1};
    const bool ok = all_equal(next, inside, 2.5);
    count(&truth_next, 0, options.threads, inside, 1);
    for (int t = 0; t < options.threads; t++) {
        const struct range mine = rows_of(t);
        for (size_t i = mine.begin; i < mine.end; i++) {
            count_row(&truth_u, t, i, sweeps);
            count(&truth_next, t, options.threads, (struct range){i * COLUMNS + 1, (i + 1) * COLUMNS - 1}, sweeps);
        }
    }
    print_truth(&options, (struct object *[]){&truth_u, &truth_next}, 2);
    return finish(ok);
}
