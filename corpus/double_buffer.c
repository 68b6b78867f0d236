// SPDX-License-Identifier: Apache-2.0 OR MIT
// corpus: object = now
// corpus: finding = serial-first-touch
// corpus: partition = block
// corpus: cause = loop
// corpus: remote = 0.5
// corpus: fix = edit: #pragma omp parallel for num_threads(THREADS) schedule(static)
// corpus: build = gcc -O2 -g -Wall -Wextra -fopenmp {src} -o {out}
// corpus: run = {out}
// corpus: why = Two serially filled buffers trade names after each step; both lie with thread 0 whatever they are called.

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
    for (size_t i = 0; i < N; i++)
        now[i] = next[i] = (double)i; // @first-touch

    for (double end = omp_get_wtime() + RUN_S; omp_get_wtime() < end;) {
        smooth(next, now);
        double *swap = now;
        now = next;
        next = swap;
    }

    int bad = 0;
    for (size_t i = 0; i < N; i++)
        bad |= now[i] != (double)i;
    puts(bad ? "bad" : "ok");
    free(next);
    free(now);
    return bad;
}
