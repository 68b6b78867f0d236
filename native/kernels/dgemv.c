/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * DGEMV, the textbook case of first touch: c = A * b with an m x n matrix in row-major order. Each thread multiplies its
 * own block of rows. The thread that initialises a block decides on which node it lies. The loops are plain on purpose,
 * because reports show their lines. The tuned product is in dgemv_tuned.c.
 */
#include "dgemv_tuned.h"
#include "kernel.h"

#include <math.h>
#include <omp.h>
#include <stdbool.h>
#include <stdlib.h>

/* Rounding errors in a sum of n products stay far below this; a wrong or missing row is far above it. */
#define TOLERANCE 1e-9

struct problem {
    size_t m;
    size_t n;
    double *A;
    double *b;
    double *c;
};

static FT_NOINLINE bool allocate(struct problem *p) {
    const size_t m = p->m, n = p->n;
    double *A = malloc(m * n * sizeof *A);
    double *b = malloc(n * sizeof *b);
    double *c = malloc(m * sizeof *c);
    p->A = A;
    p->b = b;
    p->c = c;
    return A != NULL && b != NULL && c != NULL;
}

static void release(struct problem *p) {
    free(p->A);
    free(p->b);
    free(p->c);
}

/* One thread touches everything first: all pages land on its node. */
static FT_NOINLINE void initialise(const struct problem *p) {
    const size_t m = p->m, n = p->n;
    double *A = p->A, *b = p->b, *c = p->c;
    for (size_t j = 0; j < n; j++) {
        b[j] = (double)j;
    }
    for (size_t i = 0; i < m; i++) {
        for (size_t j = 0; j < n; j++) {
            A[i * n + j] = (double)(i + j);
        }
        c[i] = 0.0;
    }
}

/* Every thread touches first the rows it will use: the same loop, the same schedule as `product`. */
static FT_NOINLINE void initialise_parallel(const struct problem *p, int threads) {
    const size_t m = p->m, n = p->n;
    double *A = p->A, *b = p->b, *c = p->c;
#pragma omp parallel num_threads(threads)
    {
#pragma omp for schedule(static)
        for (size_t j = 0; j < n; j++) {
            b[j] = (double)j;
        }
#pragma omp for schedule(static)
        for (size_t i = 0; i < m; i++) {
            for (size_t j = 0; j < n; j++) {
                A[i * n + j] = (double)(i + j);
            }
            c[i] = 0.0;
        }
    }
}

static FT_NOINLINE void product(const struct problem *p, int threads) {
    const size_t m = p->m, n = p->n;
    const double *A = p->A, *b = p->b;
    double *c = p->c;
#pragma omp parallel for schedule(static) num_threads(threads)
    for (size_t i = 0; i < m; i++) {
        double sum = 0.0;
        for (size_t j = 0; j < n; j++) {
            sum += A[i * n + j] * b[j];
        }
        c[i] = sum;
    }
}

static FT_NOINLINE void product_scheduled(const struct problem *p, int threads) {
    const size_t m = p->m, n = p->n;
    const double *A = p->A, *b = p->b;
    double *c = p->c;
#pragma omp parallel for schedule(runtime) num_threads(threads)
    for (size_t i = 0; i < m; i++) {
        double sum = 0.0;
        for (size_t j = 0; j < n; j++) {
            sum += A[i * n + j] * b[j];
        }
        c[i] = sum;
    }
}

/* Each thread touches the rows of another thread, or blocks of rows in turn. */
static FT_NOINLINE void initialise_elsewhere(const struct problem *p, uint32_t init, int threads) {
    const size_t m = p->m, n = p->n;
    double *A = p->A, *b = p->b, *c = p->c;
    for (size_t j = 0; j < n; j++) {
        b[j] = (double)j;
    }
#pragma omp parallel num_threads(threads)
    {
        size_t first, last;
        for (size_t turn = 0; ft_part_to_touch(init, m, n * sizeof *A, turn, &first, &last); turn++) {
            for (size_t i = first; i < last; i++) {
                for (size_t j = 0; j < n; j++) {
                    A[i * n + j] = (double)(i + j);
                }
                c[i] = 0.0;
            }
        }
    }
}

