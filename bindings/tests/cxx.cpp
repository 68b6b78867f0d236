// SPDX-License-Identifier: Apache-2.0 OR MIT
//
// Tests of firsttouch.hpp. What is where, present or mapped is asked of the kernel, not of the library; who owns what is asked of the
// OpenMP runtime. Prints a line for each test; the status is 1 if one failed.
#include <firsttouch.hpp>
#include <omp.h>

#include <array>
#include <cstdio>
#include <cstring>
#include <dlfcn.h>
#include <list>
#include <map>
#include <numeric>
#include <set>
#include <tuple>

#include "pages.h"

namespace ft = firsttouch;
using ft::partition;

static int failures;

static void check(const char *name, bool good) {
    std::printf("%s  C++: %s\n", good ? "ok   " : "FAIL ", name);
    failures += good ? 0 : 1;
}

template <class Exception, class Call> static bool throws(Call call) {
    try {
        call();
    } catch (const Exception &) {
        return true;
    }
    return false;
}

constexpr std::size_t n = 400'000;

static void containers_touch_nothing() {
    const auto blocked = ft::make_blocked_vector<double>(n);
    check("a vector of n doubles touches no page", pages_present(blocked.data(), n * sizeof(double)) == 0);
    const ft::first_touch_vector<double> local(n);
    check("nor does one without a partition", pages_present(local.data(), n * sizeof(double)) == 0);
    const ft::first_touch_vector<std::complex<double>> complex(n);
    check("nor does one of complex numbers", pages_present(complex.data(), n * sizeof(std::complex<double>)) == 0);
    const ft::unique_array<float> array(n, partition::interleaved());
    check("nor does a unique_array", pages_present(array.data(), n * sizeof(float)) == 0);
    const std::vector<double> standard(n);
    check("(std::vector does: the test can fail)", pages_present(standard.data(), n * sizeof(double)) > 700);
}

static void memory_is_freed() {
    const void *pointer;
    {
        const auto vector = ft::make_blocked_vector<double>(n);
        pointer = vector.data();
    }
    check("a vector's memory is unmapped with it", pages_present(pointer, n * sizeof(double)) == -1);
    {
        const ft::unique_array<double> array(n, partition::blocked());
        pointer = array.data();
    }
    check("a unique_array's too", pages_present(pointer, n * sizeof(double)) == -1);
}

static void bounds_are_openmp_s() {
    bool same = true;
    for (const int threads : {1, 2, 3, 4, 7}) {
        for (const std::size_t count : {1U, 2U, 6U, 7U, 1000U, 1001U, 1006U}) {
            std::vector<int> owner(count, -1);
#pragma omp parallel for schedule(static) num_threads(threads)
            for (std::size_t i = 0; i < count; i++) {
                owner[i] = omp_get_thread_num();
            }
            const auto bounds = ft::static_bounds(count, static_cast<std::size_t>(threads));
            for (int thread = 0; thread < threads; thread++) {
                for (std::size_t i = bounds[static_cast<std::size_t>(thread)];
                     i < bounds[static_cast<std::size_t>(thread) + 1]; i++) {
                    same &= owner[i] == thread;
                }
            }
            same &= bounds.back() == count;
        }
    }
    check("static_bounds are those of schedule(static)", same);
    const auto rows = partition::blocked(3).in_rows_of(10).in_bytes(75, 8);
    const std::vector<std::size_t> found(rows.get()->bounds, rows.get()->bounds + 4);
    check("rows are divided whole, the last one cut short", found == std::vector<std::size_t>{0, 240, 480, 640});
    check("chunks count elements", partition::cyclic(100).in_rows_of(3).in_bytes(1000, 8).get()->chunk == 2400);
}

// One thread touches all, so that only the policy can have placed the pages; then each page is asked for.
template <class Owner> static bool placed(const ft::unique_array<double> &array, Owner owner) {
    std::fill(array.begin(), array.end(), 1.0);
    const std::size_t page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE)) / sizeof(double);
    std::size_t wrong = 0, pages = 0;
    for (std::size_t i = 0; i < array.size(); i += page) {
        std::set<int> nodes;
        int last = -1;
        for (std::size_t j = i; j < std::min(i + page, array.size()); j++) {
            if (owner[j] != last) {
                last = owner[j];
                nodes.insert(ft_team_node(0, static_cast<std::size_t>(last)));
            }
        }
        pages++;
        wrong += nodes.contains(node_of(&array[i])) ? 0 : 1;
    }
    return pages > 700 && wrong * 100 <= pages;
}

