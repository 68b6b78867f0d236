// SPDX-License-Identifier: Apache-2.0 OR MIT
// corpus: object = rows[y]
// corpus: fix = edit
// corpus: build = g++ -O2 -g -Wall -Wextra -fopenmp -I{dir} {src} -o {out}
// corpus: run = {out}
// corpus: why = A vector of vectors whose rows get their size and their values one after another.

#include "fixes.h"

#include <cstddef>
#include <vector>

int main() {
    const std::size_t height = 64, width = 32768;
    std::vector<std::vector<double>> rows(height);
    for (std::size_t y = 0; y < height; ++y) {
        rows[y].resize(width);
        for (std::size_t x = 0; x < width; ++x)
            rows[y][x] = static_cast<double>((x + y) % 7);
    }
    for (int sweep = 0; sweep < SWEEPS; ++sweep) {
#pragma omp parallel for num_threads(4) schedule(static)
        for (std::size_t y = 0; y < height; ++y)
            for (std::size_t x = 0; x < width; ++x)
                rows[y][x] = 3.0 - rows[y][x];
    }
    for (std::size_t y = 0; y < height; y += 16)
        print_sum("row", rows[y].data(), width);
    return 0;
}
