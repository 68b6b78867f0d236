// SPDX-License-Identifier: Apache-2.0 OR MIT
// corpus: build = g++ -std=c++17 -O2 -g -Wall -Wextra -pthread {src} -o {out}
//
// Two arrays in one buffer of a memory resource, of which one gets twice the accesses of the other. Two threads divide both in halves. Each initialises its
// half of the first one; the main thread initialises the second one.

#include <cstddef>
#include <cstdio>
#include <memory_resource>
#include <thread>
#include <vector>

int main() {
    const std::size_t words = 6u << 20, rounds = 500;
    std::pmr::monotonic_buffer_resource arena(2 * words * sizeof(double) + 4096);
    auto *own = static_cast<double *>(arena.allocate(words * sizeof(double), 64));
    auto *given = static_cast<double *>(arena.allocate(words * sizeof(double), 64));
    for (std::size_t i = 0; i < words; i++)
        given[i] = static_cast<double>(i % 19); // @serial
    std::vector<std::thread> threads;
    for (std::size_t thread = 0; thread < 2; thread++)
        threads.emplace_back([=] {
            const std::size_t from = words / 2 * thread, to = from + words / 2;
            for (std::size_t i = from; i < to; i++)
                own[i] = 1;
            for (std::size_t round = 0; round < rounds; round++)
                for (std::size_t i = from; i < to; i++)
                    own[i] = 0.5 * own[i] + given[i];
        });
    for (auto &thread : threads)
        thread.join();
    std::printf("%g\n", own[words / 3]);
}
