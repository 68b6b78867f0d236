// SPDX-License-Identifier: Apache-2.0 OR MIT
// corpus: object = block
// corpus: fix = words
// corpus: says = in 2 places (three_parts.c:
// corpus: build = gcc -O2 -g -Wall -Wextra -fopenmp -I{dir} {src} -o {out}
// corpus: run = {out}
// corpus: why = Of three arrays in one allocation, two are initialised by one thread, in two places: both have to be divided.

#include "fixes.h"

#include <stdlib.h>
#include <string.h>

int main(void) {
    const size_t n = (size_t)1 << 20;
    double *block = malloc(3 * n * sizeof *block), *from = malloc(n * sizeof *from);
    if (!block || !from)
        return 1;
    double *a = block, *b = block + n, *c = block + 2 * n;
    for (size_t i = 0; i < n; i++)
        from[i] = (double)(i % 7);
#pragma omp parallel for num_threads(4) schedule(static)
    for (size_t i = 0; i < n; i++)
        a[i] = 1.0;
    for (size_t i = 0; i < n; i++)
        b[i] = 2.0;
    memcpy(c, from, n * sizeof *c);
    free(from);
    for (int sweep = 0; sweep < SWEEPS; sweep++) {
#pragma omp parallel for num_threads(4) schedule(static)
        for (size_t i = 0; i < n; i++)
            a[i] = 0.5 * a[i] + b[i] * c[i];
    }
    print_sum("a", a, n);
    free(block);
    return 0;
}
