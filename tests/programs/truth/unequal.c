// SPDX-License-Identifier: Apache-2.0 OR MIT
// corpus: build = gcc -O2 -g -Wall -Wextra -fno-tree-vectorize -fopenmp {src} -o {out}
// corpus: run = {out} --threads 8 --seconds 10 --mib 64 --init serial
//
// One array in unequal blocks: thread t reads a share proportional to t + 1, each word once a sweep.

#include "team.h"

static struct options options;
static size_t words;
static double *a;
static bool wrong;

static struct range growing_blocks(size_t length, int thread, int threads) {
    const size_t pages = length / PAGE_WORDS, t = (size_t)thread, all = (size_t)threads * ((size_t)threads + 1);
    return (struct range){pages * t * (t + 1) / all * PAGE_WORDS, pages * (t + 1) * (t + 2) / all * PAGE_WORDS};
}

KERNEL double sum_of(const double *data, struct range mine) {
    double sum = 0.0;
    for (size_t i = mine.begin; i < mine.end; i++)
        sum += data[i];
    return sum;
}

static void sweep(int thread) {
    const struct range mine = growing_blocks(words, thread, options.threads);
    if (sum_of(a, mine) != 2.0 * (double)(mine.end - mine.begin)) {
#pragma omp atomic write
        wrong = true;
    }
}

int main(int argc, char **argv) {
    options = options_from(argc, argv);
    words = words_of(&options, 1);
    a = aligned_alloc(PAGE, words * sizeof *a);
    struct object truth_a = object_of("a", a, words);
    initialise(&truth_a, a, 2.0, &options, growing_blocks);

    const uint64_t sweeps = run_sweeps(&options, UINT64_MAX, sweep);

    for (int t = 0; t < options.threads; t++)
        count(&truth_a, t, options.threads, growing_blocks(words, t, options.threads), sweeps);
    print_truth(&options, (struct object *[]){&truth_a}, 1);
    return finish(!wrong);
}