static void pages_go_to_their_threads() {
    ft::join_openmp_team();
    check("the team is OpenMP's", ft_team_size(0) == static_cast<std::size_t>(omp_get_max_threads()));
    std::vector<int> owner(n);
#pragma omp parallel for schedule(static)
    for (std::size_t i = 0; i < n; i++) {
        owner[i] = omp_get_thread_num();
    }
    const ft::unique_array<double> blocked(n, partition::blocked());
    check("pages go where schedule(static) uses them", placed(blocked, owner));
    check("verify says the same", ft::verify(blocked, partition::blocked()).share > 0.99);
    check("expect too", ft::expect(blocked, partition::blocked(), 0.99) == true);
    check("the report names the array",
          ft::report(blocked, partition::blocked(), "blocked").find("blocked") != std::string::npos);
#pragma omp parallel for schedule(static, 4096)
    for (std::size_t i = 0; i < n; i++) {
        owner[i] = omp_get_thread_num();
    }
    const ft::unique_array<double> cyclic(n, partition::cyclic(4096));
    check("pages go where schedule(static, 4096) uses them", placed(cyclic, owner));
#pragma omp parallel for schedule(static)
    for (std::size_t row = 0; row < 10; row++) {
        for (std::size_t i = row * (n / 10); i < (row + 1) * (n / 10); i++) {
            owner[i] = omp_get_thread_num();
        }
    }
    const ft::unique_array<double> rows(n, partition::blocked().in_rows_of(n / 10));
    check("pages go where a loop over few rows uses them", placed(rows, owner));
    std::array<int, 64> nodes{};
    const std::size_t count = ft_nodes(nodes.data(), nodes.size());
    if (count < 2) {
        std::printf("note   C++: one node: the tests of pages and threads could not fail\n");
        return;
    }
    check("a wrong partition is seen: 2 of 4 blocks lie elsewhere",
          ft::expect(blocked, partition::bind(nodes[0]), 0.97) == false);
    ft::first_touch_vector<double> serial(n, 1.0);
    check("place moves what lies elsewhere",
          ft::place(serial, partition::bind(nodes[1])) > 0 && node_of(&serial[n / 2]) == nodes[1]);
}

static void arguments_are_checked() {
    check("bounds that descend", throws<std::invalid_argument>([] {
              ft::unique_array<double>(n, partition::by_bounds({0, 9, 5}));
          }));
    check("weights that are negative", throws<std::invalid_argument>([] {
              ft::unique_array<double>(n, partition::weighted({1, -1}));
          }));
    check("rows without elements",
          throws<std::invalid_argument>([] { ft::unique_array<double>(n, partition::blocked().in_rows_of(0)); }));
    check("chunks larger than memory",
          throws<std::invalid_argument>([] { ft::unique_array<double>(n, partition::cyclic(SIZE_MAX / 2)); }));
    check("more elements than memory can have", throws<std::bad_array_new_length>([] {
              std::ignore = ft::first_touch_allocator<double>().allocate(SIZE_MAX / 4);
          }));
    check("more memory than there is", throws<std::bad_alloc>([] {
              std::ignore = ft::first_touch_allocator<double>().allocate(std::size_t{1} << 58);
          }));
    check(
        "more parts than a partition may have",
        throws<std::invalid_argument>([] { ft::unique_array<double>(n, partition::blocked(SIZE_MAX)); }) &&
            throws<std::invalid_argument>([] { ft::unique_array<double>(n, partition::blocked(ft::max_parts + 1)); }));
    check("bounds for no thread, or too many",
          throws<std::invalid_argument>([] { std::ignore = ft::static_bounds(10, 0); }) &&
              throws<std::invalid_argument>([] { std::ignore = ft::static_bounds(10, SIZE_MAX); }));
    std::vector<double> memory(n, 1.0);
    const auto descends = partition::by_bounds({0, 9, 5});
    check("place by bounds that descend", throws<std::invalid_argument>([&] { ft::place(memory, descends); }));
    check("localise, zero_parallel and verify too",
          throws<std::invalid_argument>([&] { ft::localise(memory, descends); }) &&
              throws<std::invalid_argument>([&] { ft::zero_parallel(memory, descends); }) &&
              throws<std::invalid_argument>([&] { std::ignore = ft::verify(memory, descends); }));
    check("expect by bounds that descend, or a share of 7",
          throws<std::invalid_argument>([&] { std::ignore = ft::expect(memory, descends); }) &&
              throws<std::invalid_argument>([&] { std::ignore = ft::expect(memory, partition::blocked(), 7); }));
    check("memory that is not mapped is an error of the system", throws<std::system_error>([] {
              ft::place(std::span<char>(reinterpret_cast<char *>(std::size_t{1} << 16), 1 << 16), partition::local());
          }));
    check("a thread beyond its team", throws<std::invalid_argument>([] { ft::join_team(4, 4); }));
    check("ranges of different lengths", throws<std::invalid_argument>([] {
              std::vector<int> a(3), b(4);
              ft::copy_parallel(a, b, partition::blocked());
          }));
}

