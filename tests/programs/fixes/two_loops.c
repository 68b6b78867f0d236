// SPDX-License-Identifier: Apache-2.0 OR MIT
// corpus: object = a
// corpus: fix = edit
// corpus: build = gcc -O2 -g -Wall -Wextra -fopenmp -I{dir} {src} -o {out}
// corpus: run = {out}
// corpus: why = Two loops initialise a half each: a directive before one of them leaves the other half where it is.

#include "fixes.h"

#include <stdlib.h>

static const long N = 2L << 20; // 16 MiB

int main(void) {
    double *a = malloc((size_t)N * sizeof *a);
    if (!a)
        return 1;
    for (long i = 0; i < N / 2; i++)
        a[i] = 1.0;
    for (long i = N / 2; i < N; i++)
        a[i] = (double)(i % 11);
    use_all(a, (size_t)N);
    print_sum("a", a, (size_t)N);
    return 0;
}
