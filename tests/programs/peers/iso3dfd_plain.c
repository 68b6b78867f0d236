// SPDX-License-Identifier: Apache-2.0 OR MIT
//
// For scripts/bench-kernels: the wave equation as in the article before any tuning: a collapsed loop over cache blocks,
// the innermost loop vectorised by the compiler. Seconds of one time step, each repetition on a line.
//   iso3dfd_plain N1 N2 N3 B1 B2 B3 ITERATIONS REPETITIONS
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>

#define HALF 8

static const float coefficients[HALF + 1] = {-3.0548446f * 3, 1.7777778f,    -0.3111111f,
                                             0.075420876f,    -0.017676768f, 0.003480963f,
                                             -0.000518001f,   0.0000507429f, -0.0000024281f};

int main(int argc, char **argv) {
    if (argc != 9) {
        fprintf(stderr, "usage: %s N1 N2 N3 B1 B2 B3 ITERATIONS REPETITIONS\n", argv[0]);
        return 2;
    }
    const long n1 = atol(argv[1]), n2 = atol(argv[2]), n3 = atol(argv[3]);
    const long b1 = atol(argv[4]), b2 = atol(argv[5]), b3 = atol(argv[6]);
    const int iterations = atoi(argv[7]), repetitions = atoi(argv[8]);
    const long row = n1, plane = n1 * n2;
    const size_t points = (size_t)(plane * n3);
    float *next = malloc(points * sizeof *next), *now = malloc(points * sizeof *now),
          *speed = malloc(points * sizeof *speed);
    if (next == NULL || now == NULL || speed == NULL) {
        return 1;
    }
#pragma omp parallel for schedule(static)
    for (size_t i = 0; i < points; i++) {
        next[i] = now[i] = (float)(i % 31) / 31.0f;
        speed[i] = 0.05f;
    }
    for (int r = 0; r < repetitions; r++) {
        const double start = omp_get_wtime();
        for (int k = 0; k < iterations; k++) {
#pragma omp parallel for collapse(3) schedule(dynamic)
            for (long bz = HALF; bz < n3 - HALF; bz += b3) {
                for (long by = HALF; by < n2 - HALF; by += b2) {
                    for (long bx = HALF; bx < n1 - HALF; bx += b1) {
                        const long ez = bz + b3 < n3 - HALF ? bz + b3 : n3 - HALF;
                        const long ey = by + b2 < n2 - HALF ? by + b2 : n2 - HALF;
                        const long ex = bx + b1 < n1 - HALF ? bx + b1 : n1 - HALF;
                        for (long z = bz; z < ez; z++) {
                            for (long y = by; y < ey; y++) {
                                const float *restrict at = now + z * plane + y * row;
                                const float *restrict v = speed + z * plane + y * row;
                                float *restrict out = next + z * plane + y * row;
#pragma omp simd
                                for (long x = bx; x < ex; x++) {
                                    float sum = coefficients[0] * at[x];
                                    for (long s = 1; s <= HALF; s++) {
                                        sum +=
                                            coefficients[s] * (at[x - s] + at[x + s] + at[x - s * row] +
                                                               at[x + s * row] + at[x - s * plane] + at[x + s * plane]);
                                    }
                                    out[x] = 2 * at[x] - out[x] + v[x] * sum;
                                }
                            }
                        }
                    }
                }
            }
            float *swap = next;
            next = now;
            now = swap;
        }
        printf("%.9f\n", (omp_get_wtime() - start) / iterations);
    }
    return now[points / 2] == now[points / 2] ? 0 : 1;
}
