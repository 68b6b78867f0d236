// SPDX-License-Identifier: Apache-2.0 OR MIT
// corpus: object = a
// corpus: fix = edit
// corpus: build = gcc -O2 -g -Wall -Wextra -fopenmp -I{dir} {src} -o {out}
// corpus: run = {out}
// corpus: why = Each round writes through a pointer to its row.

#include "fixes.h"

#include <stdlib.h>

static const size_t N = (size_t)2 << 20; // 16 MiB

int main(void) {
    double *a = malloc(N * sizeof *a);
    if (!a)
        return 1;
    const size_t columns = 1024;
    for (size_t i = 0; i < N / 1024; i++) {
        double *row = a + i * 1024;
        for (size_t j = 0; j < 1024; j++)
            row[j] = (double)(i % 7) + 0.5 * (double)j;
    }
    use_all(a, N);
    print_sum("a", a, N);
    printf("%zu\n", columns);
    return 0;
}
