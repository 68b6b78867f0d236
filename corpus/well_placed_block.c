// SPDX-License-Identifier: Apache-2.0 OR MIT
// corpus: object = A
// corpus: finding = none
// corpus: partition = block
// corpus: remote = 0.0
// corpus: build = clang -O2 -g -Wall -Wextra -fopenmp {src} -o {out}
// corpus: run = {out}
// corpus: why = Near miss of init_helper: the matrix is initialised in the loop that uses it, same bounds, same static schedule.

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { THREADS = 4 };
static const size_t M = 2048, N = 2048; // A: 32 MiB, b and c: 16 KiB each
static const double RUN_S = 1.2;

static double seconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void set_up(double *A, double *b, double *c) {
    for (size_t j = 0; j < N; j++)
        b[j] = 2.0;
#pragma omp parallel for num_threads(THREADS) schedule(static)
    for (size_t i = 0; i < M; i++) {
        for (size_t j = 0; j < N; j++)
            A[i * N + j] = 0.5; // @first-touch
        c[i] = 0.0;
    }
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
    set_up(A, b, c);

    for (double end = seconds() + RUN_S; seconds() < end;)
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
