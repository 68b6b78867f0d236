// SPDX-License-Identifier: Apache-2.0 OR MIT
// corpus: object = p
// corpus: fix = edit
// corpus: build = g++ -O2 -g -Wall -Wextra -fopenmp -I{dir} {src} -o {out}
// corpus: run = {out}
// corpus: why = std::fill writes new memory.

#include "fixes.h"

#include <algorithm>
#include <cstddef>

int main() {
    const std::size_t n = std::size_t{2} << 20;
    double *p = new double[n];
    std::fill(p, p + n, 2.5);
    use_all(p, n);
    print_sum("p", p, n);
    delete[] p;
    return 0;
}
