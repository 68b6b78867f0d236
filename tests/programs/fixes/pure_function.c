// SPDX-License-Identifier: Apache-2.0 OR MIT
// corpus: object = a
// corpus: fix = edit
// corpus: build = gcc -O2 -g -Wall -Wextra -fopenmp -I{dir} {src} -o {out} -lm
// corpus: run = {out}
// corpus: why = A function of the program gives the value, and does nothing else.

#include "fixes.h"

#include <math.h>
#include <stdlib.h>

static const size_t N = (size_t)2 << 20; // 16 MiB

static double start_value(size_t i) {
    double x = 0.01 * (double)(i % 300);
    return sqrt(x) + (x > 1.0 ? 1.0 : 0.0);
}

int main(void) {
    double *a = malloc(N * sizeof *a);
    if (!a)
        return 1;
    for (size_t i = 0; i < N; i++)
        a[i] = start_value(i);
    use_all(a, N);
    print_sum("a", a, N);
    return 0;
}
