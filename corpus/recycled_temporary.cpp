// SPDX-License-Identifier: Apache-2.0 OR MIT
// corpus: object = a
// corpus: finding = recycled-memory
// corpus: partition = block
// corpus: remote = 0.5
// corpus: fix = words
// corpus: build = g++ -O2 -g -Wall -Wextra -fopenmp {src} -o {out}
// corpus: run = {out}
// corpus: why = glibc keeps blocks of up to 32 MiB on its heap once one was freed, so a new array gets a dead vector's pages.

// The first temporary is mapped and unmapped; freeing it raises malloc's mmap threshold. The second comes from the
// heap, is written by the main thread and stays on the heap after it is freed. The third block is the array to judge.

#include <cstddef>
#include <iostream>
#include <memory>
#include <numeric>
#include <omp.h>
#include <vector>

constexpr int threads = 4;
constexpr std::size_t n = std::size_t{3} << 20; // doubles: 24 MiB
constexpr double run_s = 1.2;

static double mean_of_input() {
    std::vector<double> input(n, 2.0); // @first-touch
    return std::accumulate(input.begin(), input.end(), 0.0) / static_cast<double>(n);
}

int main() {
    const double warm_up = mean_of_input();
    const double mean = mean_of_input();

    std::unique_ptr<double[]> a(new double[n]); // @allocated
    double *data = a.get();
#pragma omp parallel for num_threads(threads) schedule(static)
    for (std::size_t i = 0; i < n; ++i)
        data[i] = mean; // as it should be done, but no page is new

    long sweeps = 0;
    for (double end = omp_get_wtime() + run_s; omp_get_wtime() < end; ++sweeps) {
#pragma omp parallel for num_threads(threads) schedule(static)
        for (std::size_t i = 0; i < n; ++i)
            data[i] += 1.0; // @used
    }

    bool ok = warm_up == mean;
    for (std::size_t i = 0; i < n; ++i)
        ok = ok && data[i] == 2.0 + static_cast<double>(sweeps);
    std::cout << (ok ? "ok" : "bad") << '\n';
    return ok ? 0 : 1;
}
