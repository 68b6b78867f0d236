// SPDX-License-Identifier: Apache-2.0 OR MIT
// corpus: build = gcc -O2 -g -Wall -Wextra -fopenmp {src} -o {out}
//
// Two OpenMP regions clear an array each and do nothing else, so that they end with a jump to memset and no stack shows them. The second one clears the
// parts in the opposite order of the threads: its array is on the wrong nodes.

#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(void) {
    const long words = 1L << 22;
    double *right = malloc((size_t)words * sizeof *right);
    double *wrong = malloc((size_t)words * sizeof *wrong);
    if (!right || !wrong)
        return 1;
#pragma omp parallel
    {
        long part = words / omp_get_num_threads();
        memset(right + part * omp_get_thread_num(), 0, (size_t)part * sizeof *right); // @right
    }
#pragma omp parallel
    {
        long part = words / omp_get_num_threads();
        long from = part * (omp_get_num_threads() - 1 - omp_get_thread_num());
        memset(wrong + from, 0, (size_t)part * sizeof *wrong); // @wrong
    }
    double sum = 0;
    for (int round = 0; round < 150; round++) {
#pragma omp parallel for schedule(static) reduction(+ : sum)
        for (long i = 0; i < words; i++)
            sum += right[i] * wrong[i];
    }
    printf("%g\n", sum);
    free(right);
    free(wrong);
    return 0;
}
