// SPDX-License-Identifier: Apache-2.0 OR MIT
// corpus: object = field
// corpus: fix = edit
// corpus: build = g++ -O2 -g -Wall -Wextra -fopenmp -I{dir} {src} -o {out}
// corpus: run = {out}
// corpus: why = A class makes its memory in the list of its members, and fills it in its constructor.

#include "fixes.h"

#include <cstddef>

class Field {
  public:
    explicit Field(std::size_t n) : n_(n), data_(new double[n]) {
        for (std::size_t i = 0; i < n_; ++i)
            data_[i] = 0.25 * static_cast<double>(i % 77);
    }
    Field(const Field &) = delete;
    ~Field() {
        delete[] data_;
    }
    double *data() {
        return data_;
    }
    std::size_t size() const {
        return n_;
    }

  private:
    std::size_t n_;
    double *data_;
};

int main() {
    Field field(std::size_t{2} << 20);
    use_all(field.data(), field.size());
    print_sum("field", field.data(), field.size());
    return 0;
}
