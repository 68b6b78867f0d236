// SPDX-License-Identifier: Apache-2.0 OR MIT
// corpus: build = gcc -O2 -g -Wall -Wextra -fopenmp {src} -o {out}
// corpus: run = {out}
//
// Tasks allocate and fill the tiles: which thread does which, and in which order, changes from run to run. A loop with a static schedule uses them.
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>

enum { TILES = 96, WORDS = 1 << 16 };

static double *tile[TILES];

static void fill(int number) {
    double *t = malloc(WORDS * sizeof *t);
    for (int i = 0; i < WORDS; i++)
        t[i] = number;
    tile[number] = t;
}

int main(void) {
#pragma omp parallel
#pragma omp single
    for (int number = 0; number < TILES; number++)
#pragma omp task firstprivate(number)
        fill(number);
    double sum = 0;
    const double end = omp_get_wtime() + 3;
    while (omp_get_wtime() < end) {
#pragma omp parallel for schedule(static) reduction(+ : sum)
        for (int number = 0; number < TILES; number++)
            for (int i = 0; i < WORDS; i++)
                sum += tile[number][i];
    }
    for (int number = 0; number < TILES; number++)
        free(tile[number]);
    puts(sum > 0 ? "ok" : "wrong");
    return 0;
}
