// SPDX-License-Identifier: Apache-2.0 OR MIT
// corpus: object = grid
// corpus: finding = serial-first-touch
// corpus: partition = block
// corpus: cause = loop
// corpus: remote = 0.5
// corpus: fix = edit: #pragma omp parallel for num_threads(THREADS) schedule(static)
// corpus: build = gcc -O2 -g -Wall -Wextra -fopenmp {src} -o {out}
// corpus: run = {out}
// corpus: why = A static array has no allocation to look at, but its pages are placed by first touch like any others.

#include <omp.h>
#include <stdio.h>

enum { THREADS = 4, ROWS = 2048, COLUMNS = 2048 };
static const double RUN_S = 1.2;

static double grid[ROWS][COLUMNS]; // 32 MiB @allocated

static void set_up(void) {
    for (int row = 0; row < ROWS; row++)
        for (int column = 0; column < COLUMNS; column++)
            grid[row][column] = (double)row; // @first-touch
}

static double total(void) {
    double sum = 0.0;
#pragma omp parallel for num_threads(THREADS) schedule(static) reduction(+ : sum)
    for (int row = 0; row < ROWS; row++)
        for (int column = 0; column < COLUMNS; column++)
            sum += grid[row][column]; // @used
    return sum;
}

int main(void) {
    set_up();
    int bad = 0;
    for (double end = omp_get_wtime() + RUN_S; omp_get_wtime() < end;)
        bad |= total() != (double)COLUMNS * ROWS * (ROWS - 1) / 2;
    puts(bad ? "bad" : "ok");
    return bad;
}
