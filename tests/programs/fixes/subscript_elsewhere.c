// SPDX-License-Identifier: Apache-2.0 OR MIT
// corpus: object = a
// corpus: fix = words
// corpus: says = but the subscripts differ (d[n-1-i] and x[i])
// corpus: build = gcc -O2 -g -Wall -Wextra -fopenmp -I{dir} {src} -o {out}
// corpus: run = {out}
// corpus: why = Two functions divide their loops alike, by other names for the array: only the subscripts differ.

#include "fixes.h"

#include <stdlib.h>

static const long N = 2L << 20; // 16 MiB

static void __attribute__((noinline)) fill(double *d, long n) {
#pragma omp parallel for num_threads(4) schedule(static)
    for (long i = 0; i < n; i++)
        d[n - 1 - i] = (double)(i % 7);
}

static void __attribute__((noinline)) sweep_over(double *x, long n) {
#pragma omp parallel for num_threads(4) schedule(static)
    for (long i = 0; i < n; i++)
        x[i] = 3.0 - x[i];
}

int main(void) {
    double *a = malloc((size_t)N * sizeof *a);
    if (!a)
        return 1;
    fill(a, N);
    for (int sweep = 0; sweep < SWEEPS; sweep++)
        sweep_over(a, N);
    print_sum("a", a, (size_t)N);
    return 0;
}
