/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * The inner loop of a matrix-vector product, as fast as memory delivers the matrix. It processes eight rows at once, so that
 * the vector is read from the cache once for eight rows, and keeps two sums a row, so that no addition waits for another.
 */
#include "dgemv_tuned.h"

#include "kernel.h"

static double row_portable(size_t from, size_t n, const double *A, const double *b) {
    double sums[4] = {0};
    size_t j = from;
    for (; j + 4 <= n; j += 4) {
        for (size_t k = 0; k < 4; k++) {
            sums[k] += A[j + k] * b[j + k];
        }
    }
    for (; j < n; j++) {
        sums[0] += A[j] * b[j];
    }
    return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

#if defined(__x86_64__)
#include <immintrin.h>

/* A shorter row is processed alone: the matrix is then one stream to the prefetchers, and the vector stays in the L1 cache.
 * Longer rows are processed several at once. Otherwise the vector would have to come from the L2 cache as fast as the matrix
 * comes from memory. (12 KiB: measured on Zen 4, where both ways take the same time at 1,500 elements.) */
#define SHORT_ROW 1536

/* `rows` is a constant. Two sums a row; the elements after the last pair of vectors are processed one by one. */
#define DOT(name, target_, vector, width, zero, load, fma, add, sum_of)                                          \
    target_ static inline __attribute__((always_inline)) void name(const size_t rows, size_t n, const double *A, \
                                                                   const double *b, double *c) {                 \
        vector sums[FT_DGEMV_ROWS][2];                                                                           \
        for (size_t r = 0; r < rows; r++) {                                                                      \
            sums[r][0] = sums[r][1] = zero();                                                                    \
        }                                                                                                        \
        size_t j = 0;                                                                                            \
        for (; j + 2 * (width) <= n; j += 2 * (width)) {                                                         \
            const vector b0 = load(b + j), b1 = load(b + j + (width));                                           \
            _Pragma("GCC unroll 8") for (size_t r = 0; r < rows; r++) {                                          \
                sums[r][0] = fma(load(A + r * n + j), b0, sums[r][0]);                                           \
                sums[r][1] = fma(load(A + r * n + j + (width)), b1, sums[r][1]);                                 \
            }                                                                                                    \
        }                                                                                                        \
        for (size_t r = 0; r < rows; r++) {                                                                      \
            c[r] = sum_of(add(sums[r][0], sums[r][1])) + row_portable(j, n, A + r * n, b);                       \
        }                                                                                                        \
    }

/* All rows of a call: at once, or one by one. */
#define ROWS(name, target_, dot)                                                                   \
    target_ static void name(size_t rows, size_t n, const double *A, const double *b, double *c) { \
        if (rows == FT_DGEMV_ROWS && n > SHORT_ROW) {                                              \
            dot(FT_DGEMV_ROWS, n, A, b, c);                                                        \
            return;                                                                                \
        }                                                                                          \
        for (size_t r = 0; r < rows; r++) {                                                        \
            dot(1, n, A + r * n, b, c + r);                                                        \
        }                                                                                          \
    }

FT_TARGET_AVX2 static inline double sum_avx2(__m256d v) {
    double lanes[4];
    _mm256_storeu_pd(lanes, v);
    return (lanes[0] + lanes[1]) + (lanes[2] + lanes[3]);
}

FT_TARGET_AVX512 static inline double sum_avx512(__m512d v) {
    return _mm512_reduce_add_pd(v);
}

DOT(dot_avx2, FT_TARGET_AVX2, __m256d, 4, _mm256_setzero_pd, _mm256_loadu_pd, _mm256_fmadd_pd, _mm256_add_pd, sum_avx2)
DOT(dot_avx512, FT_TARGET_AVX512, __m512d, 8, _mm512_setzero_pd, _mm512_loadu_pd, _mm512_fmadd_pd, _mm512_add_pd,
    sum_avx512)
ROWS(rows_avx2, FT_TARGET_AVX2, dot_avx2)
ROWS(rows_avx512, FT_TARGET_AVX512, dot_avx512)
#endif

void ft_dgemv_rows(uint32_t form, size_t rows, size_t n, const double *A, const double *b, double *c) {
#if defined(__x86_64__)
    if (form != FT_FORM_PORTABLE) {
        (form == FT_FORM_AVX512 ? rows_avx512 : rows_avx2)(rows, n, A, b, c);
        return;
    }
#endif
    (void)form;
    for (size_t r = 0; r < rows; r++) {
        c[r] = row_portable(0, n, A + r * n, b);
    }
}