/* An iteration of the scheduled loop processes as many rows as the inner loop does at once. */
static FT_NOINLINE void product_tuned(const struct problem *p, uint32_t form, int threads) {
    const size_t m = p->m, n = p->n;
    const size_t blocks = (m + FT_DGEMV_ROWS - 1) / FT_DGEMV_ROWS;
#pragma omp parallel for schedule(runtime) num_threads(threads)
    for (size_t block = 0; block < blocks; block++) {
        const size_t first = block * FT_DGEMV_ROWS;
        const size_t rows = first + FT_DGEMV_ROWS <= m ? FT_DGEMV_ROWS : m - first;
        ft_dgemv_rows(form, rows, n, p->A + first * n, p->b, p->c + first);
    }
}

/* c[i] = sum over j of (i + j) * j = i * sum(j) + sum(j * j), for j = 0 .. n - 1. */
static bool check(const struct problem *p, struct ft_kernel_result *result) {
    const double n = (double)p->n;
    const double sum_j = n * (n - 1) / 2;
    const double sum_jj = (n - 1) * n * (2 * n - 1) / 6;
    result->worst_error = 0.0;
    result->wrong_at = 0;
    for (size_t i = 0; i < p->m; i++) {
        const double expected = (double)i * sum_j + sum_jj;
        const double scale = expected > 1.0 ? expected : 1.0;
        const double error = fabs(p->c[i] - expected) / scale;
        if (!(error <= result->worst_error)) { /* also true for NaN */
            result->worst_error = error;
            result->wrong_at = i;
        }
    }
    return result->worst_error <= TOLERANCE;
}

static void run(const struct ft_kernel_options *o, const struct problem *p, uint32_t form, int threads,
                double *seconds) {
    if (o->init == FT_INIT_PARALLEL) {
        initialise_parallel(p, threads);
    } else if (o->init == FT_INIT_SERIAL) {
        initialise(p);
    } else {
        initialise_elsewhere(p, o->init, threads);
    }
    ft_use_schedule(o);
    for (uint64_t repetition = 0; repetition < o->repetitions; repetition++) {
        const double start = omp_get_wtime();
        for (uint64_t iteration = 0; iteration < o->iterations; iteration++) {
            if (o->variant == 1) {
                product_tuned(p, form, threads);
            } else if (o->schedule == FT_SCHEDULE_STATIC && o->chunk == 0) {
                product(p, threads);
            } else {
                product_scheduled(p, threads);
            }
        }
        seconds[repetition] = (omp_get_wtime() - start) / (double)o->iterations;
    }
}

int ft_dgemv(const struct ft_kernel_options *o, double *seconds, struct ft_kernel_result *result) {
    if (!ft_options_are_valid(o) || o->variant > 1) {
        return FT_KERNEL_OPTIONS;
    }
    const uint32_t form = o->variant == 1 ? ft_choose_form(o->form) : FT_FORM_PORTABLE;
    if (form == 0) {
        return FT_KERNEL_FORM;
    }
    struct problem p = {.m = o->size[0], .n = o->size[1]};
    int status = FT_KERNEL_MEMORY;
    if (allocate(&p)) {
        const int threads = ft_team_size(o);
        run(o, &p, form, threads, seconds);
        result->threads = (uint32_t)threads;
        result->form = form;
        result->bytes = (p.m * p.n + p.m + p.n) * sizeof(double);
        ft_observe(result, p.A, p.m * p.n * sizeof(double), threads);
        status = check(&p, result) ? FT_KERNEL_OK : FT_KERNEL_WRONG;
    }
    release(&p);
    return status;
}
