// SPDX-License-Identifier: Apache-2.0 OR MIT
// corpus: object = list
// corpus: fix = words
// corpus: says = push_back appends the elements of list in one thread
// corpus: build = g++ -O2 -g -Wall -Wextra -fopenmp -I{dir} {src} -o {out}
// corpus: run = {out}
// corpus: why = Nobody says how long the list becomes.

#include "fixes.h"

#include <cstddef>
#include <vector>

int main() {
    const std::size_t n = std::size_t{2} << 20;
    std::vector<double> list;
    for (std::size_t i = 0; i < n; ++i)
        list.push_back(static_cast<double>(i % 1001));
    use_all(list.data(), n);
    print_sum("list", list.data(), list.size());
    return 0;
}
