// SPDX-License-Identifier: Apache-2.0 OR MIT
// corpus: object = L
// corpus: finding = none
// corpus: partition = block
// corpus: remote = 0.0
// corpus: build = clang -O2 -g -Wall -Wextra -fopenmp {src} -o {out}
// corpus: run = {out}
// corpus: why = Near miss of triangle_packed: the packed triangle is initialised by rows, as it is used, however unequal they are.

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { THREADS = 4 };
static const size_t ROWS = 2896; // 4.2 million doubles: 32 MiB
static const double RUN_S = 1.2;

static double seconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static size_t row_start(size_t row) {
    return row * (row + 1) / 2;
}

int main(void) {
    double *L = malloc(row_start(ROWS) * sizeof *L); // @allocated
    if (!L)
        return 1;
#pragma omp parallel for num_threads(THREADS) schedule(static)
    for (size_t i = 0; i < ROWS; i++) {
        double *row = L + row_start(i);
        for (size_t j = 0; j <= i; j++)
            row[j] = 2.0; // @first-touch
    }

    int bad = 0;
    for (double end = seconds() + RUN_S; seconds() < end;) {
        double sum = 0.0;
#pragma omp parallel for num_threads(THREADS) schedule(static) reduction(+ : sum)
        for (size_t i = 0; i < ROWS; i++) {
            const double *row = L + row_start(i);
            for (size_t j = 0; j <= i; j++)
                sum += row[j]; // @used
        }
        bad |= sum != 2.0 * (double)row_start(ROWS);
    }
    puts(bad ? "bad" : "ok");
    free(L);
    return bad;
}
