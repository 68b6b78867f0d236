// SPDX-License-Identifier: Apache-2.0 OR MIT
// corpus: build = g++ -O2 -g -Wall -Wextra {src} -o {out} -pthread
// corpus: run = {out}
//
// Four threads are created anew for each step, which takes a few milliseconds: no thread lives long enough to be judged by itself, but the first
// thread of each step always works on the first quarter. One thread initialised the array.

#include <chrono>
#include <cstddef>
#include <cstdio>
#include <thread>
#include <vector>

static const std::size_t N = std::size_t{4} << 20; // 32 MiB
static const std::size_t TEAM = 4;

int main() {
    double *field = new double[N];
    for (std::size_t i = 0; i < N; i++) {
        field[i] = 1.0; // @first-touch
    }
    const auto start = std::chrono::steady_clock::now();
    while (std::chrono::steady_clock::now() - start < std::chrono::seconds(3)) {
        std::vector<std::thread> team;
        for (std::size_t member = 0; member < TEAM; member++) {
            team.emplace_back([=] {
                for (std::size_t i = N / TEAM * member; i < N / TEAM * (member + 1); i++) {
                    field[i] *= 0.5;
                }
            });
        }
        for (std::thread &one : team) {
            one.join();
        }
    }
    std::puts(field[0] == 0.0 && field[N - 1] == 0.0 ? "ok" : "not all of it was halved");
    delete[] field;
}
