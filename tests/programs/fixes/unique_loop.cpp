// SPDX-License-Identifier: Apache-2.0 OR MIT
// corpus: object = v
// corpus: fix = edit
// corpus: build = g++ -O2 -g -Wall -Wextra -fopenmp -I{dir} {src} -o {out}
// corpus: run = {out}
// corpus: why = std::unique_ptr holds new memory that a loop fills.

#include "fixes.h"

#include <cstddef>
#include <memory>

int main() {
    const std::size_t n = std::size_t{2} << 20;
    std::unique_ptr<double[]> v(new double[n]);
    for (std::size_t i = 0; i < n; ++i)
        v[i] = static_cast<double>(i) * 0.5;
    use_all(v.get(), n);
    print_sum("v", v.get(), n);
    return 0;
}
