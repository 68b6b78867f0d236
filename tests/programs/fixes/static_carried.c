// SPDX-License-Identifier: Apache-2.0 OR MIT
// corpus: object = a
// corpus: fix = words
// corpus: says = at the start of the program, before anything else does, what is there already
// corpus: build = gcc -O2 -g -Wall -Wextra -fopenmp -I{dir} {src} -o {out}
// corpus: run = {out}
// corpus: why = A static array has no allocation, and its loop cannot be divided.

#include "fixes.h"

static double a[(size_t)2 << 20];

int main(void) {
    const size_t n = sizeof a / sizeof a[0];
    a[0] = 1.0;
    for (size_t i = 1; i < n; i++)
        a[i] = 0.5 * a[i - 1] + 1.0;
    use_all(a, n);
    print_sum("a", a, n);
    return 0;
}
