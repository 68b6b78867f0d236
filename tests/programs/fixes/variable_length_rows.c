// SPDX-License-Identifier: Apache-2.0 OR MIT
// corpus: object = m
// corpus: fix = edit
// corpus: build = gcc -O2 -g -Wall -Wextra -fopenmp -I{dir} {src} -o {out}
// corpus: run = {out}
// corpus: why = The matrix is a pointer to rows of variable length.

#include "fixes.h"

#include <stdlib.h>

int main(int argc, char **argv) {
    (void)argv;
    size_t rows = 1024 * (size_t)argc, columns = 2048;
    double(*m)[columns] = malloc(rows * sizeof *m);
    if (!m)
        return 1;
    for (size_t r = 0; r < rows; r++)
        for (size_t c = 0; c < columns; c++)
            m[r][c] = (double)(r ^ c);
    use_all(&m[0][0], rows * columns);
    print_sum("m", &m[0][0], rows * columns);
    return 0;
}
