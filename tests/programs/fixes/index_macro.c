// SPDX-License-Identifier: Apache-2.0 OR MIT
// corpus: object = a
// corpus: fix = edit
// corpus: build = gcc -O2 -g -Wall -Wextra -fopenmp -I{dir} {src} -o {out}
// corpus: run = {out}
// corpus: why = A macro hides the subscript.

#include "fixes.h"

#include <stdlib.h>

static const size_t N = (size_t)2 << 20; // 16 MiB
#define WIDTH ((size_t)2048)
#define AT(x, y) ((y)*WIDTH + (x))

int main(void) {
    double *a = malloc(N * sizeof *a);
    if (!a)
        return 1;
    for (size_t y = 0; y < N / WIDTH; y++)
        for (size_t x = 0; x < WIDTH; x++)
            a[AT(x, y)] = (double)(x + y);
    use_all(a, N);
    print_sum("a", a, N);
    return 0;
}
