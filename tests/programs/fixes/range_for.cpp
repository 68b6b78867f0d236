// SPDX-License-Identifier: Apache-2.0 OR MIT
// corpus: object = v
// corpus: fix = edit
// corpus: build = g++ -O2 -g -Wall -Wextra -fopenmp -I{dir} {src} -o {out}
// corpus: run = {out}
// corpus: why = A range loop initialises a vector whose allocator does not.

#include "fixes.h"

#include <cstddef>
#include <memory>
#include <vector>

template <class T> struct untouched : std::allocator<T> {
    template <class U> struct rebind { using other = untouched<U>; };
    template <class U> void construct(U *p) {
        ::new (static_cast<void *>(p)) U;
    }
};

int main() {
    const std::size_t n = std::size_t{2} << 20;
    std::vector<double, untouched<double>> v(n);
    for (double &x : v)
        x = 1.75;
    use_all(v.data(), n);
    print_sum("v", v.data(), n);
    return 0;
}
