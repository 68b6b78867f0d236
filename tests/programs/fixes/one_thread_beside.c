// SPDX-License-Identifier: Apache-2.0 OR MIT
// corpus: object = a
// corpus: fix = edit: ((char *)a)[page] = 0;
// corpus: says = because it also initialises b (used by one thread)
// corpus: build = gcc -O2 -g -Wall -Wextra -fopenmp -I{dir} {src} -o {out}
// corpus: run = {out}
// corpus: why = The loop that initialises the array initialises another one, which the main thread uses alone: divided, it would take that one's pages away.

#include "fixes.h"

#include <stdlib.h>

static const size_t N = (size_t)1 << 20; // 8 MiB each

int main(void) {
    double *a = malloc(N * sizeof *a);
    double *b = malloc(N * sizeof *b);
    if (!a || !b)
        return 1;
    for (size_t i = 0; i < N; i++) {
        a[i] = (double)(i % 7);
        b[i] = 1.0;
    }
    for (int sweep = 0; sweep < SWEEPS; sweep++) {
#pragma omp parallel for num_threads(4) schedule(static)
        for (size_t i = 0; i < N; i++)
            a[i] = 3.0 - a[i];
        for (size_t i = 0; i < N; i++)
            b[i] = 2.0 - b[i];
    }
    print_sum("a", a, N);
    print_sum("b", b, N);
    return 0;
}
