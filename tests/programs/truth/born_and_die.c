// SPDX-License-Identifier: Apache-2.0 OR MIT
// corpus: build = gcc -O2 -g -Wall -Wextra -fno-tree-vectorize -fopenmp {src} -o {out}
// corpus: run = {out} --threads 8 --seconds 10 --mib 64 --init serial
//
// Short-lived objects of two allocating lines: in each generation A and B (half of --mib each) are
// allocated, initialised, swept in blocks 16 times and freed. A sweep reads each word of A twice and of B once. The
// printed truth sums all generations of a line.

#include "team.h"
#include <malloc.h>

enum { SWEEPS = 16 };

static struct options options;
static size_t words;
static double *A, *B;
static bool wrong;

KERNEL double sum_two_to_one(const double *x, const double *y, struct range mine) {
    size_t half_way = mine.begin + (mine.end - mine.begin) / 2;
    double sum = 0.0;
    for (size_t i = mine.begin; i < mine.end; i++) {
        sum += x[i] + x[half_way] + y[i];
        if (++half_way == mine.end)
            half_way = mine.begin;
    }
    return sum;
}

static void sweep(int thread) {
    const struct range mine = block_of(words, thread, options.threads);
    if (sum_two_to_one(A, B, mine) != 4.0 * (double)(mine.end - mine.begin)) {
#pragma omp atomic write
        wrong = true;
    }
}

int main(int argc, char **argv) {
    options = options_from(argc, argv);
    words = words_of(&options, 2);
    mallopt(M_MMAP_THRESHOLD, 1 << 20); // fixed: every generation gets fresh pages, not those of the last one
    struct object truth_A = {0}, truth_B = {0};

    for (const double end = seconds_now() + options.seconds; seconds_now() < end;) {
        A = aligned_alloc(PAGE, words * sizeof *A);
        B = aligned_alloc(PAGE, words * sizeof *B);
        if (!truth_A.name) {
            truth_A = object_of("A", A, words);
            truth_B = object_of("B", B, words);
        }
        if (!A || !B)
            return finish(false);
        keep_small_pages(A, words);
        keep_small_pages(B, words);
        initialise(&truth_A, A, 1.0, &options, block_of);
        initialise(&truth_B, B, 2.0, &options, block_of);
        const uint64_t sweeps = run_sweeps(&options, SWEEPS, sweep);
        for (int t = 0; t < options.threads; t++) {
            const struct range mine = block_of(words, t, options.threads);
            count(&truth_A, t, options.threads, mine, 2 * sweeps);
            count(&truth_B, t, options.threads, mine, sweeps);
        }
        free(B);
        free(A);
    }
    print_truth(&options, (struct object *[]){&truth_A, &truth_B}, 2);
    return finish(!wrong);
}
