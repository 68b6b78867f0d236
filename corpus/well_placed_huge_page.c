// SPDX-License-Identifier: Apache-2.0 OR MIT
// corpus: object = a
// corpus: finding = none
// corpus: partition = block-cyclic
// corpus: remote = 0.0
// corpus: build = gcc -O2 -g -Wall -Wextra -fopenmp {src} -o {out}
// corpus: run = {out}
// corpus: why = Near miss of huge_page_blocks: the chunks are whole huge pages, so each page has one user.

#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

enum { THREADS = 4, HUGE_PAGE = 2 << 20, CHUNK = HUGE_PAGE / sizeof(double) };
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