// Whether the header takes the range for each of these.
template <class Range>
concept is_written = requires(Range range, const std::vector<double> source, partition how) {
    ft::localise(range, how);
    ft::zero_parallel(range, how);
    ft::copy_parallel(range, source, how);
};
template <class Range>
concept is_never_written = !requires(Range range, partition how) {
    ft::localise(range, how);
}
&&!requires(Range range, partition how) {
    ft::zero_parallel(range, how);
}
&&!requires(Range range, const std::vector<double> source, partition how) {
    ft::copy_parallel(range, source, how);
};
static_assert(is_written<std::vector<double> &> && is_written<std::span<double>> &&
              is_written<const std::span<double>> && is_written<const ft::unique_array<double> &> &&
              is_written<std::array<double, 3> &>);
static_assert(is_never_written<const std::vector<double> &> && is_never_written<std::span<const double>> &&
              is_never_written<const std::array<double, 3> &> &&
              is_never_written<const ft::first_touch_vector<double> &>);
static_assert(
    requires(const std::vector<double> &range, partition how) { ft::place(range, how); },
    "contents stay: pages of constants may move");

struct alignas(64) line {
    std::array<char, 64> bytes;
};
struct alignas(8192) two_pages {
    std::array<char, 8192> bytes;
};
template <class T> static bool aligned(std::size_t count) {
    const ft::first_touch_vector<T> vector(count, ft::first_touch_allocator<T>(partition::blocked()));
    return reinterpret_cast<std::uintptr_t>(vector.data()) % alignof(T) == 0;
}

// The header's calls come here first.
static struct {
    const void *pointer;
    std::size_t bytes;
    bool is_local;
    unsigned flags;
} last_placed;
extern "C" std::ptrdiff_t ft_place(void *pointer, std::size_t bytes, const ft_partition *how, unsigned flags) {
    last_placed = {pointer, bytes, how == nullptr || how->kind == FT_LOCAL, flags};
    static const auto original = reinterpret_cast<decltype(&ft_place)>(dlsym(RTLD_NEXT, "ft_place"));
    return original(pointer, bytes, how, flags);
}

static bool is_cleared(const void *pointer, std::size_t bytes) {
    return last_placed.pointer == pointer && last_placed.bytes == bytes && last_placed.is_local &&
           last_placed.flags == FT_KEEP_PRESENT;
}

static void policies_end_with_their_blocks() {
    const std::size_t bytes = 100 * sizeof(two_pages);
    const void *pointer;
    {
        const ft::unique_array<two_pages> array(100, partition::blocked());
        pointer = array.data();
        check("malloc's memory is placed", last_placed.pointer == pointer && !last_placed.is_local);
    }
    check("an array of over-aligned elements takes its policies back", is_cleared(pointer, bytes));
    {
        const auto vector = ft::make_blocked_vector<two_pages>(100);
        pointer = vector.data();
    }
    check("a vector of them too", is_cleared(pointer, bytes));
    ft::memory_resource resource(partition::blocked());
    void *block = resource.allocate(1 << 20, 1 << 16);
    pointer = block;
    resource.deallocate(block, 1 << 20, 1 << 16);
    check("a block of a resource too", is_cleared(pointer, 1 << 20));
}

static void arrays_move() {
    ft::unique_array<double> first(n, partition::blocked());
    const double *data = first.data();
    ft::unique_array<double> second = std::move(first);
    // NOLINTNEXTLINE(bugprone-use-after-move): what it promises
    check("a moved-from array is empty", first.size() == 0 && first.data() == nullptr && first.span().empty());
    first = std::move(second);
    // NOLINTNEXTLINE(bugprone-use-after-move)
    check("and so by assignment", second.size() == 0 && first.size() == n && first.data() == data);
}

