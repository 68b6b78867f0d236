/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * DGEMV with serial or parallel first touch. The loops are plain on purpose: their lines are what reports show.
 */
#include "dgemv.h"

#include <math.h>
#include <omp.h>
#include <stdbool.h>
#include <stdlib.h>

/* Functions of their own, so that every line of a report belongs to the function a reader sees. */
#define NOINLINE __attribute__((noinline))

/* Rounding in a sum of n products stays far below this; a wrong or missing row far above. */
#define TOLERANCE 1e-9

struct problem {
    size_t m;
    size_t n;
    double *A;
    double *b;
    double *c;
};

static NOINLINE bool allocate(struct problem *p) {
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
static NOINLINE void initialise(const struct problem *p) {
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
static NOINLINE void initialise_parallel(const struct problem *p, int threads) {
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

static NOINLINE void product(const struct problem *p, int threads) {
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

static NOINLINE void product_dynamic(const struct problem *p, int threads, size_t chunk) {
    const size_t m = p->m, n = p->n;
    const double *A = p->A, *b = p->b;
    double *c = p->c;
#pragma omp parallel for schedule(dynamic, chunk) num_threads(threads)
    for (size_t i = 0; i < m; i++) {
        double sum = 0.0;
        for (size_t j = 0; j < n; j++) {
            sum += A[i * n + j] * b[j];
        }
        c[i] = sum;
    }
}

/* c[i] = sum over j of (i + j) * j = i * sum(j) + sum(j * j), for j = 0 .. n - 1. */
static bool check(const struct problem *p, struct ft_dgemv_result *result) {
    const double n = (double)p->n;
    const double sum_j = n * (n - 1) / 2;
    const double sum_jj = (n - 1) * n * (2 * n - 1) / 6;
    result->worst_error = 0.0;
    result->wrong_row = 0;
    for (size_t i = 0; i < p->m; i++) {
        const double expected = (double)i * sum_j + sum_jj;
        const double scale = expected > 1.0 ? expected : 1.0;
        const double error = fabs(p->c[i] - expected) / scale;
        if (!(error <= result->worst_error)) { /* also true for NaN */
            result->worst_error = error;
            result->wrong_row = i;
        }
    }
    return result->worst_error <= TOLERANCE;
}

static int by_size(const void *left, const void *right) {
    const double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

static void summarise(double *seconds, size_t count, struct ft_dgemv_result *result) {
    qsort(seconds, count, sizeof *seconds, by_size);
    result->seconds_min = seconds[0];
    result->seconds_max = seconds[count - 1];
    result->seconds_median = (seconds[(count - 1) / 2] + seconds[count / 2]) / 2;
}

static int team_size(int wanted) {
    int size = 1;
#pragma omp parallel num_threads(wanted)
    {
#pragma omp single
        size = omp_get_num_threads();
    }
    return size;
}

static void run(const struct ft_dgemv_options *options, const struct problem *p, int threads, double *seconds) {
    if (options->parallel_init) {
        initialise_parallel(p, threads);
    } else {
        initialise(p);
    }
    for (uint64_t repetition = 0; repetition < options->repetitions; repetition++) {
        const double start = omp_get_wtime();
        for (uint64_t iteration = 0; iteration < options->iterations; iteration++) {
            if (options->dynamic) {
                product_dynamic(p, threads, options->chunk);
            } else {
                product(p, threads);
            }
        }
        seconds[repetition] = (omp_get_wtime() - start) / (double)options->iterations;
    }
}

static bool options_are_valid(const struct ft_dgemv_options *o) {
    const uint64_t most = PTRDIFF_MAX / sizeof(double);
    return o->rows >= 1 && o->columns >= 1 && o->rows <= most / o->columns && o->iterations >= 1 &&
           o->repetitions >= 1 && o->repetitions <= most && o->threads <= INT32_MAX && (!o->dynamic || o->chunk >= 1);
}

int ft_dgemv_run(const struct ft_dgemv_options *options, struct ft_dgemv_result *result) {
    if (!options_are_valid(options)) {
        return FT_DGEMV_OPTIONS;
    }
    struct problem p = {.m = options->rows, .n = options->columns};
    double *seconds = malloc(options->repetitions * sizeof *seconds);
    int status = FT_DGEMV_MEMORY;
    if (allocate(&p) && seconds != NULL) {
        const int threads = team_size(options->threads ? (int)options->threads : omp_get_max_threads());
        run(options, &p, threads, seconds);
        summarise(seconds, options->repetitions, result);
        result->threads = (uint32_t)threads;
        status = check(&p, result) ? FT_DGEMV_OK : FT_DGEMV_WRONG;
    }
    free(seconds);
    release(&p);
    return status;
}
