// SPDX-License-Identifier: Apache-2.0 OR MIT
// corpus: build = gcc -O2 -g -Wall -Wextra -fopenmp {src} -o {out}
//
// One loop divides an array among the threads, as the loop that fills it does. Another one goes through the first half of it only, three times as often,
// and divides that among all threads: filled by this loop alone, the second half would have no values.

#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv) {
    const int words = 8000000, rounds = argc > 1 ? atoi(argv[1]) : 100;
    double *w = malloc((size_t)words * sizeof *w);
    if (!w)
        return 1;
#pragma omp parallel for schedule(static)
    for (int i = 0; i < words; i++)
        w[i] = i % 10;
    for (int round = 0; round < rounds; round++) {
#pragma omp parallel for schedule(static)
        for (int i = 0; i < words; i++)
            w[i] = w[i] * 0.999 + 0.25;
        for (int again = 0; again < 3; again++) {
#pragma omp parallel for schedule(static)
            for (int i = 0; i < words / 2; i++)
                w[i] = w[i] * 1.0001 - 0.02; // half
        }
    }
    printf("%.15g\n", w[words / 3]);
    free(w);
    return 0;
}
