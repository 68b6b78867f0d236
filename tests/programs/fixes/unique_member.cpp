// SPDX-License-Identifier: Apache-2.0 OR MIT
// corpus: object = m.pressure
// corpus: fix = edit
// corpus: build = g++ -O2 -g -Wall -Wextra -fopenmp -I{dir} {src} -o {out}
// corpus: run = {out}
// corpus: why = A member is made by std::make_unique, which clears it.

#include "fixes.h"

#include <cstddef>
#include <memory>

struct Mesh {
    std::size_t n = 0;
    std::unique_ptr<double[]> pressure;
};

int main() {
    Mesh m;
    m.n = std::size_t{2} << 20;
    m.pressure = std::make_unique<double[]>(m.n);
    use_all(m.pressure.get(), m.n);
    print_sum("pressure", m.pressure.get(), m.n);
    return 0;
}
