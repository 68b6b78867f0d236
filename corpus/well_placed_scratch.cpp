// SPDX-License-Identifier: Apache-2.0 OR MIT
// corpus: object = scratch
// corpus: finding = none
// corpus: partition = single
// corpus: remote = 0.0
// corpus: build = clang++ -O2 -g -Wall -Wextra -fopenmp {src} -o {out}
// corpus: run = {out}
// corpus: why = Near miss of tasks and dynamic_schedule: the jobs are dynamic, but each thread works in a buffer of its own.

#include <chrono>
#include <cstddef>
#include <iostream>
#include <vector>

constexpr int threads = 4, jobs = 64;
constexpr std::size_t n = std::size_t{1} << 20; // doubles: 8 MiB a thread
constexpr std::chrono::duration<double> run_time{1.2};

int main() {
    using clock = std::chrono::steady_clock;
    bool ok = true, running = true;
    const auto start = clock::now();
#pragma omp parallel num_threads(threads)
    {
        std::vector<double> scratch(n); // @allocated @first-touch
        while (running) {
#pragma omp for schedule(dynamic) reduction(&& : ok)
            for (int job = 0; job < jobs; ++job) {
                for (std::size_t i = 0; i < n; ++i)
                    scratch[i] = job; // @used
                double sum = 0.0;
                for (std::size_t i = 0; i < n; ++i)
                    sum += scratch[i]; // @used
                ok = ok && sum == static_cast<double>(job) * n;
            }
#pragma omp single
            running = clock::now() - start < run_time;
        }
    }
    std::cout << (ok ? "ok" : "bad") << '\n';
    return ok ? 0 : 1;
}
