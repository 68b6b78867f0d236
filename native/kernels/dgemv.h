/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * DGEMV, the textbook case of first touch: c = A * b with an m x n matrix in row-major order.
 *
 * Every thread multiplies its own block of rows. Who initialises the matrix decides on which node each block lies.
 */
#ifndef FIRSTTOUCH_DGEMV_H
#define FIRSTTOUCH_DGEMV_H

#include <stdint.h>

struct ft_dgemv_options {
    uint64_t rows;          /* m >= 1 */
    uint64_t columns;       /* n >= 1 */
    uint64_t iterations;    /* products in one timed repetition, >= 1 */
    uint64_t repetitions;   /* timed repetitions, >= 1 */
    uint64_t chunk;         /* rows handed out at a time by the dynamic schedule, >= 1 */
    uint32_t threads;       /* team size; 0: the OpenMP runtime's choice (OMP_NUM_THREADS, or all CPUs) */
    uint32_t parallel_init; /* 0: the main thread initialises all; 1: every thread its own block of rows */
    uint32_t dynamic;       /* 0: schedule(static), 1: schedule(dynamic, chunk) */
    uint32_t reserved;
};

struct ft_dgemv_result {
    double seconds_min;    /* seconds a product: a repetition's time divided by its iterations */
    double seconds_median; /* over the repetitions; the mean of the middle two when they are even in number */
    double seconds_max;
    double worst_error; /* largest relative deviation from the closed form */
    uint64_t wrong_row; /* FT_DGEMV_WRONG: the row of worst_error */
    uint32_t threads;   /* the team size that ran */
    uint32_t reserved;
};

_Static_assert(sizeof(struct ft_dgemv_options) == 56, "mirrored by crates/native/src/dgemv.rs");
_Static_assert(sizeof(struct ft_dgemv_result) == 48, "mirrored by crates/native/src/dgemv.rs");

enum ft_dgemv_status {
    FT_DGEMV_OK = 0,
    FT_DGEMV_OPTIONS = 1, /* an option is out of range, or m * n elements do not fit an address space */
    FT_DGEMV_MEMORY = 2,  /* malloc returned NULL */
    FT_DGEMV_WRONG = 3,   /* the answer differs from the closed form by more than rounding */
};

/* Runs the benchmark. Returns enum ft_dgemv_status; `result` is complete for FT_DGEMV_OK and FT_DGEMV_WRONG. */
int ft_dgemv_run(const struct ft_dgemv_options *options, struct ft_dgemv_result *result);

#endif
