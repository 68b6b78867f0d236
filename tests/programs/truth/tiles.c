// SPDX-License-Identifier: Apache-2.0 OR MIT
// corpus: build = gcc -O2 -g -Wall -Wextra -fno-tree-vectorize -fopenmp {src} -o {out}
// corpus: run = {out} --threads 8 --seconds 10 --mib 64 --init serial
//
// Two arrays of the same size, half of --mib each, used in blocks. A sweep reads each word of b once, and a by tiles: each tile REPEATS times
// before the next one. So the place in a moves only each REPEATS rounds by one word.

#include "team.h"

enum { TILE = 1 << 15, REPEATS = 5 };

static struct options options;
static size_t words;
static double *a, *b;
static bool wrong;

KERNEL double sum_tiles(const double *x, struct range mine) {
    double sum = 0.0;
    for (size_t tile = mine.begin; tile < mine.end; tile += TILE) {
        const size_t end = tile + TILE < mine.end ? tile + TILE : mine.end;
        for (int repeat = 0; repeat < REPEATS; repeat++)
            for (size_t i = tile; i < end; i++)
                sum += x[i];
    }
    return sum;
}

KERNEL double sum_once(const double *y, struct range mine) {
    double sum = 0.0;
    for (size_t i = mine.begin; i < mine.end; i++)
        sum += y[i];
    return sum;
}

static void sweep(int thread) {
    const struct range mine = block_of(words, thread, options.threads);
    if (sum_tiles(a, mine) + sum_once(b, mine) != (REPEATS + 2.0) * (double)(mine.end - mine.begin)) {
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
        count(&truth_a, t, options.threads, mine, REPEATS * sweeps);
        count(&truth_b, t, options.threads, mine, sweeps);
    }
    print_truth(&options, (struct object *[]){&truth_a, &truth_b}, 2);
    return finish(!wrong);
}
