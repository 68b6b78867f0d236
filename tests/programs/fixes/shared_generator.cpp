// SPDX-License-Identifier: Apache-2.0 OR MIT
// corpus: object = v
// corpus: fix = edit
// corpus: build = g++ -O2 -g -Wall -Wextra -fopenmp -I{dir} {src} -o {out}
// corpus: run = {out}
// corpus: why = std::shared_ptr holds memory that a generator of random numbers fills.

#include "fixes.h"

#include <cstddef>
#include <memory>
#include <random>

int main() {
    const std::size_t n = std::size_t{2} << 20;
    std::shared_ptr<double[]> v(new double[n]);
    std::mt19937 generator(5);
    for (std::size_t i = 0; i < n; ++i)
        v[i] = static_cast<double>(generator() % 4096u);
    use_all(v.get(), n);
    print_sum("v", v.get(), n);
    return 0;
}
