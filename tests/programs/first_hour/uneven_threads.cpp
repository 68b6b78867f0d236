// SPDX-License-Identifier: Apache-2.0 OR MIT
// corpus: build = g++ -O2 -g -Wall -Wextra {src} -o {out} -pthread
// corpus: run = {out}
//
// Four threads are created anew for each step, and live for some milliseconds: the first two work on three sixteenths of the cells each, the others on five.
// One thread initialised them. On two nodes 10 of 16 accesses are remote, as many as the last two threads make. Where there are fewer CPUs than threads,
// threads begin and end at the ticks of the scheduler, so that ticks show little of how long each of them ran.

#include <chrono>
#include <cstddef>
#include <cstdio>
#include <thread>
#include <vector>

struct Cell {
    double density, momentum[3], energy, pressure;
};

static const std::size_t N = std::size_t{3200} * 1000;
static const std::size_t BORDERS[] = {0, N / 16 * 3, N / 16 * 6, N / 16 * 11, N};

int main() {
    std::vector<Cell> cells(N, Cell{1.0, {0.1, 0.2, 0.3}, 2.5, 0.0});
    const auto start = std::chrono::steady_clock::now();
    while (std::chrono::steady_clock::now() - start < std::chrono::seconds(4)) {
        std::vector<std::thread> team;
        for (std::size_t member = 0; member < 4; member++) {
            team.emplace_back([&cells, member] {
                for (std::size_t i = BORDERS[member]; i < BORDERS[member + 1]; i++) {
                    Cell &one = cells[i];
                    const double *m = one.momentum;
                    one.pressure = 0.4 * (one.energy - 0.5 * (m[0] * m[0] + m[1] * m[1] + m[2] * m[2]) / one.density);
                    one.energy += 1e-3 * one.pressure;
                }
            });
        }
        for (std::thread &one : team) {
            one.join();
        }
    }
    std::puts(cells[0].energy > 2.5 && cells[N - 1].energy > 2.5 ? "ok" : "not all cells were computed");
}
