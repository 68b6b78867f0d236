// SPDX-License-Identifier: Apache-2.0 OR MIT
// corpus: object = v
// corpus: fix = edit
// corpus: build = g++ -O2 -g -Wall -Wextra -fopenmp -I{dir} {src} -o {out}
// corpus: run = {out}
// corpus: why = The subscript goes backwards where a std::vector is used.

#include "fixes.h"

#include <cstddef>
#include <vector>

int main() {
    const std::size_t n = std::size_t{2} << 20;
    std::vector<double> v(n, 1.5);
    for (int sweep = 0; sweep < SWEEPS; ++sweep) {
#pragma omp parallel for num_threads(4) schedule(static)
        for (std::size_t i = 0; i < n; ++i)
            v[n - 1 - i] = 3.0 - v[n - 1 - i];
    }
    print_sum("v", v.data(), v.size());
    return 0;
}
