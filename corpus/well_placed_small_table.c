// SPDX-License-Identifier: Apache-2.0 OR MIT
// corpus: object = y
// corpus: finding = none
// corpus: partition = block
// corpus: remote = 0.0
// corpus: build = gcc -O2 -g -Wall -Wextra -fopenmp {src} -o {out}
// corpus: run = {out}
// corpus: why = Near miss of shared_table: the table all threads read is 128 KiB and lives in their caches; the big array is placed.

#include <omp.h>
#include <stdio.h>
#include <stdlib.h>

enum { THREADS = 4, ENTRIES = 16384 };
static const size_t N = (size_t)4 << 20; // doubles: 32 MiB
static const double RUN_S = 1.2;

int main(void) {
    double *table = malloc(ENTRIES * sizeof *table); // 128 KiB, shared
    double *y = malloc(N * sizeof *y);               // @allocated
    if (!table || !y)
        return 1;
    for (int k = 0; k < ENTRIES; k++)
        table[k] = 0.5 * k;
#pragma omp parallel for num_threads(THREADS) schedule(static)
    for (size_t i = 0; i < N; i++)
        y[i] = 1.0; // @first-touch

    long sweeps = 0;
    for (double end = omp_get_wtime() + RUN_S; omp_get_wtime() < end; sweeps++) {
#pragma omp parallel for num_threads(THREADS) schedule(static)
        for (size_t i = 0; i < N; i++)
            y[i] += table[(7 * i) % ENTRIES]; // @used
    }

    long bad = 0;
#pragma omp parallel for num_threads(THREADS) schedule(static) reduction(+ : bad)
    for (size_t i = 0; i < N; i++)
        bad += y[i] != 1.0 + 0.5 * (double)((7 * i) % ENTRIES) * (double)sweeps;
    puts(bad ? "bad" : "ok");
    free(y);
    free(table);
    return bad != 0;
}
