// SPDX-License-Identifier: Apache-2.0 OR MIT
// corpus: object = L
// corpus: finding = mismatched-partition
// corpus: partition = block
// corpus: remote = 0.25
// corpus: fix = words
// corpus: build = clang -O2 -g -Wall -Wextra -fopenmp {src} -o {out}
// corpus: run = {out}
// corpus: why = A packed triangle is initialised in equal blocks of elements but used in equal blocks of rows, which grow longer.

// By hand: row i ends at element i^2 / 2 of n^2 / 2. Threads 0 and 1 (node 0) use the first half of the rows, the
// first quarter of the elements, but place the first half of the elements. What lies between a quarter and a half
// is used by node 1 and lies on node 0: 0.25.

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { THREADS = 4 };
static const size_t ROWS = 2896; // 4.2 million doubles: 32 MiB
static const double RUN_S = 1.2;

static double seconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static size_t row_start(size_t row) {
    return row * (row + 1) / 2;
}

int main(void) {
    const size_t count = row_start(ROWS);
    double *L = malloc(count * sizeof *L); // @allocated
    if (!L)
        return 1;
#pragma omp parallel for num_threads(THREADS) schedule(static)
    for (size_t k = 0; k < count; k++)
        L[k] = 2.0; // @first-touch

    int bad = 0;
    for (double end = seconds() + RUN_S; seconds() < end;) {
        double sum = 0.0;
#pragma omp parallel for num_threads(THREADS) schedule(static) reduction(+ : sum)
        for (size_t i = 0; i < ROWS; i++) {
            const double *row = L + row_start(i);
            for (size_t j = 0; j <= i; j++)
                sum += row[j]; // @used
        }
        bad |= sum != 2.0 * (double)count;
    }
    puts(bad ? "bad" : "ok");
    free(L);
    return bad;
}
