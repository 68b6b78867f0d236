// SPDX-License-Identifier: Apache-2.0 OR MIT
// corpus: build = gcc -O2 -g -Wall -Wextra -fno-tree-vectorize -fopenmp {src} -o {out}
// corpus: run = {out} --threads 4 --seconds 4 --mib 128
//
// One thread writes the first element of each row of two pages. A team then reads and writes all of the new array, each thread a block of rows, so
// that it takes two faults on each page that is its own: half of the array is the first thread's.

#include "team.h"

enum { ROW = 2 * PAGE_WORDS };

static struct options options;
static size_t rows;
static double *a;

static struct range block_of_rows(int thread) {
    const size_t begin = rows * (size_t)thread / (size_t)options.threads;
    const size_t end = rows * (size_t)(thread + 1) / (size_t)options.threads;
    return (struct range){begin * ROW, end * ROW};
}

KERNEL void update(double *data, struct range mine) {
    for (size_t i = mine.begin; i < mine.end; i++)
        data[i] = 0.5 * data[i] + 1.0;
}

static void sweep(int thread) {
    update(a, block_of_rows(thread));
}

int main(int argc, char **argv) {
    options = options_from(argc, argv);
    rows = words_of(&options, 1) / ROW;
    const size_t words = rows * ROW;
    a = aligned_alloc(PAGE, words * sizeof *a);
    struct object truth_a = object_of("a", a, words);
    for (size_t row = 0; row < rows; row++) {
        a[row * ROW] = 1.0;
        place(&truth_a, 0, (struct range){row * ROW, row * ROW + 1});
    }
    const uint64_t sweeps = run_sweeps(&options, options.sweeps ? options.sweeps : UINT64_MAX, sweep);
    for (int t = 0; t < options.threads; t++) {
        place(&truth_a, t, block_of_rows(t));
        count(&truth_a, t, options.threads, block_of_rows(t), sweeps);
    }
    print_truth(&options, (struct object *[]){&truth_a}, 1);
    return finish(a[words - 1] > 0.5);
}
