// SPDX-License-Identifier: Apache-2.0 OR MIT
// corpus: build = gcc -O2 -g -Wall -Wextra -fopenmp {src} -o {out}
//
// One thread fills a matrix. A loop then gives each thread a block of its rows, and another one a block of its columns, which lies in all rows: first
// touch by rows makes the accesses of the first loop local, and on two nodes half of those of the second one.

#include <stdio.h>
#include <stdlib.h>

#define N 4096L

int main(int argc, char **argv) {
    const int rounds = argc > 1 ? atoi(argv[1]) : 40;
    double *matrix = malloc(sizeof(double) * N * N), *rows = calloc(N, sizeof(double)),
           *columns = calloc(N, sizeof(double));
    if (!matrix || !rows || !columns)
        return 1;
    for (long i = 0; i < N * N; i++)
        matrix[i] = 1.0 + (double)(i % 7); // filled
    for (int round = 0; round < rounds; round++) {
#pragma omp parallel for schedule(static)
        for (long i = 0; i < N; i++)
            for (long j = 0; j < N; j++)
                rows[i] += matrix[i * N + j]; // by rows
#pragma omp parallel
        for (long i = 0; i < N; i++) {
#pragma omp for schedule(static) nowait
            for (long j = 0; j < N; j++)
                columns[j] += matrix[i * N + j]; // by columns
        }
    }
    double sum = 0.0;
    for (long i = 0; i < N; i++)
        sum += rows[i] + columns[i];
    printf("%g\n", sum);
    return 0;
}
