// SPDX-License-Identifier: Apache-2.0 OR MIT
// corpus: build = gcc -O2 -g -Wall -Wextra -fopenmp -static {src} -o {out}
// corpus: run = {out} SECONDS
//
// Three arrays that all threads use in equal blocks. One thread initialises the first, all threads the others. The program is static, or firsttouch
// attaches to it: the arrays are one mapping.

#include <omp.h>
#include <stdio.h>
#include <stdlib.h>

static const size_t N = (size_t)4 << 20; // 32 MiB each

int main(int count, char **arguments) {
    double seconds = count > 1 ? atof(arguments[1]) : 3;
    double *a = malloc(N * sizeof *a), *b = malloc(N * sizeof *b), *c = malloc(N * sizeof *c);
    if (a == NULL || b == NULL || c == NULL) {
        return 1;
    }
    omp_set_num_threads(4);
    for (size_t i = 0; i < N; i++) {
        a[i] = (double)i; // @first-touch
    }
#pragma omp parallel for schedule(static)
    for (size_t i = 0; i < N; i++) {
        b[i] = 1.0;
        c[i] = 2.0;
    }
    puts("ready");
    fflush(stdout);
    double start = omp_get_wtime();
    while (omp_get_wtime() - start < seconds) {
#pragma omp parallel for schedule(static)
        for (size_t i = 0; i < N; i++) {
            c[i] = a[i] + 3.0 * b[i];
        }
    }
    puts(c[N - 1] == (double)(N - 1) + 3.0 ? "ok" : "wrong");
    free(a);
    free(b);
    free(c);
    return 0;
}
