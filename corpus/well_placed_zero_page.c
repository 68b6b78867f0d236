// SPDX-License-Identifier: Apache-2.0 OR MIT
// corpus: object = a
// corpus: finding = none
// corpus: partition = block
// corpus: remote = 0.0
// corpus: build = gcc -O2 -g -Wall -Wextra -fopenmp {src} -o {out}
// corpus: run = {out}
// corpus: why = Near miss of calloc_first_write: main only reads the fresh array, which maps the zero page and places nothing.

// Each page faults twice, first for reading in the main thread, then for writing in its owner: the second one counts.

#include <omp.h>
#include <stdio.h>
#include <stdlib.h>

enum { THREADS = 4 };
static const size_t N = (size_t)4 << 20; // doubles: 32 MiB
static const double RUN_S = 1.2;

static int is_zero(const double *x, size_t n) {
    int zero = 1;
    for (size_t i = 0; i < n; i++)
        zero &= x[i] == 0.0;
    return zero;
}

int main(void) {
    double *a = calloc(N, sizeof *a); // @allocated
    if (!a || !is_zero(a, N))
        return 1;

    long sweeps = 0;
    for (double end = omp_get_wtime() + RUN_S; omp_get_wtime() < end; sweeps++) {
#pragma omp parallel for num_threads(THREADS) schedule(static)
        for (size_t i = 0; i < N; i++)
            a[i] += 1.0; // @first-touch @used
    }

    long bad = 0;
#pragma omp parallel for num_threads(THREADS) schedule(static) reduction(+ : bad)
    for (size_t i = 0; i < N; i++)
        bad += a[i] != (double)sweeps;
    puts(bad ? "bad" : "ok");
    free(a);
    return bad != 0;
}
