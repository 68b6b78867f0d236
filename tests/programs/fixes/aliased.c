// SPDX-License-Identifier: Apache-2.0 OR MIT
// corpus: object = a
// corpus: fix = edit
// corpus: build = gcc -O2 -g -Wall -Wextra -fopenmp -I{dir} {src} -o {out}
// corpus: run = {out}
// corpus: why = Two pointers lead to the same memory, one element apart.

#include "fixes.h"

#include <stdlib.h>

static const size_t N = (size_t)2 << 20; // 16 MiB

int main(void) {
    double *a = malloc(N * sizeof *a);
    if (!a)
        return 1;
    double *before = a;
    double *after = a + 1;
    a[0] = 2.0;
    for (size_t i = 0; i + 1 < N; i++)
        after[i] = before[i] * 0.5 + (double)(i % 4);
    use_all(a, N);
    print_sum("a", a, N);
    return 0;
}
