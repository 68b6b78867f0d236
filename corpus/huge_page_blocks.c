// SPDX-License-Identifier: Apache-2.0 OR MIT
// corpus: object = a
// corpus: finding = huge-page-sharing
// corpus: partition = block-cyclic
// corpus: remote = 0.5
// corpus: fix = words
// corpus: build = gcc -O2 -g -Wall -Wextra -fopenmp {src} -o {out}
// corpus: run = {out}
// corpus: why = Initialised exactly as used, in chunks of 512 KiB, but four chunks share each 2 MiB page and one thread gets it.

// By hand: whichever thread faults a huge page first places it; two of its four users are on the other node: 0.5.
// With 4 KiB pages the same program is placed perfectly.

#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

enum { THREADS = 4, CHUNK = (512 << 10) / sizeof(double), HUGE_PAGE = 2 << 20 };
static const size_t N = (size_t)4 << 20; // doubles: 32 MiB
static const double RUN_S = 1.2;

int main(void) {
    double *a = aligned_alloc(HUGE_PAGE, N * sizeof *a); // @allocated
    if (!a || madvise(a, N * sizeof *a, MADV_HUGEPAGE) != 0)
        return 1;
#pragma omp parallel for num_threads(THREADS) schedule(static, CHUNK)
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
