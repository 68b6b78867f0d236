// SPDX-License-Identifier: Apache-2.0 OR MIT
// corpus: object = a
// corpus: fix = edit
// corpus: build = gcc -O2 -g -Wall -Wextra -fopenmp -I{dir} {src} -o {out}
// corpus: run = {out}
// corpus: why = Each element depends on the one before.

#include "fixes.h"

#include <stdlib.h>

static const size_t N = (size_t)2 << 20; // 16 MiB

int main(void) {
    double *a = malloc(N * sizeof *a);
    if (!a)
        return 1;
    a[0] = 1.0;
    for (size_t i = 1; i < N; i++)
        a[i] = 0.999 * a[i - 1] + 0.001 * (double)(i % 5);
    use_all(a, N);
    print_sum("a", a, N);
    return 0;
}
