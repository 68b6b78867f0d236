// SPDX-License-Identifier: Apache-2.0 OR MIT
// corpus: object = b
// corpus: fix = edit
// corpus: build = gcc -O2 -g -Wall -Wextra -fopenmp -I{dir} {src} -o {out}
// corpus: run = {out}
// corpus: why = A part of the input is copied from an offset.

#include "fixes.h"

#include <stdlib.h>
#include <string.h>

static const size_t N = (size_t)2 << 20; // 16 MiB

int main(void) {
    double *a = malloc((N + 64) * sizeof *a);
    double *b = aligned_alloc(64, N * sizeof *b);
    if (!a || !b)
        return 1;
#pragma omp parallel for num_threads(4) schedule(static)
    for (size_t i = 0; i < N + 64; i++)
        a[i] = (double)(i % 1000);
    memcpy(b, a + 64, N * sizeof *b);
    use_all(b, N);
    print_sum("b", b, N);
    return 0;
}
