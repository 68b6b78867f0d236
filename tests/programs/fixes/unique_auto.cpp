// SPDX-License-Identifier: Apache-2.0 OR MIT
// corpus: object = v
// corpus: fix = edit
// corpus: build = g++ -O2 -g -Wall -Wextra -fopenmp -I{dir} {src} -o {out}
// corpus: run = {out}
// corpus: why = The type of the variable is not written.

#include "fixes.h"

#include <cstddef>
#include <memory>

int main() {
    const std::size_t n = std::size_t{2} << 20;
    auto v = std::make_unique<double[]>(n + 16);
    use_all(v.get(), n);
    print_sum("v", v.get(), n);
    return 0;
}
