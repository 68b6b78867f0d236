/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef FIRSTTOUCH_DGEMV_TUNED_H
#define FIRSTTOUCH_DGEMV_TUNED_H

#include <stddef.h>
#include <stdint.h>

/* Most rows in one call. For long rows each element of the vector is loaded once for all of them. */
#define FT_DGEMV_ROWS 8

/* c[i] = sum over j of A[i][j] * b[j] for `rows` rows (1 to FT_DGEMV_ROWS) of n elements. */
void ft_dgemv_rows(uint32_t form, size_t rows, size_t n, const double *A, const double *b, double *c);

#endif
