// SPDX-License-Identifier: Apache-2.0 OR MIT
// corpus: object = mesh
// corpus: finding = serial-first-touch
// corpus: partition = block
// corpus: cause = std::vector
// corpus: remote = 0.5
// corpus: fix = words
// corpus: build = clang++ -O2 -g -Wall -Wextra -fopenmp {src} -o {out}
// corpus: run = {out}
// corpus: why = The mesh is built by push_back in one thread; each growth copies it into new memory on that thread's node.

#include <chrono>
#include <cstddef>
#include <iostream>
#include <vector>

constexpr int threads = 4;
constexpr std::size_t cells = std::size_t{1} << 20; // 32 bytes each: 32 MiB
constexpr std::chrono::duration<double> run_time{1.2};

struct Cell {
    double mass, velocity, pressure, energy;
};

int main() {
    std::vector<Cell> mesh;
    for (std::size_t i = 0; i < cells; ++i)
        mesh.push_back({1.0, static_cast<double>(i % 4), 0.5, 0.0}); // @allocated @first-touch

    using clock = std::chrono::steady_clock;
    bool ok = true;
    for (auto start = clock::now(); clock::now() - start < run_time;) {
        double kinetic = 0.0;
#pragma omp parallel for num_threads(threads) schedule(static) reduction(+ : kinetic)
        for (std::size_t i = 0; i < cells; ++i) {
            Cell &cell = mesh[i];
            cell.energy = 0.5 * cell.mass * cell.velocity * cell.velocity + cell.pressure; // @used
            kinetic += cell.energy;                                                        // @used
        }
        // velocities 0 1 2 3: 0.5 * (0 + 1 + 4 + 9) / 4 + 0.5 = 2.25 a cell
        ok = ok && kinetic == 2.25 * static_cast<double>(cells);
    }
    std::cout << (ok ? "ok" : "bad") << '\n';
    return ok ? 0 : 1;
}
