// SPDX-License-Identifier: Apache-2.0 OR MIT
// corpus: object = a
// corpus: fix = edit
// corpus: build = gcc -O2 -g -Wall -Wextra -fopenmp -I{dir} {src} -o {out}
// corpus: run = {out}
// corpus: why = The loop counts with a pointer.

#include "fixes.h"

#include <stdlib.h>

static const size_t N = (size_t)2 << 20; // 16 MiB

int main(void) {
    double *a = malloc(N * sizeof *a);
    if (!a)
        return 1;
    for (double *p = a; p < a + N; p++)
        *p = 1.5;
    use_all(a, N);
    print_sum("a", a, N);
    return 0;
}
