// SPDX-License-Identifier: Apache-2.0 OR MIT
// corpus: object = energy
// corpus: finding = none
// corpus: partition = block
// corpus: remote = 0.0
// corpus: build = gcc -O2 -g -Wall -Wextra -fopenmp {src} -o {out}
// corpus: run = {out}
// corpus: why = Near miss of serial_memset: gcc -O2 merges malloc and memset into calloc, so the threads touch the pages first.

// So the source alone does not show the placement: the same two lines at -O0, or with aligned_alloc, place all on one node.

#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { THREADS = 4 };
static const size_t CELLS = (size_t)4 << 20; // doubles: 32 MiB
static const double RUN_S = 1.2;

int main(void) {
    double *energy = malloc(CELLS * sizeof *energy); // @allocated
    if (!energy)
        return 1;
    memset(energy, 0, CELLS * sizeof *energy);

    long steps = 0;
    for (double end = omp_get_wtime() + RUN_S; omp_get_wtime() < end; steps++) {
#pragma omp parallel for num_threads(THREADS) schedule(static)
        for (size_t i = 0; i < CELLS; i++)
            energy[i] += 0.25; // @first-touch @used
    }

    long bad = 0;
#pragma omp parallel for num_threads(THREADS) schedule(static) reduction(+ : bad)
    for (size_t i = 0; i < CELLS; i++)
        bad += energy[i] != 0.25 * (double)steps;
    puts(bad ? "bad" : "ok");
    free(energy);
    return bad != 0;
}
