// SPDX-License-Identifier: Apache-2.0 OR MIT
// corpus: object = now
// corpus: finding = none
// corpus: partition = block
// corpus: remote = 0.0
// corpus: build = gcc -O2 -g -Wall -Wextra -fopenmp {src} -o {out}
// corpus: run = {out}
// corpus: why = Near miss of double_buffer: both buffers are initialised in the same static loop, so they may trade names.

#include <omp.h>
#include <stdio.h>
#include <stdlib.h>

enum { THREADS = 4 };
static const size_t N = (size_t)4 << 20; // doubles: 32 MiB a buffer
static const double RUN_S = 1.2;

// A linear profile is a fixed point of this smoothing, so the answer is known after any number of steps.
static void smooth(double *next, const double *now) {
#pragma omp parallel for num_threads(THREADS) schedule(static)
    for (size_t i = 1; i < N - 1; i++)
        next[i] = 0.25 * now[i - 1] + 0.5 * now[i] + 0.25 * now[i + 1]; // @used
}

int main(void) {
    double *now = malloc(N * sizeof *now); // @allocated
    double *next = malloc(N * sizeof *next);
    if (!now || !next)
        return 1;
#pragma omp parallel for num_threads(THREADS) schedule(static)
    for (size_t i = 0; i < N; i++)
        now[i] = next[i] = (double)i; // @first-touch

    for (double end = omp_get_wtime() + RUN_S; omp_get_wtime() < end;) {
        smooth(next, now);
        double *swap = now;
        now = next;
        next = swap;
    }

    long bad = 0;
#pragma omp parallel for num_threads(THREADS) schedule(static) reduction(+ : bad)
    for (size_t i = 0; i < N; i++)
        bad += now[i] != (double)i;
    puts(bad ? "bad" : "ok");
    free(next);
    free(now);
    return bad != 0;
}
