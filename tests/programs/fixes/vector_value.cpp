// SPDX-License-Identifier: Apache-2.0 OR MIT
// corpus: object = x
// corpus: fix = edit
// corpus: build = g++ -O2 -g -Wall -Wextra -fopenmp -I{dir} {src} -o {out}
// corpus: run = {out}
// corpus: why = The constructor of std::vector writes a value to every element.

#include "fixes.h"

#include <cstddef>
#include <vector>

int main() {
    const std::size_t n = std::size_t{2} << 20;
    std::vector<double> x(n, 1.25);
    use_all(x.data(), n);
    print_sum("x", x.data(), x.size());
    return 0;
}
