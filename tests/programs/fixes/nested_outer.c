// SPDX-License-Identifier: Apache-2.0 OR MIT
// corpus: object = a
// corpus: fix = edit
// corpus: build = gcc -O2 -g -Wall -Wextra -fopenmp -I{dir} {src} -o {out}
// corpus: run = {out}
// corpus: why = The loops count with variables of the function, so each thread needs its own inner one.

#include "fixes.h"

#include <stdlib.h>

static const size_t N = (size_t)2 << 20; // 16 MiB

int main(void) {
    double *a = malloc(N * sizeof *a);
    if (!a)
        return 1;
    size_t i, j;
    size_t rows = 2048, columns = N / 2048;
    for (i = 0; i < rows; i++) {
        for (j = 0; j < columns; j++)
            a[i * columns + j] = 0.25 * (double)(i + 3 * j);
    }
    use_all(a, N);
    print_sum("a", a, N);
    return 0;
}
