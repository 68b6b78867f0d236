// SPDX-License-Identifier: Apache-2.0 OR MIT
// corpus: object = a
// corpus: finding = no-stable-partition
// corpus: partition = irregular
// corpus: remote = 0.5
// corpus: fix = words
// corpus: build = gcc -O2 -g -Wall -Wextra -fopenmp {src} -o {out}
// corpus: run = {out}
// corpus: why = schedule(dynamic) hands each block of rows to whichever thread is free, another one in every sweep.
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>

enum { THREADS = 4 };
static const size_t ROWS = 2048, COLUMNS = 2048; // doubles: 32 MiB
static const double RUN_S = 1.2;

int main(void) {
    double *a = malloc(ROWS * COLUMNS * sizeof *a); // @allocated
    if (!a)
        return 1;
#pragma omp parallel for num_threads(THREADS) schedule(static)
    for (size_t i = 0; i < ROWS * COLUMNS; i++)
        a[i] = 1.0; // @first-touch

    long sweeps = 0;
    for (double end = omp_get_wtime() + RUN_S; omp_get_wtime() < end; sweeps++) {
#pragma omp parallel for num_threads(THREADS) schedule(dynamic, 4)
        for (size_t row = 0; row < ROWS; row++)
            for (size_t j = 0; j < COLUMNS; j++)
                a[row * COLUMNS + j] += 1.0; // @used
    }

    int bad = 0;
    for (size_t i = 0; i < ROWS * COLUMNS; i++)
        bad |= a[i] != 1.0 + (double)sweeps;
    puts(bad ? "bad" : "ok");
    free(a);
    return bad;
}
