// SPDX-License-Identifier: Apache-2.0 OR MIT
// corpus: object = a
// corpus: finding = serial-first-touch
// corpus: partition = block
// corpus: cause = std::vector
// corpus: remote = 0.5
// corpus: fix = edit: #pragma omp parallel for num_threads(threads) schedule(static)
// corpus: build = g++ -O2 -g -Wall -Wextra -fopenmp {src} -o {out}
// corpus: run = {out}
// corpus: why = The constructor of std::vector writes every element in the thread that constructs it.

#include <cstddef>
#include <iostream>
#include <omp.h>
#include <vector>

constexpr int threads = 4;
constexpr std::size_t n = std::size_t{4} << 20; // doubles: 32 MiB
constexpr double run_s = 1.2;

int main() {
    std::vector<double> a(n, 1.0); // @allocated @first-touch

    long sweeps = 0;
    for (double end = omp_get_wtime() + run_s; omp_get_wtime() < end; ++sweeps) {
#pragma omp parallel for num_threads(threads) schedule(static)
        for (std::size_t i = 0; i < n; ++i)
            a[i] += 1.0; // @used
    }

    long bad = 0;
#pragma omp parallel for num_threads(threads) schedule(static) reduction(+ : bad)
    for (std::size_t i = 0; i < n; ++i)
        bad += a[i] != 1.0 + static_cast<double>(sweeps);
    std::cout << (bad ? "bad" : "ok") << '\n';
    return bad != 0;
}
