// SPDX-License-Identifier: Apache-2.0 OR MIT
// corpus: object = a
// corpus: finding = none
// corpus: partition = block
// corpus: remote = 0.0
// corpus: build = g++ -O2 -g -Wall -Wextra -fopenmp {src} -o {out}
// corpus: run = {out}
// corpus: why = Near miss of vector_constructor: the allocator leaves the elements alone, a parallel fill touches them first.

#include <cstddef>
#include <iostream>
#include <memory>
#include <omp.h>
#include <utility>
#include <vector>

constexpr int threads = 4;
constexpr std::size_t n = std::size_t{4} << 20; // doubles: 32 MiB
constexpr double run_s = 1.2;

/// std::allocator, except that constructing an element without arguments does not write to it.
template <class T> struct NoInit : std::allocator<T> {
    template <class U> struct rebind { using other = NoInit<U>; };
    template <class U, class... Args> void construct(U *at, Args &&...args) {
        if constexpr (sizeof...(Args) == 0)
            ::new (static_cast<void *>(at)) U;
        else
            ::new (static_cast<void *>(at)) U(std::forward<Args>(args)...);
    }
};

int main() {
    std::vector<double, NoInit<double>> a(n); // @allocated
#pragma omp parallel for num_threads(threads) schedule(static)
    for (std::size_t i = 0; i < n; ++i)
        a[i] = 1.0; // @first-touch

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
