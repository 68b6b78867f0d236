// SPDX-License-Identifier: Apache-2.0 OR MIT
// corpus: object = x
// corpus: fix = words
// corpus: build = g++ -O2 -g -Wall -Wextra -fopenmp -I{dir} {src} -o {out}
// corpus: run = {out}
// corpus: why = A constant vector cannot be filled later; it is copied to a table that nobody writes.

#include "fixes.h"

#include <cstddef>
#include <cstdio>
#include <vector>

int main() {
    const std::size_t n = std::size_t{2} << 20;
    const std::vector<double> x(n, 1.25);
    double total = 0.0;
    for (int sweep = 0; sweep < SWEEPS / 2; ++sweep) {
#pragma omp parallel for num_threads(4) schedule(static) reduction(+ : total)
        for (std::size_t i = 0; i < n; ++i)
            total += x[i];
    }
    std::printf("%.17g\n", total);
    return 0;
}
