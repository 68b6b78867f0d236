// SPDX-License-Identifier: Apache-2.0 OR MIT
// corpus: build = gcc -O2 -g -Wall -Wextra -fno-tree-vectorize -fopenmp {src} -o {out}
// corpus: run = {out} --threads 8 --seconds 10 --mib 64 --init serial
//
// Two arrays of the same size, half of --mib each, used in blocks: a sweep reads each word of a three times and each
// word of b once. The three reads of a word of a lie a third of the block apart, so no two can be merged.

#include "team.h"

static struct options options;
static size_t words;
static double *a, *b;
static bool wrong;

KERNEL double sum_three_to_one(const double *x, const double *y, struct range mine) {
    const size_t third = (mine.end - mine.begin) / 3;
    size_t second = mine.begin + third, last = mine.begin + 2 * third;
    double sum = 0.0;
    for (size_t i = mine.begin; i < mine.end; i++) {
        sum += x[i] + x[second] + x[last] + y[i];
        if (++second == mine.end)
            second = mine.begin;
        if (++last == mine.end)
            last = mine.begin;
    }
    return sum;
}

static void sweep(int thread) {
    const struct range mine = block_of(words, thread, options.threads);
    if (sum_three_to_one(a, b, mine) != 5.0 * (double)(mine.end - mine.begin)) {
#pragma omp atomic write
        wrong = true;
    }
}

int main(int argc, char **argv) {
    options = options_from(argc, argv);
    words = words_of(&options, 2);
    a = aligned_alloc(PAGE, words * sizeof *a);
    b = aligned_alloc(PAGE, words * sizeof *b);
    struct object truth_a = object_of("a", a, words);
    struct object truth_b = object_of("b", b, words);
    initialise(&truth_a, a, 1.0, &options, block_of);
    initialise(&truth_b, b, 2.0, &options, block_of);

    const uint64_t sweeps = run_sweeps(&options, UINT64_MAX, sweep);

    for (int t = 0; t < options.threads; t++) {
        const struct range mine = block_of(words, t, options.threads);
        count(&truth_a, t, options.threads, mine, 3 * sweeps);
        count(&truth_b, t, options.threads, mine, sweeps);
    }
    print_truth(&options, (struct object *[]){&truth_a, &truth_b}, 2);
    return finish(!wrong);
}
