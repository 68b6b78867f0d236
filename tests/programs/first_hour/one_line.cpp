// SPDX-License-Identifier: Apache-2.0 OR MIT
// corpus: build = g++ -O2 -g -Wall -Wextra -fopenmp {src} -o {out}
// corpus: run = {out}
//
// Several allocations on a line, of which some are too small to be recorded: the profile does not have all calls of the line, and the variables of the
// others follow from the columns of the debug information.

#include <cstdio>
#include <cstdlib>
#include <vector>

int main() {
    const std::size_t n = 4 << 20;
    // clang-format off
    double *few = (double *)malloc(800), *many = (double *)malloc(n * sizeof(double)), *none = (double *)malloc(80);
    double *tiny = new double[10], *wide = new double[n];
    std::vector<double> narrow(100, 1.0), broad(n, 2.0), slim(50);
    // clang-format on
    few[0] = none[0] = tiny[0] = 1;
    for (std::size_t i = 0; i < n; i++)
        many[i] = 1, wide[i] = 2;
    for (int sweep = 0; sweep < 60; sweep++) {
#pragma omp parallel for num_threads(4)
        for (std::size_t i = 0; i < n; i++)
            many[i] += 0.5 * wide[i] + broad[i];
    }
    std::printf("%g\n", many[1] + few[0] + none[0] + tiny[0] + narrow[1] + slim[1]);
    free(few), free(many), free(none);
    delete[] tiny;
    delete[] wide;
}