static void containers_work() {
    auto grown = ft::make_blocked_vector<std::size_t>(0);
    for (std::size_t i = 0; i < 100'000; i++) {
        grown.push_back(i);
    }
    bool kept = true;
    for (std::size_t i = 0; i < grown.size(); i++) {
        kept &= grown[i] == i;
    }
    check("a vector that grows keeps its elements", kept);
    const std::size_t *data = grown.data();
    ft::first_touch_vector<std::size_t> moved;
    moved = std::move(grown);
    check("a moved vector keeps its memory", moved.data() == data && moved.size() == 100'000);
    ft::first_touch_vector<std::size_t> copy;
    copy = moved;
    check("a copy is equal", copy == moved);
    ft::first_touch_vector<std::string> texts(10'000);
    check("types with a constructor run it", texts[9'999].empty());
    texts.assign(20'000, "long enough to be allocated");
    check("and hold their values", texts[19'999] == "long enough to be allocated");
    std::map<int, int, std::less<>, ft::first_touch_allocator<std::pair<const int, int>>> map;
    std::list<int, ft::first_touch_allocator<int>> list;
    for (int i = 0; i < 1000; i++) {
        map[i] = i;
        list.push_back(i);
    }
    check("maps and lists", map.at(999) == 999 && std::accumulate(list.begin(), list.end(), 0) == 499'500);
    check("elements of a cache line, few", aligned<line>(3));
    check("elements of a cache line, many", aligned<line>(10'000));
    check("elements of two pages, one", aligned<two_pages>(1));
    check("elements of two pages, many", aligned<two_pages>(100));
    check("a small table of over-aligned elements",
          static_cast<std::size_t>(ft::replicated_table<line>(3).replicate()) == ft_nodes(nullptr, 0));
    ft::memory_resource resource(partition::blocked()), other;
    std::pmr::vector<double> vector(n, &resource);
    check("pmr: zeros", std::accumulate(vector.begin(), vector.end(), 0.0) == 0.0);
    check("pmr: one resource frees what another allocated",
          resource.is_equal(other) && !resource.is_equal(*std::pmr::new_delete_resource()));
    void *strict = resource.allocate(1000, 256);
    check("pmr: alignment", reinterpret_cast<std::uintptr_t>(strict) % 256 == 0);
    resource.deallocate(strict, 1000, 256);
}

static void contents() {
    std::vector<int> ones(n, 1);
    ft::zero_parallel(ones, partition::blocked());
    check("zero_parallel", std::accumulate(ones.begin(), ones.end(), 0) == 0);
    std::iota(ones.begin(), ones.end(), 0);
    ft::unique_array<int> copy(n, partition::blocked());
    ft::copy_parallel(copy, ones, partition::blocked());
    check("copy_parallel", std::equal(ones.begin(), ones.end(), copy.begin()));
    ft::place(ones, partition::interleaved());
    check("place keeps the contents", std::equal(ones.begin(), ones.end(), copy.begin()));
    const ft::first_touch_vector<int> fresh(n);
    ft::localise(copy, partition::blocked());
    check("localise keeps the contents", std::equal(ones.begin(), ones.end(), copy.begin()));
    for (const std::size_t count : {std::size_t{100}, n}) {
        ft::replicated_table<int> table(count);
        std::iota(table.first().begin(), table.first().end(), 0);
        const int copies = table.replicate();
        // Each thread on its own node, as far as there are nodes.
        bool same = true;
#pragma omp parallel reduction(&& : same)
        same = std::equal(table.first().begin(), table.first().end(), table.local().begin());
        check("every thread reads the table", same && static_cast<std::size_t>(copies) == ft_nodes(nullptr, 0));
    }
    ft::unique_array<int> untouched(n);
    check("nothing present is not known, not a success", !ft::expect(untouched, partition::blocked()).has_value());
    ft::localise(untouched, partition::blocked());
    check("localise makes all pages present", pages_present(untouched.data(), n * sizeof(int)) > 300);
}

static void teams_of_threads() {
    std::vector<std::size_t> ran(5);
    ft::run_team(5, [&](std::size_t thread) { ran[thread] = thread + 1; });
    check("run_team runs each thread", ran == std::vector<std::size_t>{1, 2, 3, 4, 5} && ft_team_size(0) == 5);
    check("what a thread throws arrives", throws<std::domain_error>([] {
              ft::run_team(3, [](std::size_t thread) {
                  if (thread == 1) {
                      throw std::domain_error("thread 1");
                  }
              });
          }));
}

int main() {
    containers_touch_nothing();
    memory_is_freed();
    bounds_are_openmp_s();
    pages_go_to_their_threads();
    arguments_are_checked();
    containers_work();
    policies_end_with_their_blocks();
    arrays_move();
    contents();
    teams_of_threads();
    return failures > 0;
}
