// SPDX-License-Identifier: Apache-2.0 OR MIT
// corpus: object = a
// corpus: fix = edit
// corpus: build = gcc -O2 -g -Wall -Wextra -fopenmp -I{dir} {src} -o {out}
// corpus: run = {out}
// corpus: why = The loop writes from the end to the beginning by its subscript.

#include "fixes.h"

#include <stdlib.h>

static const long N = 2L << 20; // 16 MiB

int main(void) {
    double *a = malloc((size_t)N * sizeof *a);
    if (!a)
        return 1;
    for (long i = 0; i < N; i++)
        a[N - 1 - i] = (double)(i % 11);
    use_all(a, (size_t)N);
    print_sum("a", a, (size_t)N);
    return 0;
}
