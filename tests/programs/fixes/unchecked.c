// SPDX-License-Identifier: Apache-2.0 OR MIT
// corpus: object = a
// corpus: fix = edit
// corpus: build = gcc -O2 -g -Wall -Wextra -fopenmp -I{dir} {src} -o {out}
// corpus: run = {out}
// corpus: why = The result of the allocation is checked far below.

#include "fixes.h"

#include <stdlib.h>

static const size_t N = (size_t)2 << 20; // 16 MiB

int main(void) {
    double *a = malloc(N * sizeof *a);
    unsigned seed = 1;
    int ok = a != NULL;
    if (ok) {
        for (size_t i = 0; i < N; i++) {
            seed = seed * 1664525u + 1013904223u;
            a[i] = (double)(seed >> 20);
        }
        use_all(a, N);
        print_sum("a", a, N);
    }
    return !ok;
}
