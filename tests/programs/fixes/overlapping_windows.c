// SPDX-License-Identifier: Apache-2.0 OR MIT
// corpus: object = a
// corpus: fix = edit
// corpus: build = gcc -O2 -g -Wall -Wextra -fopenmp -I{dir} {src} -o {out}
// corpus: run = {out}
// corpus: why = Neighbouring rounds add to the same elements.

#include "fixes.h"

#include <stdlib.h>

static const size_t N = (size_t)2 << 20; // 16 MiB

int main(void) {
    double *a = malloc(N * sizeof *a);
    if (!a)
        return 1;
    for (size_t i = 0; i < N; i++)
        a[i] = 0.0;
    for (size_t i = 0; i + 8 < N; i++)
        for (size_t j = 0; j < 8; j++)
            a[i + j] += (double)(i % 3);
    use_all(a, N);
    print_sum("a", a, N);
    return 0;
}
