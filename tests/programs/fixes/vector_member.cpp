// SPDX-License-Identifier: Apache-2.0 OR MIT
// corpus: object = field.values
// corpus: fix = edit
// corpus: build = g++ -O2 -g -Wall -Wextra -fopenmp -I{dir} {src} -o {out}
// corpus: run = {out}
// corpus: why = A member is resized, and passed on as the type it has.

#include "fixes.h"

#include <cstddef>
#include <cstdio>
#include <vector>

struct Field {
    std::vector<double> values;
    std::size_t width = 0;
};

static double first(const std::vector<double> &values) {
    return values.front();
}

static void create(Field &field, std::size_t width, std::size_t height) {
    field.width = width;
    field.values.resize(width * height, 0.75);
}

int main() {
    Field field;
    create(field, 2048, 1024);
    use_all(field.values.data(), field.values.size());
    print_sum("values", field.values.data(), field.values.size());
    std::printf("%g\n", first(field.values));
    return 0;
}
