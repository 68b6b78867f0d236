// SPDX-License-Identifier: Apache-2.0 OR MIT
// corpus: object = energy
// corpus: finding = serial-first-touch
// corpus: partition = block
// corpus: cause = memset
// corpus: remote = 0.5
// corpus: fix = edit: #pragma omp parallel for num_threads(THREADS) schedule(static)
// corpus: build = gcc -O2 -g -Wall -Wextra -fopenmp {src} -o {out}
// corpus: run = {out}
// corpus: why = The main thread clears the array with memset, so every page is placed before the threads add to it.

// (gcc -O2 would merge a malloc directly before the memset into calloc, which touches nothing; it does not merge
// aligned_alloc.)

#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { THREADS = 4 };
static const size_t CELLS = (size_t)4 << 20; // doubles: 32 MiB
static const double RUN_S = 1.2;

int main(void) {
    double *energy = aligned_alloc(64, CELLS * sizeof *energy); // @allocated
    if (!energy)
        return 1;
    memset(energy, 0, CELLS * sizeof *energy); // @first-touch

    long steps = 0;
    for (double end = omp_get_wtime() + RUN_S; omp_get_wtime() < end; steps++) {
#pragma omp parallel for num_threads(THREADS) schedule(static)
        for (size_t i = 0; i < CELLS; i++)
            energy[i] += 0.25; // @used
    }

    long bad = 0;
#pragma omp parallel for num_threads(THREADS) schedule(static) reduction(+ : bad)
    for (size_t i = 0; i < CELLS; i++)
        bad += energy[i] != 0.25 * (double)steps;
    puts(bad ? "bad" : "ok");
    free(energy);
    return bad != 0;
}
