// SPDX-License-Identifier: Apache-2.0 OR MIT
// corpus: object = a
// corpus: fix = words
// corpus: build = gcc -O2 -g -Wall -Wextra -fopenmp -I{dir} {src} -o {out}
// corpus: run = {out}
// corpus: why = Each thread of a region computes its bounds, and the bounds are wrong: the first thread gets all.

#include "fixes.h"

#include <omp.h>

static double a[(size_t)2 << 20];

int main(void) {
    const size_t n = sizeof a / sizeof a[0];
#pragma omp parallel num_threads(4)
    {
        size_t me = (size_t)omp_get_thread_num();
        size_t low = me == 0 ? 0 : n, high = n;
        for (size_t i = low; i < high; i++)
            a[i] = (double)(i % 9);
    }
    use_all(a, n);
    print_sum("a", a, n);
    return 0;
}
