// SPDX-License-Identifier: Apache-2.0 OR MIT
// corpus: object = A
// corpus: finding = serial-first-touch
// corpus: partition = block
// corpus: cause = loop
// corpus: remote = 0.5
// corpus: fix = edit: #pragma omp parallel for num_threads(THREADS) schedule(static)
// corpus: build = gcc -O2 -g -Wall -Wextra -fopenmp {src} -o {out}
// corpus: run = {out}
// corpus: why = A helper that is handed a pointer fills the matrix serially; the multiplication uses it in row blocks.

#include <omp.h>
#include <stdio.h>
#include <stdlib.h>

enum { THREADS = 4 };
static const size_t M = 2048, N = 2048; // A: 32 MiB, b and c: 16 KiB each
static const double RUN_S = 1.2;

static void fill(double *x, size_t n, double value) {
    for (size_t i = 0; i < n; i++)
        x[i] = value; // @first-touch
}

static void dgemv(double *c, const double *A, const double *b) {
#pragma omp parallel for num_threads(THREADS) schedule(static)
    for (size_t i = 0; i < M; i++) {
        double sum = 0.0;
        for (size_t j = 0; j < N; j++)
            sum += A[i * N + j] * b[j]; // @used
        c[i] = sum;
    }
}

int main(void) {
    double *A = malloc(M * N * sizeof *A); // @allocated
    double *b = malloc(N * sizeof *b);
    double *c = malloc(M * sizeof *c);
    if (!A || !b || !c)
        return 1;
    fill(A, M * N, 0.5);
    fill(b, N, 2.0);

    for (double end = omp_get_wtime() + RUN_S; omp_get_wtime() < end;)
        dgemv(c, A, b);

    int bad = 0;
    for (size_t i = 0; i < M; i++)
        bad |= c[i] != (double)N;
    puts(bad ? "bad" : "ok");
    free(c);
    free(b);
    free(A);
    return bad;
}
