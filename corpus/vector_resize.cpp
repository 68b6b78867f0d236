// SPDX-License-Identifier: Apache-2.0 OR MIT
// corpus: object = pixels
// corpus: finding = serial-first-touch
// corpus: partition = block
// corpus: cause = std::vector
// corpus: remote = 0.5
// corpus: fix = edit: #pragma omp parallel for num_threads(threads) schedule(static)
// corpus: build = g++ -O2 -g -Wall -Wextra -fopenmp {src} -o {out}
// corpus: run = {out}
// corpus: why = A class resizes its std::vector member: resize writes zeros to all new elements in the calling thread.

#include <cstddef>
#include <iostream>
#include <omp.h>
#include <vector>

constexpr int threads = 4;
constexpr double run_s = 1.2;

class Image {
  public:
    void create(std::size_t width, std::size_t height) {
        width_ = width;
        height_ = height;
        pixels.resize(width * height); // @allocated @first-touch
    }

    void brighten(double by) {
#pragma omp parallel for num_threads(threads) schedule(static)
        for (std::size_t y = 0; y < height_; ++y)
            for (std::size_t x = 0; x < width_; ++x)
                pixels[y * width_ + x] += by; // @used
    }

    bool all_are(double value) const {
        for (double pixel : pixels)
            if (pixel != value)
                return false;
        return true;
    }

  private:
    std::size_t width_ = 0, height_ = 0;
    std::vector<double> pixels;
};

int main() {
    Image image;
    image.create(4096, 1024); // 32 MiB

    long sweeps = 0;
    for (double end = omp_get_wtime() + run_s; omp_get_wtime() < end; ++sweeps)
        image.brighten(0.5);

    const bool ok = image.all_are(0.5 * static_cast<double>(sweeps));
    std::cout << (ok ? "ok" : "bad") << '\n';
    return ok ? 0 : 1;
}
