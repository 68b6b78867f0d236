// SPDX-License-Identifier: Apache-2.0 OR MIT
// corpus: object = a
// corpus: fix = edit
// corpus: build = gcc -O2 -g -Wall -Wextra -fopenmp -I{dir} {src} -o {out}
// corpus: run = {out}
// corpus: why = A function of the program gives the value, and counts how often it was called.

#include "fixes.h"

#include <stdlib.h>

static const size_t N = (size_t)2 << 20; // 16 MiB

static double next_value(void) {
    static unsigned long calls = 0;
    return (double)(calls++ % 1000);
}

int main(void) {
    double *a = malloc(N * sizeof *a);
    if (!a)
        return 1;
    for (size_t i = 0; i < N; i++)
        a[i] = next_value();
    use_all(a, N);
    print_sum("a", a, N);
    return 0;
}
