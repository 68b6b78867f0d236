// SPDX-License-Identifier: Apache-2.0 OR MIT
// corpus: object = m
// corpus: fix = edit
// corpus: build = g++ -O2 -g -Wall -Wextra -fopenmp -I{dir} {src} -o {out}
// corpus: run = {out}
// corpus: why = A class hides the subscript in operator(), and the memory in the list of its members.

#include "fixes.h"

#include <cstddef>

class Matrix {
  public:
    Matrix(std::size_t rows, std::size_t columns) : columns_(columns), data_(new double[rows * columns]) {}
    Matrix(const Matrix &) = delete;
    ~Matrix() {
        delete[] data_;
    }
    double &operator()(std::size_t r, std::size_t c) {
        return data_[r * columns_ + c];
    }
    double *data() {
        return data_;
    }

  private:
    std::size_t columns_;
    double *data_;
};

int main() {
    const std::size_t rows = 1024, columns = 2048;
    Matrix m(rows, columns);
    for (std::size_t r = 0; r < rows; ++r)
        for (std::size_t c = 0; c < columns; ++c)
            m(r, c) = static_cast<double>(r + c);
    use_all(m.data(), rows * columns);
    print_sum("m", m.data(), rows * columns);
    return 0;
}
