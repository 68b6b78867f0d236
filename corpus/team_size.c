// SPDX-License-Identifier: Apache-2.0 OR MIT
// corpus: object = a
// corpus: finding = mismatched-partition
// corpus: partition = block
// corpus: remote = 0.5
// corpus: fix = words
// corpus: build = gcc -O2 -g -Wall -Wextra -fopenmp {src} -o {out}
// corpus: run = {out}
// corpus: why = Same loop, same static schedule, but a team of 2 initialises and a team of 4 computes.

// By hand: threads 0 and 1 place a half each, both on node 0. Threads 2 and 3 (node 1) use the second half: 0.5.

#include <omp.h>
#include <stdio.h>
#include <stdlib.h>

enum { IO_THREADS = 2, THREADS = 4 };
static const size_t N = (size_t)4 << 20; // doubles: 32 MiB
static const double RUN_S = 1.2;

int main(void) {
    double *a = malloc(N * sizeof *a); // @allocated
    if (!a)
        return 1;

    omp_set_num_threads(IO_THREADS);
#pragma omp parallel for schedule(static)
    for (size_t i = 0; i < N; i++)
        a[i] = (double)(i % 4); // @first-touch

    omp_set_num_threads(THREADS);
    int bad = 0;
    for (double end = omp_get_wtime() + RUN_S; omp_get_wtime() < end;) {
        double sum = 0.0;
#pragma omp parallel for schedule(static) reduction(+ : sum)
        for (size_t i = 0; i < N; i++)
            sum += a[i]; // @used
        bad |= sum != 1.5 * (double)N;
    }
    puts(bad ? "bad" : "ok");
    free(a);
    return bad;
}
