// SPDX-License-Identifier: Apache-2.0 OR MIT
// corpus: object = b
// corpus: fix = edit: ((char *)b)[page] = 0;
// corpus: says = because it also initialises a (used by 3 threads)
// corpus: build = gcc -O2 -g -Wall -Wextra -fopenmp -I{dir} {src} -o {out}
// corpus: run = {out}
// corpus: why = One loop initialises two arrays that teams of different sizes use: no division of that loop is right for both.

#include "fixes.h"

#include <stdlib.h>

static const size_t N = (size_t)2 << 20; // 16 MiB each

int main(void) {
    double *a = malloc(N * sizeof *a);
    double *b = malloc(N * sizeof *b);
    if (!a || !b)
        return 1;
    for (size_t i = 0; i < N; i++)
        a[i] = b[i] = (double)(i % 7);
    for (int sweep = 0; sweep < SWEEPS / 2; sweep++) {
#pragma omp parallel for num_threads(3) schedule(static)
        for (size_t i = 0; i < N; i++)
            a[i] = 3.0 - a[i];
#pragma omp parallel for num_threads(4) schedule(static)
        for (size_t i = 0; i < N; i++)
            b[i] = 3.0 - b[i];
    }
    print_sum("a", a, N);
    print_sum("b", b, N);
    return 0;
}
