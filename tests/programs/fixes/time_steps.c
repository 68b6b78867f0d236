// SPDX-License-Identifier: Apache-2.0 OR MIT
// corpus: object = work
// corpus: fix = edit
// corpus: build = gcc -O2 -g -Wall -Wextra -fopenmp -DSWEEPS=201 -I{dir} {src} -o {out}
// corpus: run = {out}
// corpus: why = The array is made anew in each step of a loop over time.

#include "fixes.h"

#include <stdlib.h>

static const size_t N = (size_t)5 << 20; // 40 MiB: above the largest threshold of malloc, so new memory each time

int main(void) {
    double total = 0.0;
    for (int step = 0; step < 3; step++) {
        double *work = malloc(N * sizeof *work);
        if (!work)
            return 1;
        for (size_t i = 0; i < N; i++)
            work[i] = (double)i * (double)(step + 1);
        use_all(work, N);
        total += work[12345];
        print_sum("work", work, N);
        free(work);
    }
    printf("%.17g\n", total);
    return 0;
}
