// SPDX-License-Identifier: Apache-2.0 OR MIT
// corpus: object = a
// corpus: fix = edit
// corpus: build = gcc -O2 -g -Wall -Wextra -fopenmp -I{dir} {src} -o {out}
// corpus: run = {out}
// corpus: why = calloc gives untouched zeros; the loop writes every second element, and the others stay zero.

#include "fixes.h"

#include <stdlib.h>

static const size_t N = (size_t)2 << 20; // 16 MiB

int main(void) {
    double *a = calloc(N, sizeof *a);
    if (a == NULL)
        return 1;
    for (size_t i = 0; i < N / 2; i++)
        a[2 * i] = (double)i + 1.0;
    use_all(a, N);
    print_sum("a", a, N);
    return 0;
}
