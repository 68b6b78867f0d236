// SPDX-License-Identifier: Apache-2.0 OR MIT
// corpus: object = a
// corpus: fix = edit
// corpus: build = gcc -O2 -g -Wall -Wextra -fopenmp -I{dir} {src} -o {out}
// corpus: run = {out}
// corpus: why = memset writes a pattern that is not zero, so a fix has to keep it.

#include "fixes.h"

#include <stdlib.h>
#include <string.h>

static const size_t N = (size_t)2 << 20; // 16 MiB

int main(void) {
    double *a = aligned_alloc(64, N * sizeof(double));
    if (!a)
        return 1;
    memset(a, 0x3f, N * sizeof(double));
    use_all(a, N);
    print_sum("a", a, N);
    return 0;
}
