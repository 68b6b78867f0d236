// SPDX-License-Identifier: Apache-2.0 OR MIT
// corpus: object = a
// corpus: finding = no-stable-partition
// corpus: partition = irregular
// corpus: remote = 0.5
// corpus: fix = words
// corpus: build = g++ -O2 -g -Wall -Wextra -fopenmp {src} -o {out}
// corpus: run = {out}
// corpus: why = Each tile is a task that any thread may take, so placing the tiles in parallel first does not help.

#include <chrono>
#include <cstddef>
#include <iostream>
#include <memory>

constexpr int threads = 4;
constexpr std::size_t tile = 16384, tiles = 256; // 128 KiB a tile, 32 MiB together
constexpr std::chrono::duration<double> run_time{1.2};

static void update(double *begin) {
    for (std::size_t i = 0; i < tile; ++i)
        begin[i] += 1.0; // @used
}

int main() {
    std::unique_ptr<double[]> a(new double[tile * tiles]); // @allocated
    double *data = a.get();
#pragma omp parallel for num_threads(threads) schedule(static)
    for (std::size_t i = 0; i < tile * tiles; ++i)
        data[i] = 1.0; // @first-touch

    using clock = std::chrono::steady_clock;
    long sweeps = 0;
    for (auto start = clock::now(); clock::now() - start < run_time; ++sweeps) {
#pragma omp parallel num_threads(threads)
#pragma omp single
        for (std::size_t t = 0; t < tiles; ++t) {
#pragma omp task firstprivate(t)
            update(data + t * tile);
        }
    }

    bool ok = true;
    for (std::size_t i = 0; i < tile * tiles; ++i)
        ok = ok && data[i] == 1.0 + static_cast<double>(sweeps);
    std::cout << (ok ? "ok" : "bad") << '\n';
    return ok ? 0 : 1;
}
