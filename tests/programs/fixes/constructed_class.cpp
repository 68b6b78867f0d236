// SPDX-License-Identifier: Apache-2.0 OR MIT
// corpus: object = cells
// corpus: fix = words
// corpus: says = std::allocator<Cell>().allocate(n)
// corpus: build = g++ -O2 -g -Wall -Wextra -fopenmp {src} -o {out}
// corpus: run = {out}
// corpus: why = new runs the constructors: a loop behind it comes too late, and a byte written there would change values.

#include <cstddef>
#include <cstdio>

struct Cell {
    int kind;
    float weight;
    double a, b;
    Cell() : kind(7), weight(1), a(1), b(2) {}
};

int main() {
    const std::size_t n = (std::size_t)1 << 20;
    Cell *cells = new Cell[n];
    double sum = 0;
    for (int sweep = 0; sweep < 301; sweep++) {
#pragma omp parallel for num_threads(4) schedule(static) reduction(+ : sum)
        for (std::size_t i = 0; i < n; i++) {
            cells[i].a = 3.0 - cells[i].a;
            sum += cells[i].b * cells[i].kind;
        }
    }
    std::printf("%.17g %g\n", sum, cells[7].a);
    delete[] cells;
}
