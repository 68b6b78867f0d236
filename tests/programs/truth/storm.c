// SPDX-License-Identifier: Apache-2.0 OR MIT
// corpus: build = gcc -O2 -g -Wall -Wextra -fno-tree-vectorize -fopenmp {src} -o {out}
// corpus: run = {out} --threads 4 --seconds 4 --mib 1120
//
// Thread 0 fills all of --mib but 96 MiB: a storm of page faults. Then the team fills three arrays of 32 MiB, each thread the block that it
// uses, in a few milliseconds each. A sweep reads the large array, and writes the others. With --init serial (the default) the three arrays
// are allocated after the storm, with --init parallel before it.

#include "team.h"

enum { WORDS = (32 << 20) / 8 };

static struct options options;
static size_t words;
static double *filled, *p, *q, *r;
static double sums[MAX_THREADS][8];

KERNEL double sum_of(const double *data, struct range mine) {
    double sum = 0.0;
    for (size_t i = mine.begin; i < mine.end; i++)
        sum += data[i];
    return sum;
}

KERNEL void triad(double *restrict to, const double *restrict x, const double *restrict y, double s,
                  struct range mine) {
    for (size_t i = mine.begin; i < mine.end; i++)
        to[i] = x[i] + s * y[i];
}

static void sweep(int thread) {
    const struct range mine = block_of(WORDS, thread, options.threads);
    sums[thread][0] += sum_of(filled, block_of(words, thread, options.threads));
    for (int i = 0; i < 8; i++)
        triad(p, q, r, 3.0, mine);
}

static void allocate(void) {
    p = aligned_alloc(PAGE, WORDS * sizeof *p);
    q = aligned_alloc(PAGE, WORDS * sizeof *q);
    r = aligned_alloc(PAGE, WORDS * sizeof *r);
}

static void fill(struct object *object, double *data, double value) {
    struct options own = options;
    own.parallel_init = true;
    initialise(object, data, value, &own, block_of);
}

int main(int argc, char **argv) {
    options = options_from(argc, argv);
    if (options.mib <= 96)
        usage(argv[0]);
    words = (options.mib - 96) * (1 << 20) / 8;
    if (options.parallel_init)
        allocate();
    filled = aligned_alloc(PAGE, words * sizeof *filled);
    struct object truth_filled = object_of("filled", filled, words);
    write_words(filled, (struct range){0, words}, 1.0);
    place(&truth_filled, 0, (struct range){0, words});

    if (!options.parallel_init)
        allocate();
    struct object truth_p = object_of("p", p, WORDS);
    struct object truth_q = object_of("q", q, WORDS);
    struct object truth_r = object_of("r", r, WORDS);
    fill(&truth_p, p, 0.0);
    fill(&truth_q, q, 1.0);
    fill(&truth_r, r, 2.0);

    const uint64_t sweeps = run_sweeps(&options, options.sweeps ? options.sweeps : UINT64_MAX, sweep);

    const struct range first_page = {0, PAGE_WORDS};
    bool ok = all_equal(p, first_page, 7.0);
    count(&truth_p, 0, options.threads, first_page, 1);
    for (int t = 0; t < options.threads; t++) {
        const struct range mine = block_of(words, t, options.threads), own = block_of(WORDS, t, options.threads);
        ok &= sums[t][0] == (double)sweeps * (double)(mine.end - mine.begin);
        count(&truth_filled, t, options.threads, mine, sweeps);
        count(&truth_p, t, options.threads, own, 8 * sweeps);
        count(&truth_q, t, options.threads, own, 8 * sweeps);
        count(&truth_r, t, options.threads, own, 8 * sweeps);
    }
    print_truth(&options, (struct object *[]){&truth_filled, &truth_p, &truth_q, &truth_r}, 4);
    return finish(ok);
}
