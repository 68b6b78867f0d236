// SPDX-License-Identifier: Apache-2.0 OR MIT
// corpus: object = a
// corpus: finding = recycled-memory
// corpus: partition = block
// corpus: remote = 0.5
// corpus: fix = words
// corpus: build = gcc -O2 -g -Wall -Wextra -fopenmp {src} -o {out}
// corpus: run = {out}
// corpus: why = malloc is tuned to keep freed memory; the array is initialised in parallel on pages a serial phase placed before.

#include <limits.h>
#include <malloc.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>

enum { THREADS = 4 };
static const size_t N = (size_t)4 << 20; // doubles: 32 MiB
static const double RUN_S = 1.2;

static int read_input(void) {
    double *scratch = malloc(N * sizeof *scratch);
    if (!scratch)
        return 0;
    for (size_t i = 0; i < N; i++)
        scratch[i] = (double)(i % 4); // @first-touch
    double sum = 0.0;
    for (size_t i = 0; i < N; i++)
        sum += scratch[i];
    free(scratch);
    return sum == 1.5 * (double)N;
}

int main(void) {
    mallopt(M_MMAP_MAX, 0); // "page faults are slow": take everything from the heap and never give it back
    mallopt(M_TRIM_THRESHOLD, INT_MAX);
    if (!read_input())
        return 1;

    double *a = malloc(N * sizeof *a); // @allocated
    if (!a)
        return 1;
#pragma omp parallel for num_threads(THREADS) schedule(static)
    for (size_t i = 0; i < N; i++)
        a[i] = 1.0; // as it should be done, but no page is new

    long sweeps = 0;
    for (double end = omp_get_wtime() + RUN_S; omp_get_wtime() < end; sweeps++) {
#pragma omp parallel for num_threads(THREADS) schedule(static)
        for (size_t i = 0; i < N; i++)
            a[i] += 1.0; // @used
    }

    long bad = 0;
#pragma omp parallel for num_threads(THREADS) schedule(static) reduction(+ : bad)
    for (size_t i = 0; i < N; i++)
        bad += a[i] != 1.0 + (double)sweeps;
    puts(bad ? "bad" : "ok");
    free(a);
    return bad != 0;
}
