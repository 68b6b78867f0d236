// SPDX-License-Identifier: Apache-2.0 OR MIT
// corpus: object = table
// corpus: finding = shared-read
// corpus: partition = shared
// corpus: remote = 0.5
// corpus: fix = words
// corpus: build = gcc -O2 -g -Wall -Wextra -fopenmp {src} -o {out}
// corpus: run = {out}
// corpus: why = Every thread reads the whole table; even placed in parallel, half of it is remote for each of them.

#include <omp.h>
#include <stdio.h>
#include <stdlib.h>

enum { THREADS = 4 };
static const size_t N = (size_t)2 << 20; // doubles: 16 MiB, more than the caches hold
static const double RUN_S = 1.2;

int main(void) {
    double *table = malloc(N * sizeof *table); // @allocated
    if (!table)
        return 1;
#pragma omp parallel for num_threads(THREADS) schedule(static)
    for (size_t i = 0; i < N; i++)
        table[i] = (double)(i % 4); // @first-touch

    int bad = 0;
    for (double end = omp_get_wtime() + RUN_S; omp_get_wtime() < end;) {
#pragma omp parallel num_threads(THREADS) reduction(| : bad)
        {
            const double factor = omp_get_thread_num() + 1; // each thread solves its own case with the same table
            double sum = 0.0;
            for (size_t i = 0; i < N; i++)
                sum += factor * table[i]; // @used
            bad |= sum != factor * 1.5 * (double)N;
        }
    }
    puts(bad ? "bad" : "ok");
    free(table);
    return bad;
}
