// SPDX-License-Identifier: Apache-2.0 OR MIT
// corpus: object = psi
// corpus: finding = mismatched-partition
// corpus: partition = block
// corpus: remote = 0.5
// corpus: fix = words
// corpus: build = gcc -O2 -g -Wall -Wextra -fopenmp {src} -o {out}
// corpus: run = {out}
// corpus: why = The initialisation parallelises a loop of 2, so 2 of 4 threads place all; the use collapses it with the next.

// By hand: component 0 is placed by thread 0, component 1 by thread 1, both on node 0. The collapsed loop gives
// each thread a quarter; threads 2 and 3 are on node 1, so component 1 (half of the accesses) is remote: 0.5.

#include <omp.h>
#include <stdio.h>
#include <stdlib.h>

enum { THREADS = 4, COMPONENTS = 2 };         // real and imaginary part
static const size_t POINTS = (size_t)2 << 20; // doubles: 16 MiB a component
static const double RUN_S = 1.2;

int main(void) {
    double *psi = malloc(COMPONENTS * POINTS * sizeof *psi); // @allocated
    if (!psi)
        return 1;
#pragma omp parallel for num_threads(THREADS) schedule(static)
    for (size_t k = 0; k < COMPONENTS; k++)
        for (size_t i = 0; i < POINTS; i++)
            psi[k * POINTS + i] = 1.0; // @first-touch

    long sweeps = 0;
    for (double end = omp_get_wtime() + RUN_S; omp_get_wtime() < end; sweeps++) {
#pragma omp parallel for num_threads(THREADS) schedule(static) collapse(2)
        for (size_t k = 0; k < COMPONENTS; k++)
            for (size_t i = 0; i < POINTS; i++)
                psi[k * POINTS + i] += 1.0; // @used
    }

    int bad = 0;
    for (size_t i = 0; i < COMPONENTS * POINTS; i++)
        bad |= psi[i] != 1.0 + (double)sweeps;
    puts(bad ? "bad" : "ok");
    free(psi);
    return bad;
}
