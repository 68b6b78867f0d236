// SPDX-License-Identifier: Apache-2.0 OR MIT
// corpus: object = row[i]
// corpus: finding = none
// corpus: partition = block
// corpus: remote = 0.0
// corpus: watch = none (no watchpoints are set on small blocks)
// corpus: build = gcc -O2 -g -Wall -Wextra -fopenmp {src} -o {out}
// corpus: run = {out}
// corpus: why = Near miss of small_rows: each thread allocates and initialises the rows that it uses, in an arena of its own.

#include <omp.h>
#include <stdio.h>
#include <stdlib.h>

enum { THREADS = 4, ROWS = 16000, COLUMNS = 256 }; // doubles: 2 KiB a row, 31 MiB together
static const double RUN_S = 1.2;

int main(void) {
    double **row = malloc(ROWS * sizeof *row);
    if (!row)
        return 1;
    int failed = 0;
#pragma omp parallel for num_threads(THREADS) schedule(static) reduction(| : failed)
    for (int i = 0; i < ROWS; i++) {
        row[i] = malloc(COLUMNS * sizeof **row); // @allocated @first-touch
        failed |= !row[i];
        for (int j = 0; row[i] && j < COLUMNS; j++)
            row[i][j] = 1.0;
    }
    if (failed)
        return 1;

    long sweeps = 0;
    for (double end = omp_get_wtime() + RUN_S; omp_get_wtime() < end; sweeps++) {
#pragma omp parallel for num_threads(THREADS) schedule(static)
        for (int i = 0; i < ROWS; i++)
            for (int j = 0; j < COLUMNS; j++)
                row[i][j] += 1.0; // @used
    }

    int bad = 0;
    for (int i = 0; i < ROWS; i++) {
        for (int j = 0; j < COLUMNS; j++)
            bad |= row[i][j] != 1.0 + (double)sweeps;
        free(row[i]);
    }
    puts(bad ? "bad" : "ok");
    free(row);
    return bad;
}
