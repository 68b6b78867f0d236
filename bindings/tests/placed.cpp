// SPDX-License-Identifier: Apache-2.0 OR MIT
//
// placed [SECONDS]: one thread touches an array of each partition, and at least 99 % of its pages have to be on target. Then the threads of
// OpenMP use a field, each its own block, and a table for SECONDS. Guests with several nodes run it bare and under `profile`, which has to
// find nothing; so they do with placed.f90, placed.py and bindings/rust/tests/placed.rs.
#include <firsttouch.hpp>
#include <omp.h>

#include <array>
#include <cstdio>
#include <numeric>

namespace ft = firsttouch;
using ft::partition;

constexpr std::size_t n = 524'288, table_size = 262'144;

static int failures;

static void say(const char *name, double share, std::size_t of, bool good) {
    std::printf("%s  placed: %s: %.4f of %zu\n", good ? "ok   " : "FAIL ", name, share, of);
    failures += good ? 0 : 1;
}

template <class Range> static void verify(const char *name, const Range &range, const partition &how) {
    const auto verdict = ft::verify(range, how);
    say(name, verdict.share, verdict.present, verdict.share >= 0.99 && verdict.present == verdict.pages);
}

static void check(const char *name, const partition &how) {
    const ft::unique_array<double> array(n, how);
    std::fill(array.begin(), array.end(), 1.0);
    verify(name, array, how);
}

int main(int count, char **words) {
    ft::join_openmp_team();
    std::array<int, 64> nodes{};
    const std::size_t known = ft_nodes(nodes.data(), nodes.size());
    std::vector<double> weights(known);
    std::iota(weights.begin(), weights.end(), 1.0);
    check("blocked", partition::blocked());
    check("blocked over nodes", partition::blocked().over_nodes());
    check("cyclic", partition::cyclic(10'000));
    check("by bounds", partition::by_bounds({0, 100'000, n}));
    check("weighted", partition::weighted(weights));
    check("interleaved", partition::interleaved());
    check("bind", partition::bind(nodes[known - 1]));

    const double seconds = count > 1 ? std::strtod(words[1], nullptr) : 0;
    auto field = ft::make_blocked_vector<double>(n);
    std::fill(field.begin(), field.end(), 1.0);
    ft::replicated_table<double> table(table_size);
    std::fill(table.first().begin(), table.first().end(), 0.5);
    table.replicate();
    const double end = omp_get_wtime() + seconds;
    int threads = 0, local = 0;
    double sum = 0;
#pragma omp parallel reduction(+ : threads, local, sum)
    {
        const std::span<const double> mine = table.local();
        threads++;
        local += ft::expect(mine, partition::local(), 1.0) == true ? 1 : 0;
        do {
#pragma omp for schedule(static) nowait
            for (std::size_t i = 0; i < n; i++) {
                sum += field[i] * mine[i % table_size];
            }
        } while (omp_get_wtime() < end);
    }
    verify("field", field, partition::blocked());
    say("table", static_cast<double>(local) / threads, static_cast<std::size_t>(threads), local == threads && sum > 0);
    return failures > 0 ? 1 : 0;
}
