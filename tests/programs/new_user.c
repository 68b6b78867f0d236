// SPDX-License-Identifier: Apache-2.0 OR MIT
// corpus: build = gcc -O2 -g -Wall -Wextra -fopenmp {src} -o {out}
// corpus: run = {out}
//
// A program as the documentation assumes one (./program, ./solver input.dat): one thread fills an array that all threads read. It runs for
// NEW_USER_SECONDS, by default 0.7, whatever its arguments.

#include <omp.h>
#include <stdio.h>
#include <stdlib.h>

int main(void) {
    const char *asked = getenv("NEW_USER_SECONDS");
    const double seconds = asked ? atof(asked) : 0.7;
    const long n = 4L << 20;
    double *field = malloc(n * sizeof *field);
    if (!field)
        return 1;
    for (long i = 0; i < n; i++)
        field[i] = (double)i;
    const double end = omp_get_wtime() + seconds;
    double sum = 0;
    do {
#pragma omp parallel for schedule(static) reduction(+ : sum)
        for (long i = 0; i < n; i++)
            sum += field[i];
    } while (omp_get_wtime() < end);
    puts(sum > 0 ? "solved" : "not solved");
    return 0;
}
