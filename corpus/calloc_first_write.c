// SPDX-License-Identifier: Apache-2.0 OR MIT
// corpus: object = counts
// corpus: finding = serial-first-touch
// corpus: partition = block
// corpus: cause = calloc
// corpus: remote = 0.5
// corpus: fix = edit: #pragma omp parallel for num_threads(THREADS) schedule(static)
// corpus: build = gcc -O2 -g -Wall -Wextra -fopenmp {src} -o {out}
// corpus: run = {out}
// corpus: why = calloc of a big block touches nothing, but the main thread then writes all of it before the threads do.

#include <omp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { THREADS = 4 };
static const size_t BINS = (size_t)4 << 20; // 8 bytes each: 32 MiB
static const double RUN_S = 1.2;

int main(void) {
    uint64_t *counts = calloc(BINS, sizeof *counts); // @allocated
    if (!counts)
        return 1;
    for (size_t i = 0; i < BINS; i++)
        counts[i] = i; // @first-touch

    uint64_t sweeps = 0;
    for (double end = omp_get_wtime() + RUN_S; omp_get_wtime() < end; sweeps++) {
#pragma omp parallel for num_threads(THREADS) schedule(static)
        for (size_t i = 0; i < BINS; i++)
            counts[i] += 3; // @used
    }

    long bad = 0;
#pragma omp parallel for num_threads(THREADS) schedule(static) reduction(+ : bad)
    for (size_t i = 0; i < BINS; i++)
        bad += counts[i] != i + 3 * sweeps;
    puts(bad ? "bad" : "ok");
    free(counts);
    return bad != 0;
}
