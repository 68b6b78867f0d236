// SPDX-License-Identifier: Apache-2.0 OR MIT
// corpus: object = a
// corpus: finding = mismatched-partition
// corpus: partition = block-cyclic
// corpus: remote = 0.5
// corpus: fix = words
// corpus: build = gcc -O2 -g -Wall -Wextra -fopenmp {src} -o {out}
// corpus: run = {out}
// corpus: why = Initialised in four equal blocks, used in chunks of 32 KiB dealt out in turn: half of each block is another node's.

// By hand: chunk k is used by thread k % 4, so by node (k % 4) / 2; its home is node 0 in the first half of
// the array and node 1 in the second. Two of every four chunks disagree: 0.5.

#include <omp.h>
#include <stdio.h>
#include <stdlib.h>

enum { THREADS = 4, CHUNK = 4096 };
static const size_t N = (size_t)4 << 20; // doubles: 32 MiB
static const double RUN_S = 1.2;

int main(void) {
    double *a = aligned_alloc(4096, N * sizeof *a); // @allocated
    if (!a)
        return 1;
#pragma omp parallel for num_threads(THREADS) schedule(static)
    for (size_t i = 0; i < N; i++)
        a[i] = 1.0; // @first-touch

    long sweeps = 0;
    for (double end = omp_get_wtime() + RUN_S; omp_get_wtime() < end; sweeps++) {
#pragma omp parallel for num_threads(THREADS) schedule(static, CHUNK)
        for (size_t i = 0; i < N; i++)
            a[i] += 1.0; // @used
    }

    long bad = 0;
#pragma omp parallel for num_threads(THREADS) schedule(static, CHUNK) reduction(+ : bad)
    for (size_t i = 0; i < N; i++)
        bad += a[i] != 1.0 + (double)sweeps;
    puts(bad ? "bad" : "ok");
    free(a);
    return bad != 0;
}
