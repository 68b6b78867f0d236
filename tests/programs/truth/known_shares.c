// SPDX-License-Identifier: Apache-2.0 OR MIT
// corpus: build = gcc -O2 -g -Wall -Wextra -fno-tree-vectorize -fopenmp {src} -o {out}
// corpus: run = {out} --threads 2 --seconds 10 --init serial
//
// For a firsttouch that attaches, or that has no agent in the program: the arrays are static, so they have names without an agent.
// A sweep reads each word of a three times, each word of b once, and writes each word of c once: shares 3:1:1. Thread t of n has
// a block in proportion to t + 1, so the shares of the threads are 1:2:3:... The program prints "ready" once memory is initialised,
// and goes on with the same sweeps until the time is up. --mib is not used.

#include "team.h"

enum { WORDS = (16 << 20) / 8 };

static double a[WORDS] __attribute__((aligned(PAGE)));
static double b[WORDS] __attribute__((aligned(PAGE)));
static double c[WORDS] __attribute__((aligned(PAGE)));
static struct options options;
static bool wrong;

static struct range growing_block(size_t words, int thread, int threads) {
    const size_t parts = (size_t)threads * (size_t)(threads + 1) / 2, pages = words / PAGE_WORDS;
    const size_t before = (size_t)thread * (size_t)(thread + 1) / 2;
    return (struct range){pages * before / parts * PAGE_WORDS,
                          pages * (before + (size_t)thread + 1) / parts * PAGE_WORDS};
}

KERNEL void three_to_one(double *restrict z, const double *x, const double *y, struct range mine) {
    const size_t third = (mine.end - mine.begin) / 3;
    size_t second = mine.begin + third, last = mine.begin + 2 * third;
    for (size_t i = mine.begin; i < mine.end; i++) {
        z[i] = x[i] + x[second] + x[last] + y[i];
        if (++second == mine.end)
            second = mine.begin;
        if (++last == mine.end)
            last = mine.begin;
    }
}

static void sweep(int thread) {
    const struct range mine = growing_block(WORDS, thread, options.threads);
    three_to_one(c, a, b, mine);
    if (c[mine.begin] != 5.0 || c[mine.end - 1] != 5.0) {
#pragma omp atomic write
        wrong = true;
    }
}

int main(int argc, char **argv) {
    options = options_from(argc, argv);
    struct object truth_a = object_of("a", a, WORDS);
    struct object truth_b = object_of("b", b, WORDS);
    struct object truth_c = object_of("c", c, WORDS);
    initialise(&truth_a, a, 1.0, &options, growing_block);
    initialise(&truth_b, b, 2.0, &options, growing_block);
    initialise(&truth_c, c, 0.0, &options, growing_block);
    printf("ready\n");
    fflush(stdout);

    const uint64_t sweeps = run_sweeps(&options, UINT64_MAX, sweep);

    for (int t = 0; t < options.threads; t++) {
        const struct range mine = growing_block(WORDS, t, options.threads);
        count(&truth_a, t, options.threads, mine, 3 * sweeps);
        count(&truth_b, t, options.threads, mine, sweeps);
        count(&truth_c, t, options.threads, mine, sweeps);
    }
    print_truth(&options, (struct object *[]){&truth_a, &truth_b, &truth_c}, 3);
    return finish(!wrong);
}
