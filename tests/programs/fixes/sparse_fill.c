// SPDX-License-Identifier: Apache-2.0 OR MIT
// corpus: object = value
// corpus: fix = edit
// corpus: build = gcc -O2 -g -Wall -Wextra -fopenmp -I{dir} {src} -o {out}
// corpus: run = {out}
// corpus: why = The fill of a sparse matrix takes the next free place of a row: its rounds need each other.

#include "fixes.h"

#include <stdlib.h>

static const size_t N = (size_t)2 << 20; // 16 MiB
enum { ROWS = 4096 };

int main(void) {
    size_t *next = malloc(ROWS * sizeof *next);
    double *value = malloc(N * sizeof *value);
    if (!next || !value)
        return 1;
    for (size_t r = 0; r < ROWS; r++)
        next[r] = r * (N / ROWS);
    for (size_t i = 0; i < N; i++) {
        size_t k = next[i / (N / ROWS)]++;
        value[k] = 0.5 * (double)i;
    }
    use_all(value, N);
    print_sum("value", value, N);
    return 0;
}
