// SPDX-License-Identifier: Apache-2.0 OR MIT
// corpus: object = a
// corpus: fix = edit
// corpus: build = gcc -O2 -g -Wall -Wextra -fopenmp -I{dir} {src} -o {out}
// corpus: run = {out}
// corpus: why = The loop that uses the array counts down: its first thread has the end of the array, and a loop in order would place each part wrong.

#include "fixes.h"

#include <stdlib.h>

static const long N = 2L << 20; // 16 MiB

int main(void) {
    double *a = malloc((size_t)N * sizeof *a);
    if (!a)
        return 1;
    for (long i = 0; i < N; i++)
        a[i] = (double)(i % 11);
    for (int sweep = 0; sweep < SWEEPS; sweep++) {
#pragma omp parallel for num_threads(4) schedule(static)
        for (long i = N - 1; i >= 0; i--)
            a[i] = 3.0 - a[i];
    }
    print_sum("a", a, (size_t)N);
    return 0;
}
