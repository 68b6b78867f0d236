// SPDX-License-Identifier: Apache-2.0 OR MIT
// corpus: build = gcc -O2 -g -Wall -Wextra -fno-tree-vectorize -fopenmp {src} -o {out}
// corpus: run = {out} --threads 8 --seconds 10 --mib 64 --init serial
//
// a = b + s c over three arrays of a third of --mib: a sweep touches each word of each array once, in blocks.

#include "team.h"

static struct options options;
static size_t words;
static double *a, *b, *c;

KERNEL void triad(double *restrict to, const double *restrict x, const double *restrict y, double s,
                  struct range mine) {
    for (size_t i = mine.begin; i < mine.end; i++)
        to[i] = x[i] + s * y[i];
}

static void sweep(int thread) {
    triad(a, b, c, 3.0, block_of(words, thread, options.threads));
}

int main(int argc, char **argv) {
    options = options_from(argc, argv);
    words = words_of(&options, 3);
    a = aligned_alloc(PAGE, words * sizeof *a);
    b = aligned_alloc(PAGE, words * sizeof *b);
    c = aligned_alloc(PAGE, words * sizeof *c);
    struct object truth_a = object_of("a", a, words);
    struct object truth_b = object_of("b", b, words);
    struct object truth_c = object_of("c", c, words);
    initialise(&truth_a, a, 0.0, &options, block_of);
    initialise(&truth_b, b, 1.0, &options, block_of);
    initialise(&truth_c, c, 2.0, &options, block_of);

    const uint64_t sweeps = run_sweeps(&options, options.sweeps ? options.sweeps : UINT64_MAX, sweep);

    const struct range first_page = {0, PAGE_WORDS};
    const bool ok = all_equal(a, first_page, 7.0);
    count(&truth_a, 0, options.threads, first_page, 1);
    for (int t = 0; t < options.threads; t++) {
        const struct range mine = block_of(words, t, options.threads);
        count(&truth_a, t, options.threads, mine, sweeps);
        count(&truth_b, t, options.threads, mine, sweeps);
        count(&truth_c, t, options.threads, mine, sweeps);
    }
    print_truth(&options, (struct object *[]){&truth_a, &truth_b, &truth_c}, 3);
    return finish(ok);
}
