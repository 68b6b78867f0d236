// SPDX-License-Identifier: Apache-2.0 OR MIT
//
// Tests of what firsttouch.hpp has where the compiler has <mdspan> (or mdspan/mdspan stands in). Prints a line for each test.
#include <firsttouch.hpp>

#include <cstdio>

#ifndef __cpp_lib_mdspan
#error "there is no <mdspan>: compile with -I mdspan"
#endif

static int failures;

static void check(const char *name, bool good) {
    std::printf("%s  C++ mdspan: %s\n", good ? "ok   " : "FAIL ", name);
    failures += good ? 0 : 1;
}

template <class... Extents> static bool is_refused(const firsttouch::unique_array<double> &array, Extents... extents) {
    try {
        array.mdspan(extents...);
    } catch (const std::invalid_argument &) {
        return true;
    }
    return false;
}

int main() {
    const std::size_t rows = 300, columns = 500;
    const firsttouch::unique_array<double> array(rows * columns, firsttouch::partition::blocked().in_rows_of(columns));
    const auto view = array.mdspan(rows, columns);
    check("a view has the array's memory", view.data_handle() == array.data());
    check("a view has the extents", view.extent(0) == rows && view.extent(1) == columns);
#ifdef __cpp_multidimensional_subscript
    view[2, 3] = 7;
    check("rows are the outer axis", array[2 * columns + 3] == 7);
#endif
    check("a smaller view", array.mdspan(10, 10, 10).mapping().required_span_size() == 1000);
    check("a view of more elements than there are",
          is_refused(array, rows, columns + 1) && is_refused(array, rows * columns + 1));
    const auto half = std::size_t{1} << 32;
    check("a view whose number of elements overflows", is_refused(array, half, half));
    check("a view without elements", !is_refused(array, half, half, 0));
    check("a view of an empty array",
          is_refused(firsttouch::unique_array<double>(), 1) && !is_refused(firsttouch::unique_array<double>(), 0));
    return failures > 0;
}
