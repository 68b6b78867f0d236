// SPDX-License-Identifier: Apache-2.0 OR MIT
// corpus: build = gcc -O2 -s -Wall -Wextra -fno-tree-vectorize -fopenmp {src} -o {out}
// corpus: run = {out} --threads 4 --seconds 10 --init serial
//
// Two static arrays of a program without symbols, each read once in a sweep, in blocks. With --init serial one thread fills a, and the threads fill their
// blocks of b: a quarter of the accesses is remote on two nodes.

#include "team.h"

enum { WORDS = 1 << 22 };

static struct options options;
static _Alignas(PAGE) double a[WORDS], b[WORDS];
static bool wrong;

KERNEL double sum(const double *x, struct range part) {
    double all = 0.0;
    for (size_t i = part.begin; i < part.end; i++)
        all += x[i];
    return all;
}

static void sweep(int thread) {
    const struct range mine = block_of(WORDS, thread, options.threads);
    if (sum(a, mine) + sum(b, mine) != 3.0 * (double)(mine.end - mine.begin)) {
#pragma omp atomic write
        wrong = true;
    }
}

int main(int argc, char **argv) {
    options = options_from(argc, argv);
    struct object truth_a = object_of("a", a, WORDS);
    struct object truth_b = object_of("b", b, WORDS);
    initialise(&truth_a, a, 1.0, &options, block_of);
    initialise_by_users(&truth_b, b, 2.0, options.threads, block_of);

    const uint64_t sweeps = run_sweeps(&options, UINT64_MAX, sweep);

    for (int t = 0; t < options.threads; t++) {
        const struct range mine = block_of(WORDS, t, options.threads);
        count(&truth_a, t, options.threads, mine, sweeps);
        count(&truth_b, t, options.threads, mine, sweeps);
    }
    print_truth(&options, (struct object *[]){&truth_a, &truth_b}, 2);
    return finish(!wrong);
}
