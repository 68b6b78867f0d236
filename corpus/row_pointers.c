// SPDX-License-Identifier: Apache-2.0 OR MIT
// corpus: object = row[i]
// corpus: finding = serial-first-touch
// corpus: partition = block
// corpus: cause = loop
// corpus: remote = 0.5
// corpus: fix = words
// corpus: build = gcc -O2 -g -Wall -Wextra -fopenmp {src} -o {out}
// corpus: run = {out}
// corpus: why = The matrix is 256 rows allocated one by one at one line; each is small, together they all lie with thread 0.

#include <omp.h>
#include <stdio.h>
#include <stdlib.h>

enum { THREADS = 4, ROWS = 256 };
static const size_t COLUMNS = 16384; // doubles: 128 KiB a row, 32 MiB together
static const double RUN_S = 1.2;

int main(void) {
    double **row = malloc(ROWS * sizeof *row);
    if (!row)
        return 1;
    for (int i = 0; i < ROWS; i++) {
        row[i] = malloc(COLUMNS * sizeof **row); // @allocated
        if (!row[i])
            return 1;
        for (size_t j = 0; j < COLUMNS; j++)
            row[i][j] = 1.0; // @first-touch
    }

    long sweeps = 0;
    for (double end = omp_get_wtime() + RUN_S; omp_get_wtime() < end; sweeps++) {
#pragma omp parallel for num_threads(THREADS) schedule(static)
        for (int i = 0; i < ROWS; i++)
            for (size_t j = 0; j < COLUMNS; j++)
                row[i][j] += 1.0; // @used
    }

    int bad = 0;
    for (int i = 0; i < ROWS; i++) {
        for (size_t j = 0; j < COLUMNS; j++)
            bad |= row[i][j] != 1.0 + (double)sweeps;
        free(row[i]);
    }
    puts(bad ? "bad" : "ok");
    free(row);
    return bad;
}
