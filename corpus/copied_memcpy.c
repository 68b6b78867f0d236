// SPDX-License-Identifier: Apache-2.0 OR MIT
// corpus: object = work
// corpus: finding = serial-first-touch
// corpus: partition = block
// corpus: cause = memcpy
// corpus: remote = 0.5
// corpus: fix = edit: #pragma omp parallel for num_threads(THREADS) schedule(static)
// corpus: build = gcc -O2 -g -Wall -Wextra -fopenmp {src} -o {out}
// corpus: run = {out}
// corpus: why = The input is well placed, but the main thread copies it with memcpy, and the copy is what the threads use.

#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { THREADS = 4 };
static const size_t N = (size_t)4 << 20; // doubles: 32 MiB
static const double RUN_S = 1.2;

int main(void) {
    double *input = malloc(N * sizeof *input);
    double *work = malloc(N * sizeof *work); // @allocated
    if (!input || !work)
        return 1;
#pragma omp parallel for num_threads(THREADS) schedule(static)
    for (size_t i = 0; i < N; i++)
        input[i] = (double)(i % 16);
    memcpy(work, input, N * sizeof *work); // @first-touch

    long sweeps = 0;
    for (double end = omp_get_wtime() + RUN_S; omp_get_wtime() < end; sweeps++) {
#pragma omp parallel for num_threads(THREADS) schedule(static)
        for (size_t i = 0; i < N; i++)
            work[i] = 16.0 - work[i]; // @used
    }

    long bad = 0;
#pragma omp parallel for num_threads(THREADS) schedule(static) reduction(+ : bad)
    for (size_t i = 0; i < N; i++)
        bad += work[i] != (sweeps % 2 ? 16.0 - input[i] : input[i]);
    puts(bad ? "bad" : "ok");
    free(work);
    free(input);
    return bad != 0;
}
