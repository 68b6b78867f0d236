// SPDX-License-Identifier: Apache-2.0 OR MIT
// corpus: build = gcc -O2 -g -Wall -Wextra -fno-tree-vectorize -fopenmp {src} -o {out}
// corpus: run = {out} --threads 8 --seconds 10 --mib 64 --init serial
//
// c = A b in blocks of rows. A sweep reads each of the m * n words of A once, each of the n words of b once a row, and
// writes each of the m words of c once.

#include "team.h"

enum { COLUMNS = 8192 };

static struct options options;
static size_t rows;
static double *A, *b, *c;
static bool wrong;

static struct range rows_of(int thread) {
    const size_t threads = (size_t)options.threads, t = (size_t)thread;
    return (struct range){rows * t / threads, rows * (t + 1) / threads};
}

static struct range row_blocks(size_t words, int thread, int threads) {
    (void)words, (void)threads;
    const struct range mine = rows_of(thread);
    return (struct range){mine.begin * COLUMNS, mine.end * COLUMNS};
}

KERNEL void multiply(double *restrict to, const double *restrict matrix, const double *restrict vector,
                     struct range mine) {
    for (size_t i = mine.begin; i < mine.end; i++) {
        double sum = 0.0;
        for (size_t j = 0; j < COLUMNS; j++)
            sum += matrix[i * COLUMNS + j] * vector[j];
        to[i] = sum;
    }
}

static void sweep(int thread) {
    multiply(c, A, b, rows_of(thread));
}

int main(int argc, char **argv) {
    options = options_from(argc, argv);
    rows = words_of(&options, 1) / COLUMNS;
    A = aligned_alloc(PAGE, rows * COLUMNS * sizeof *A);
    b = aligned_alloc(PAGE, COLUMNS * sizeof *b);
    c = aligned_alloc(PAGE, (rows * sizeof *c + PAGE - 1) / PAGE * PAGE);
    struct object truth_A = object_of("A", A, rows * COLUMNS);
    struct object truth_b = object_of("b", b, COLUMNS);
    struct object truth_c = object_of("c", c, rows);
    initialise(&truth_A, A, 0.5, &options, row_blocks);
    initialise(&truth_b, b, 2.0, &options, block_of);
    initialise(&truth_c, c, 0.0, &options, block_of);

    const uint64_t sweeps = run_sweeps(&options, UINT64_MAX, sweep);

    wrong = !all_equal(c, (struct range){0, rows}, COLUMNS);
    count(&truth_c, 0, options.threads, (struct range){0, rows}, 1);
    for (int t = 0; t < options.threads; t++) {
        const struct range mine = rows_of(t);
        count(&truth_A, t, options.threads, row_blocks(0, t, 0), sweeps);
        count(&truth_b, t, options.threads, (struct range){0, COLUMNS}, sweeps * (mine.end - mine.begin));
        count(&truth_c, t, options.threads, mine, sweeps);
    }
    print_truth(&options, (struct object *[]){&truth_A, &truth_b, &truth_c}, 3);
    return finish(!wrong);
}
