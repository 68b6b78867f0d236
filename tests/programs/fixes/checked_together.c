// SPDX-License-Identifier: Apache-2.0 OR MIT
// corpus: object = a
// corpus: fix = edit
// corpus: build = gcc -O2 -g -Wall -Wextra -fopenmp -I{dir} {src} -o {out}
// corpus: run = {out}
// corpus: why = Three allocations are checked together, and the program says so if one fails.

#include "fixes.h"

#include <stdlib.h>

static const size_t N = (size_t)2 << 20; // 16 MiB

int main(void) {
    double *a = malloc(N * sizeof *a);
    double *b = (double *)calloc(64, sizeof(double));
    size_t *order = malloc(N * sizeof(size_t));
    if (!a || b == NULL || !order) {
        puts("no memory");
        return 1;
    }
    for (size_t i = 0; i < N; i++)
        order[i] = (i * 5) % N;
    for (size_t i = 0; i < N; i++)
        a[order[i]] = (double)(i % 100);
    use_all(a, N);
    print_sum("a", a, N);
    return (int)b[0];
}
