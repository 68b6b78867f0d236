// SPDX-License-Identifier: Apache-2.0 OR MIT
// corpus: object = a
// corpus: fix = edit
// corpus: build = gcc -O2 -g -Wall -Wextra -fopenmp -I{dir} {src} -o {out}
// corpus: run = {out}
// corpus: why = One thread of a parallel region initialises everything: a directive inside would be nested.

#include "fixes.h"

#include <stdlib.h>

static const size_t N = (size_t)2 << 20; // 16 MiB

int main(void) {
    double *a = malloc(N * sizeof *a);
    if (!a)
        return 1;
#pragma omp parallel num_threads(4)
    {
#pragma omp single
        {
            for (size_t i = 0; i < N; i++)
                a[i] = (double)(i % 9);
        }
    }
    use_all(a, N);
    print_sum("a", a, N);
    return 0;
}
