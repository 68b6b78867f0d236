/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * Dense matrix times vector, repeated: y += A * x within one parallel region. A run of many iterations shows what happens to
 * the pages meanwhile (automatic NUMA balancing moves them).
 */
#include "dgemv_tuned.h"
#include "kernel.h"

#include <math.h>
#include <omp.h>

struct problem {
    size_t rows;
    size_t columns;
    double *A;
    double *x;
    double *y;
};

static FT_NOINLINE void initialise(const struct problem *p, uint32_t init, int threads) {
    const size_t columns = p->columns;
    double *A = p->A, *x = p->x, *y = p->y;
    for (size_t j = 0; j < columns; j++) {
        x[j] = (double)(j % 8);
    }
#pragma omp parallel num_threads(threads)
    {
        size_t first, last;
        for (size_t turn = 0; ft_part_to_touch(init, p->rows, columns * sizeof *A, turn, &first, &last); turn++) {
            for (size_t i = first; i < last; i++) {
                for (size_t j = 0; j < columns; j++) {
                    A[i * columns + j] = (double)((i + j) % 16);
                }
                y[i] = 0.0;
            }
        }
    }
}

static FT_NOINLINE void multiply(const struct problem *p, uint64_t iterations, uint32_t form, int threads) {
    const size_t rows = p->rows, columns = p->columns;
    const size_t blocks = (rows + FT_DGEMV_ROWS - 1) / FT_DGEMV_ROWS;
#pragma omp parallel num_threads(threads)
    for (uint64_t iteration = 0; iteration < iterations; iteration++) {
#pragma omp for schedule(runtime)
        for (size_t block = 0; block < blocks; block++) {
            const size_t first = block * FT_DGEMV_ROWS;
            const size_t count = first + FT_DGEMV_ROWS <= rows ? FT_DGEMV_ROWS : rows - first;
            double product[FT_DGEMV_ROWS];
            ft_dgemv_rows(form, count, columns, p->A + first * columns, p->x, product);
            for (size_t i = 0; i < count; i++) {
                p->y[first + i] += product[i];
            }
        }
    }
}

/* The values are small integers, so products and sums are exact. The rows repeat with a period of 16. */
static bool check(const struct problem *p, double products, struct ft_kernel_result *result) {
    double expected[16] = {0};
    for (size_t i = 0; i < 16; i++) {
        for (size_t j = 0; j < p->columns; j++) {
            expected[i] += (double)((i + j) % 16) * (double)(j % 8);
        }
    }
    result->worst_error = 0.0;
    result->wrong_at = 0;
    for (size_t i = 0; i < p->rows; i++) {
        const double right = products * expected[i % 16];
        const double error = fabs(p->y[i] - right) / (right > 1.0 ? right : 1.0);
        if (!(error <= result->worst_error)) {
            result->worst_error = error;
            result->wrong_at = i;
        }
    }
    return result->worst_error <= 1e-12;
}

int ft_dmvm(const struct ft_kernel_options *o, double *seconds, struct ft_kernel_result *result) {
    if (!ft_options_are_valid(o)) {
        return FT_KERNEL_OPTIONS;
    }
    const uint32_t form = ft_choose_form(o->form);
    if (form == 0) {
        return FT_KERNEL_FORM;
    }
    struct problem p = {.rows = o->size[0], .columns = o->size[1]};
    const size_t of_matrix = p.rows * p.columns * sizeof(double);
    const size_t of_row = p.columns * sizeof(double), of_column = p.rows * sizeof(double);
    p.A = ft_allocate(of_matrix, o);
    p.x = ft_allocate(of_row, o);
    p.y = ft_allocate(of_column, o);
    int status = FT_KERNEL_MEMORY;
    if (p.A != NULL && p.x != NULL && p.y != NULL) {
        const int threads = ft_team_size(o);
        initialise(&p, o->init, threads);
        ft_use_schedule(o);
        for (uint64_t repetition = 0; repetition < o->repetitions; repetition++) {
            const double start = omp_get_wtime();
            multiply(&p, o->iterations, form, threads);
            seconds[repetition] = (omp_get_wtime() - start) / (double)o->iterations;
        }
        result->threads = (uint32_t)threads;
        result->form = form;
        result->bytes = of_matrix + of_row + of_column;
        ft_observe(result, p.A, of_matrix, threads);
        status = check(&p, (double)o->iterations * (double)o->repetitions, result) ? FT_KERNEL_OK : FT_KERNEL_WRONG;
    }
    ft_release(p.A, of_matrix);
    ft_release(p.x, of_row);
    ft_release(p.y, of_column);
    return status;
}
