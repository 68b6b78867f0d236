// SPDX-License-Identifier: Apache-2.0 OR MIT
// corpus: object = u[0]
// corpus: fix = edit
// corpus: build = gcc -O2 -g -Wall -Wextra -fopenmp -DSWEEPS=401 -I{dir} {src} -o {out}
// corpus: run = {out}
// corpus: why = The outer loop goes over the components, each an allocation of its own, which the threads divide: the inner loop must be divided.

#include "fixes.h"

#include <stdlib.h>

enum { COMPONENTS = 2 };

int main(void) {
    const size_t n = (size_t)4 << 20;
    double *u[COMPONENTS];
    u[0] = malloc(n * sizeof *u[0]);
    u[1] = malloc(n * sizeof *u[1]);
    if (!u[0] || !u[1])
        return 1;
    for (int c = 0; c < COMPONENTS; c++)
        for (size_t i = 0; i < n; i++)
            u[c][i] = (double)(i + (size_t)c);
    for (int c = 0; c < COMPONENTS; c++)
        use_all(u[c], n);
    print_sum("u[0]", u[0], n);
    print_sum("u[1]", u[1], n);
    free(u[0]);
    free(u[1]);
    return 0;
}
