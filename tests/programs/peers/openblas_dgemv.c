// SPDX-License-Identifier: Apache-2.0 OR MIT
//
// For scripts/bench-kernels: seconds of one product by OpenBLAS (cblas_dgemv, row-major), each repetition on a line.
//   openblas_dgemv M N ITERATIONS REPETITIONS      threads: OPENBLAS_NUM_THREADS and OMP_NUM_THREADS
#include <cblas.h>
#include <math.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv) {
    if (argc != 5) {
        fprintf(stderr, "usage: %s M N ITERATIONS REPETITIONS\n", argv[0]);
        return 2;
    }
    const size_t m = strtoul(argv[1], NULL, 10), n = strtoul(argv[2], NULL, 10);
    const int iterations = atoi(argv[3]), repetitions = atoi(argv[4]);
    double *A = malloc(m * n * sizeof *A), *b = malloc(n * sizeof *b), *c = malloc(m * sizeof *c);
    if (A == NULL || b == NULL || c == NULL) {
        return 1;
    }
    for (size_t j = 0; j < n; j++) {
        b[j] = (double)j;
    }
#pragma omp parallel for schedule(static)
    for (size_t i = 0; i < m; i++) {
        for (size_t j = 0; j < n; j++) {
            A[i * n + j] = (double)(i + j);
        }
        c[i] = 0;
    }
    for (int r = 0; r < repetitions; r++) {
        const double start = omp_get_wtime();
        for (int k = 0; k < iterations; k++) {
            cblas_dgemv(CblasRowMajor, CblasNoTrans, (int)m, (int)n, 1.0, A, (int)n, b, 1, 0.0, c, 1);
        }
        printf("%.9f\n", (omp_get_wtime() - start) / iterations);
    }
    const double nn = (double)n, expected = (nn - 1) * nn * (2 * nn - 1) / 6; /* row 0 */
    return fabs(c[0] - expected) <= 1e-9 * expected ? 0 : 1;
}
