// SPDX-License-Identifier: Apache-2.0 OR MIT
// What the C and C++ programs of this folder do with their data: four threads use an array, each a block of it, and the result depends on the
// values that the program gave it.
#ifndef FIXES_H
#define FIXES_H

#include <stddef.h>
#include <stdio.h>

#ifndef SWEEPS
#define SWEEPS 1001
#endif

static inline void use_all(double *a, size_t n) {
    for (int sweep = 0; sweep < SWEEPS; sweep++) {
#pragma omp parallel for num_threads(4) schedule(static)
        for (size_t i = 0; i < n; i++)
            a[i] = 3.0 - a[i]; // @used
    }
}

// Every element counts, with a weight of its own.
static inline void print_sum(const char *name, const double *a, size_t n) {
    double sum = 0.0;
    for (size_t i = 0; i < n; i++)
        sum += a[i] * (double)(1 + i % 13);
    printf("%s %.17g\n", name, sum);
}

#endif
