// SPDX-License-Identifier: Apache-2.0 OR MIT
// corpus: object = a
// corpus: fix = edit
// corpus: build = gcc -O2 -g -Wall -Wextra -fopenmp -I{dir} {src} -o {out}
// corpus: run = {out}
// corpus: why = The kernel writes what is read from a file into new memory.

#include "fixes.h"

#include <stdlib.h>

static const size_t N = (size_t)2 << 20; // 16 MiB

int main(void) {
    FILE *file = tmpfile();
    if (!file)
        return 1;
    double block[4096];
    for (size_t i = 0; i < N / 4096; i++) {
        for (size_t j = 0; j < 4096; j++)
            block[j] = (double)(i + j);
        fwrite(block, sizeof block, 1, file);
    }
    rewind(file);
    double *a = malloc(N * sizeof *a);
    if (!a || fread(a, sizeof *a, N, file) != N)
        return 1;
    use_all(a, N);
    print_sum("a", a, N);
    fclose(file);
    return 0;
}
