// SPDX-License-Identifier: Apache-2.0 OR MIT
// corpus: object = a
// corpus: fix = edit
// corpus: build = gcc -O2 -g -Wall -Wextra -fopenmp -I{dir} {src} -o {out}
// corpus: run = {out}
// corpus: why = rand() gives each element the next value of one sequence.

#include "fixes.h"

#include <stdlib.h>

static const size_t N = (size_t)2 << 20; // 16 MiB

int main(void) {
    double *a = malloc(N * sizeof *a);
    if (!a)
        return 1;
    srand(7);
    for (size_t i = 0; i < N; i++)
        a[i] = (double)(rand() % 1000);
    use_all(a, N);
    print_sum("a", a, N);
    return 0;
}
