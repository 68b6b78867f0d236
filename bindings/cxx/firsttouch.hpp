// SPDX-License-Identifier: Apache-2.0 OR MIT
//
// firsttouch.hpp: libfirsttouch (firsttouch.h) for C++20. Header only; link libfirsttouch (-lfirsttouch).
//
// Partitions count elements, not bytes, and divide as OpenMP's static schedules divide a loop over the elements, exactly: the
// first n % threads threads get one element more. Where one iteration of the loop covers a row of a matrix, `in_rows_of` says so.
//
// Errors. Memory that the kernel does not place is given all the same: `last_doubt()` says what was not done. std::bad_alloc if
// there is no memory; std::invalid_argument if a partition is invalid; std::system_error if a query of the kernel fails, the
// range is not mapped or not writable, or the kernel does not place memory with FT_STRICT.
// Thread safety: as firsttouch.h. Functions may be called by several threads; an object may not be changed by two at once.
#ifndef FIRSTTOUCH_HPP
#define FIRSTTOUCH_HPP

#include <firsttouch.h>

#include <algorithm>
#include <cerrno>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <limits>
#include <memory>
#include <memory_resource>
#include <new>
#include <optional>
#include <ranges>
#include <span>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include <unistd.h>

#if __has_include(<mdspan>)
#include <mdspan>
#endif

namespace firsttouch {

// ---- Teams ----

// The calling thread is number `thread` of the `threads` threads of `team`, and runs on the node where it is now. Pin it first.
inline void join_team(std::size_t thread, std::size_t threads, int team = 0) {
    if (ft_team_join(team, thread, threads) != 0) {
        throw std::invalid_argument("firsttouch: cannot join the team: thread " + std::to_string(thread) + " of " +
                                    std::to_string(threads) + " in team " + std::to_string(team) +
                                    "; a thread is below the number of threads, and a team is 0 to 63");
    }
}

#ifdef _OPENMP
// All threads of a parallel region of default size join `team`. Call it outside of parallel regions, with OMP_PROC_BIND set.
inline void join_openmp_team(int team = 0) {
    ft_team_openmp(team);
}
#endif

// Runs `work(thread)` in `threads` new threads that have joined `team`, and waits for them. `pin(thread)` is called first in each
// thread and should bind it to its CPU. What a thread throws is thrown again here, after all threads have ended.
template <class Work, class Pin> void run_team(std::size_t threads, Work work, Pin pin, int team = 0) {
    std::vector<std::exception_ptr> thrown(threads);
    {
        std::vector<std::jthread> started;
        started.reserve(threads);
        for (std::size_t thread = 0; thread < threads; thread++) {
            started.emplace_back([&, thread] {
                try {
                    pin(thread);
                    join_team(thread, threads, team);
                    work(thread);
                } catch (...) {
                    thrown[thread] = std::current_exception();
                }
            });
        }
    }
    for (auto &exception : thrown) {
        if (exception) {
            std::rethrow_exception(exception);
        }
    }
}

// The same, in threads that stay where the scheduler, or `firsttouch run --pin`, puts them.
template <class Work> void run_team(std::size_t threads, Work work) {
    run_team(
        threads, std::move(work), [](std::size_t) {}, 0);
}

// ---- Partitions ----

// The most parts that a partition may have.
inline constexpr std::size_t max_parts = std::size_t{1} << 20;

// The borders of `schedule(static)` for a loop of `count` iterations: thread i works on [result[i], result[i + 1]).
// std::invalid_argument unless `threads` is 1 to max_parts.
inline std::vector<std::size_t> static_bounds(std::size_t count, std::size_t threads) {
    if (threads == 0 || threads > max_parts) {
        throw std::invalid_argument("firsttouch: cannot divide by " + std::to_string(threads) +
                                    " threads; give 1 to 2^20");
    }
    std::vector<std::size_t> bounds(threads + 1);
    for (std::size_t i = 0; i < threads; i++) {
        bounds[i + 1] = bounds[i] + count / threads + (i < count % threads ? 1 : 0);
    }
    return bounds;
}

// A partition in bytes, as the C functions take it, with the bounds and weights that it points to.
class bytes_partition {
  public:
    bytes_partition(ft_partition value, std::vector<std::size_t> bounds,
                    std::shared_ptr<const std::vector<double>> weights)
        : m_value(value), m_bounds(std::move(bounds)), m_weights(std::move(weights)) {}
    const ft_partition *get() const noexcept {
        m_value.bounds = m_bounds.empty() ? nullptr : m_bounds.data();
        m_value.weights = m_weights ? m_weights->data() : nullptr;
        return &m_value;
    }

  private:
    mutable ft_partition m_value;
    std::vector<std::size_t> m_bounds;
    std::shared_ptr<const std::vector<double>> m_weights;
};

// How the elements of an array are divided. Cheap to copy. The default is first touch, as for memory from malloc.
class partition {
  public:
    partition() = default;

    static partition local() {
        return {};
    }
    // Equal contiguous parts, as schedule(static). 0 threads: as many as the team has.
    static partition blocked(std::size_t threads = 0) {
        return of(FT_BLOCKED, FT_THREADS, threads);
    }
    // Chunks of `chunk` elements, dealt to the threads in turn, as schedule(static, chunk).
    static partition cyclic(std::size_t chunk, std::size_t threads = 0) {
        partition result = of(FT_CYCLIC, FT_THREADS, threads);
        result.m_c.chunk = chunk;
        return result;
    }
    // Part i is [bounds[i], bounds[i + 1]), in elements.
    static partition by_bounds(std::vector<std::size_t> bounds) {
        partition result = of(FT_BY_BOUNDS, FT_THREADS, bounds.empty() ? 0 : bounds.size() - 1);
        result.m_bounds = std::make_shared<const std::vector<std::size_t>>(std::move(bounds));
        return result;
    }
    // Contiguous parts in proportion to the weights, for the nodes of this process in ascending order.
    static partition weighted(std::vector<double> weights) {
        partition result = of(FT_WEIGHTED, FT_NODES, weights.size());
        result.m_weights = std::make_shared<const std::vector<double>>(std::move(weights));
        return result;
    }
    static partition interleaved() {
        return of(FT_INTERLEAVED, FT_NODES, 0);
    }
    static partition bind(int node) {
        partition result = of(FT_BIND, FT_NODES, 0);
        result.m_c.node = node;
        return result;
    }

    // The same with one row of `elements` elements as the unit of parts, chunks and bounds: for a loop over the rows of a matrix.
    partition in_rows_of(std::size_t elements) const {
        partition result = *this;
        result.m_row = elements;
        return result;
    }
    // The same with its parts numbered by the nodes of this process, in ascending order.
    partition over_nodes() const {
        partition result = *this;
        result.m_c.unit = FT_NODES;
        return result;
    }
    // The same for the threads of another team than the default one.
    partition for_team(int team) const {
        partition result = *this;
        result.m_c.unit = FT_THREADS;
        result.m_c.team = team;
        return result;
    }

    // The partition of `count` elements of `element_bytes` bytes. Throws std::invalid_argument if a row has no elements.
    bytes_partition in_bytes(std::size_t count, std::size_t element_bytes) const {
        if (m_row == 0) {
            throw std::invalid_argument("firsttouch: a row of a partition has no elements; use 1 or more");
        }
        ft_partition c = m_c;
        const std::size_t unit_bytes = scaled(m_row, element_bytes);
        std::vector<std::size_t> bounds;
        if (c.kind == FT_BLOCKED) {
            if (c.parts == 0) {
                c.parts = c.unit == FT_NODES ? ft_nodes(nullptr, 0) : ft_team_size(c.team);
            }
            // By bounds, because equal parts in bytes can differ from equal parts in rows by many pages.
            bounds = static_bounds(count / m_row + (count % m_row != 0 ? 1 : 0), c.parts);
            c.kind = FT_BY_BOUNDS;
        } else if (m_bounds) {
            bounds = *m_bounds;
        }
        for (std::size_t &bound : bounds) {
            bound = scaled(bound, unit_bytes);
        }
        c.chunk = scaled(c.chunk, unit_bytes);
        return {c, std::move(bounds), m_weights};
    }

  private:
    static partition of(ft_kind kind, ft_unit unit, std::size_t parts) {
        partition result;
        result.m_c.kind = kind;
        result.m_c.unit = unit;
        result.m_c.parts = parts;
        return result;
    }
    static std::size_t scaled(std::size_t units, std::size_t unit_bytes) {
        if (unit_bytes != 0 && units > std::numeric_limits<std::size_t>::max() / unit_bytes) {
            throw std::invalid_argument("firsttouch: a bound or chunk of " + std::to_string(units) + " units of " +
                                        std::to_string(unit_bytes) + " bytes is larger than memory can be");
        }
        return units * unit_bytes;
    }

    ft_partition m_c = ft_local();
    std::size_t m_row = 1;
    std::shared_ptr<const std::vector<std::size_t>> m_bounds;
    std::shared_ptr<const std::vector<double>> m_weights;
};

// ---- Doubts ----

// What the last call of this thread that had a doubt could not do or assumed, and what to do about it.
inline std::optional<std::string> last_doubt() {
    const char *doubt = ft_last_doubt();
    return doubt != nullptr ? std::optional<std::string>(doubt) : std::nullopt;
}
inline void clear_doubt() {
    ft_clear_doubt();
}

// ---- Allocation ----

namespace detail {

inline std::size_t page_bytes() {
    static const std::size_t bytes = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    return bytes;
}

[[noreturn]] inline void throw_allocation_error(int error) {
    if (error == EINVAL) {
        throw std::invalid_argument("firsttouch: cannot allocate memory by an invalid partition: parts (at most 2^20), "
                                    "chunks and weights are positive, and "
                                    "bounds ascend");
    }
    if (error != ENOMEM) {
        throw std::system_error(error, std::generic_category(), "firsttouch: cannot place the memory (FT_STRICT)");
    }
    throw std::bad_alloc();
}

inline void *allocate(std::size_t bytes, std::size_t alignment, const ft_partition *partition, unsigned flags) {
    void *pointer = nullptr;
    const bool is_mapped = bytes >= FT_SMALL_BYTES || (partition != nullptr && partition->kind == FT_REPLICATED);
    if (alignment <= (is_mapped ? page_bytes() : std::size_t{16})) {
        pointer = ft_alloc(bytes, partition, flags);
    } else {
        // ft_free passes memory that is not the library's own to free().
        const std::size_t whole = bytes + (alignment - bytes % alignment) % alignment;
        pointer = whole >= bytes ? std::aligned_alloc(alignment, whole) : nullptr;
        errno = pointer == nullptr ? ENOMEM : 0;
        if (pointer != nullptr && bytes >= FT_SMALL_BYTES && ft_place(pointer, bytes, partition, flags) < 0) {
            const int error = errno;
            std::free(pointer);
            pointer = nullptr;
            errno = error;
        }
    }
    if (pointer == nullptr) {
        throw_allocation_error(errno);
    }
    return pointer;
}

// malloc gives the addresses of large blocks with more than a page's alignment to others, who must not get their policies.
inline void deallocate(void *pointer, std::size_t bytes, std::size_t alignment) noexcept {
    if (alignment > page_bytes() && bytes >= FT_SMALL_BYTES) {
        ft_place(pointer, bytes, nullptr, FT_KEEP_PRESENT);
    }
    ft_free(pointer);
}

template <class T> T *allocate_elements(std::size_t count, const partition &partition, unsigned flags) {
    if (count > std::numeric_limits<std::ptrdiff_t>::max() / sizeof(T)) {
        throw std::bad_array_new_length();
    }
    const std::size_t bytes = count * sizeof(T);
    if (bytes < FT_SMALL_BYTES) {
        return static_cast<T *>(allocate(bytes, alignof(T), nullptr, flags));
    }
    const bytes_partition divided = partition.in_bytes(count, sizeof(T));
    return static_cast<T *>(allocate(bytes, alignof(T), divided.get(), flags));
}

} // namespace detail

// Whether elements are left as they are when a container makes them without a value. std::complex is included although its
// constructor writes zeros: that would touch every page in one thread. Specialise it for types of your own that are implicit-lifetime
// types and whose values the program sets before it reads them.
template <class T> inline constexpr bool leave_uninitialised = std::is_trivially_default_constructible_v<T>;
template <class T> inline constexpr bool leave_uninitialised<std::complex<T>> = true;

// An allocator for standard containers. std::vector<double, first_touch_allocator<double>>(n) touches no page: the elements have
// no values until the program sets them, in parallel. Without a partition, the thread that sets an element decides its page's node;
// with a partition, the kernel knows the node of each page before. Blocks below FT_SMALL_BYTES come from malloc.
//
// The partition divides each block that the container allocates, so reserve or size containers once: while a vector grows, its
// capacity is divided, not its size, and elements are copied by one thread.
template <class T> class first_touch_allocator {
  public:
    using value_type = T;
    using size_type = std::size_t;
    using difference_type = std::ptrdiff_t;
    // Any instance frees what another one allocated.
    using is_always_equal = std::true_type;
    // The partition goes with the memory when it is moved or swapped. A copy keeps the target's partition.
    using propagate_on_container_move_assignment = std::true_type;
    using propagate_on_container_swap = std::true_type;
    using propagate_on_container_copy_assignment = std::false_type;

    first_touch_allocator() = default;
    explicit first_touch_allocator(const partition &partition, unsigned flags = 0)
        : m_partition(std::make_shared<const class partition>(partition)), m_flags(flags) {}
    template <class U>
    first_touch_allocator(const first_touch_allocator<U> &other) noexcept
        : m_partition(other.shared_partition()), m_flags(other.flags()) {}

    [[nodiscard]] T *allocate(std::size_t count) {
        return detail::allocate_elements<T>(count, m_partition ? *m_partition : partition(), m_flags);
    }
    void deallocate(T *pointer, std::size_t count) noexcept {
        detail::deallocate(pointer, count * sizeof(T), alignof(T));
    }

    template <class U> void construct(U *pointer) noexcept(std::is_nothrow_default_constructible_v<U>) {
        if constexpr (!leave_uninitialised<U>) {
            ::new (static_cast<void *>(pointer)) U;
        }
    }
    template <class U, class First, class... Rest> void construct(U *pointer, First &&first, Rest &&...rest) {
        std::construct_at(pointer, std::forward<First>(first), std::forward<Rest>(rest)...);
    }

    const std::shared_ptr<const partition> &shared_partition() const noexcept {
        return m_partition;
    }
    unsigned flags() const noexcept {
        return m_flags;
    }

    template <class U>
    friend bool operator==(const first_touch_allocator &, const first_touch_allocator<U> &) noexcept {
        return true;
    }

  private:
    std::shared_ptr<const partition> m_partition;
    unsigned m_flags = 0;
};

template <class T> using first_touch_vector = std::vector<T, first_touch_allocator<T>>;

// A vector of n elements without values, divided by `how`.
template <class T>
first_touch_vector<T> make_blocked_vector(std::size_t n, const partition &how = partition::blocked(),
                                          unsigned flags = 0) {
    return first_touch_vector<T>(n, first_touch_allocator<T>(how, flags));
}

// Memory for the containers of std::pmr. The partition counts bytes here, because a resource does not know its elements. Note that
// std::pmr::vector<T>(n) sets its elements to zero in the calling thread: the pages are placed all the same.
class memory_resource : public std::pmr::memory_resource {
  public:
    explicit memory_resource(partition partition = {}, unsigned flags = 0)
        : m_partition(std::move(partition)), m_flags(flags) {}

  private:
    void *do_allocate(std::size_t bytes, std::size_t alignment) override {
        if (bytes < FT_SMALL_BYTES) {
            return detail::allocate(bytes, alignment, nullptr, m_flags);
        }
        const bytes_partition divided = m_partition.in_bytes(bytes, 1);
        return detail::allocate(bytes, alignment, divided.get(), m_flags);
    }
    void do_deallocate(void *pointer, std::size_t bytes, std::size_t alignment) override {
        detail::deallocate(pointer, bytes, alignment);
    }
    bool do_is_equal(const std::pmr::memory_resource &other) const noexcept override {
        return dynamic_cast<const memory_resource *>(&other) != nullptr;
    }

    partition m_partition;
    unsigned m_flags;
};

// An array of fixed size that frees its memory: the lightest container, and the base of views (mdspan, Kokkos::View).
// Its elements have no values until the program sets them.
template <class T> class unique_array {
    static_assert(leave_uninitialised<T> && std::is_trivially_destructible_v<T>,
                  "unique_array does not run constructors; use std::vector with first_touch_allocator");

  public:
    unique_array() = default;
    explicit unique_array(std::size_t count, const partition &how = {}, unsigned flags = 0)
        : m_data(detail::allocate_elements<T>(count, how, flags), release{count}) {}
    // The array that is moved from is empty.
    unique_array(unique_array &&other) noexcept
        : m_data(other.m_data.release(), std::exchange(other.m_data.get_deleter(), release{})) {}
    unique_array &operator=(unique_array &&other) noexcept {
        unique_array taken(std::move(other));
        m_data.swap(taken.m_data);
        return *this;
    }

    T *data() const noexcept {
        return m_data.get();
    }
    std::size_t size() const noexcept {
        return m_data.get_deleter().count;
    }
    T *begin() const noexcept {
        return data();
    }
    T *end() const noexcept {
        return data() + size();
    }
    T &operator[](std::size_t i) const noexcept {
        return data()[i];
    }
    std::span<T> span() const noexcept {
        return {data(), size()};
    }
#ifdef __cpp_lib_mdspan
    // A view with the given extents. std::invalid_argument if they need more elements than there are.
    template <class... Extents> auto mdspan(Extents... extents) const {
        std::mdspan view(data(), extents...);
        // The span's size can overflow; a quotient cannot.
        std::size_t room = size();
        bool is_empty = false;
        for (std::size_t axis = 0; axis < view.rank(); axis++) {
            const auto extent = static_cast<std::size_t>(view.extent(axis));
            is_empty = is_empty || extent == 0;
            room /= std::max(extent, std::size_t{1});
        }
        if ((room == 0 && !is_empty) || view.mapping().required_span_size() > size()) {
            throw std::invalid_argument("firsttouch: the extents of the view need more than the array's " +
                                        std::to_string(size()) + " elements");
        }
        return view;
    }
#endif

  private:
    struct release {
        std::size_t count = 0;
        void operator()(T *pointer) const noexcept {
            detail::deallocate(pointer, count * sizeof(T), alignof(T));
        }
    };
    std::unique_ptr<T[], release> m_data;
};

// A table that all threads read: one copy a node. Fill `first()`, call `replicate()`, and read through `local()`, which each thread
// asks for once, after it is pinned.
template <class T> class replicated_table {
    static_assert(std::is_trivially_copyable_v<T>, "copies are made byte by byte");

  public:
    explicit replicated_table(std::size_t count) : m_size(count) {
        if (count > std::numeric_limits<std::ptrdiff_t>::max() / sizeof(T)) {
            throw std::bad_array_new_length();
        }
        const ft_partition how = ft_replicated();
        m_data.reset(static_cast<T *>(detail::allocate(count * sizeof(T), alignof(T), &how, 0)));
    }
    std::span<T> first() const noexcept {
        return {m_data.get(), m_size};
    }
    // Returns the number of copies. Nobody may read meanwhile.
    int replicate() {
        if (m_size == 0) {
            return 1;
        }
        const int copies = ft_replicate(m_data.get());
        if (copies < 0) {
            throw std::system_error(errno, std::generic_category(), "firsttouch: cannot copy the table to the nodes");
        }
        return copies;
    }
    std::span<const T> local() const noexcept {
        return {static_cast<const T *>(ft_local_copy(m_data.get())), m_size};
    }

  private:
    struct release {
        void operator()(T *pointer) const noexcept {
            ft_free(pointer);
        }
    };
    std::unique_ptr<T, release> m_data;
    std::size_t m_size;
};

// ---- Memory that exists: any contiguous range (vector, array, span, unique_array) ----

template <class Range>
concept memory_range = std::ranges::contiguous_range<Range> && std::ranges::sized_range<Range>;
// Whose elements may be written: not of a const vector.
template <class Range>
concept writable_range =
    memory_range<Range> && !std::is_const_v<std::remove_reference_t<std::ranges::range_reference_t<Range>>>;

namespace detail {

template <memory_range Range> struct extent_of {
    const void *pointer;
    std::size_t bytes;
    bytes_partition divided;

    extent_of(Range &range, const partition &how)
        : pointer(std::ranges::data(range)),
          bytes(std::ranges::size(range) * sizeof(std::ranges::range_value_t<Range>)),
          divided(how.in_bytes(std::ranges::size(range), sizeof(std::ranges::range_value_t<Range>))) {}
    void *writable() const {
        return const_cast<void *>(pointer);
    }
};

inline void throw_if(bool failed, const char *action) {
    if (failed && errno == EINVAL) {
        throw std::invalid_argument(std::string(action) +
                                    ": the partition or the flags are invalid: parts (at most 2^20), chunks and "
                                    "weights are positive, and bounds ascend");
    }
    if (failed) {
        throw std::system_error(errno, std::generic_category(), action);
    }
}

} // namespace detail

// Places the range's whole pages and moves those that are elsewhere. Returns how many were moved. Flags: FT_KEEP_PRESENT, FT_STRICT.
// The policy stays with the addresses: place memory that malloc gave by partition::local() before it is freed.
template <memory_range Range> std::ptrdiff_t place(Range &&range, const partition &how, unsigned flags = 0) {
    const detail::extent_of<std::remove_reference_t<Range>> extent(range, how);
    const std::ptrdiff_t moved = ft_place(extent.writable(), extent.bytes, extent.divided.get(), flags);
    detail::throw_if(moved < 0, "firsttouch: cannot place the memory");
    return moved;
}

// Places the range and lets the kernel populate its pages, before one thread reads a file into it. Contents stay.
template <writable_range Range> void localise(Range &&range, const partition &how) {
    const detail::extent_of<std::remove_reference_t<Range>> extent(range, how);
    detail::throw_if(ft_localise(extent.writable(), extent.bytes, extent.divided.get()) != 0,
                     "firsttouch: cannot localise the memory");
}

// Sets the range to zero bytes by threads of the library's own, each on the node of its part.
template <writable_range Range> void zero_parallel(Range &&range, const partition &how) {
    static_assert(std::is_trivially_copyable_v<std::ranges::range_value_t<Range>>,
                  "zero bytes must be a value of the element's type");
    const detail::extent_of<std::remove_reference_t<Range>> extent(range, how);
    detail::throw_if(ft_zero_parallel(extent.writable(), extent.bytes, extent.divided.get()) != 0,
                     "firsttouch: cannot set the memory to zero");
}

// Copies `from` to `to`, which has as many elements and does not overlap it. `how` divides `to`.
template <writable_range To, memory_range From> void copy_parallel(To &&to, const From &from, const partition &how) {
    using element = std::ranges::range_value_t<To>;
    static_assert(std::is_same_v<element, std::ranges::range_value_t<const From>> &&
                      std::is_trivially_copyable_v<element>,
                  "both ranges have the same type of elements, which are copied byte by byte");
    if (std::ranges::size(to) != std::ranges::size(from)) {
        throw std::invalid_argument("firsttouch: cannot copy " + std::to_string(std::ranges::size(from)) +
                                    " elements to a range of " + std::to_string(std::ranges::size(to)));
    }
    const detail::extent_of<std::remove_reference_t<To>> extent(to, how);
    detail::throw_if(ft_copy_parallel(extent.writable(), std::ranges::data(from), extent.bytes, extent.divided.get()) !=
                         0,
                     "firsttouch: cannot copy the memory");
}

// ---- Verification ----

// Where the pages of the range are, compared with where the partition wants them. `share` is NaN if no page is present.
template <memory_range Range> ft_verdict verify(const Range &range, const partition &how) {
    const detail::extent_of<const Range> extent(range, how);
    ft_verdict verdict{};
    detail::throw_if(ft_verify(extent.pointer, extent.bytes, extent.divided.get(), &verdict) != 0,
                     "firsttouch: cannot ask the kernel where the memory is");
    return verdict;
}

// The same in words.
template <memory_range Range> std::string report(const Range &range, const partition &how, const char *name = nullptr) {
    const detail::extent_of<const Range> extent(range, how);
    std::string text(ft_report(nullptr, 0, name, extent.pointer, extent.bytes, extent.divided.get()), '\0');
    // One byte more for the end that snprintf writes; the text may have changed since it was measured.
    const std::size_t length =
        ft_report(text.data(), text.size() + 1, name, extent.pointer, extent.bytes, extent.divided.get());
    text.resize(std::min(length, text.size()));
    return text;
}

// For tests: whether at least `share` of the present pages are on target. Empty if that is not known, which is never a success;
// `last_doubt()` says why. std::invalid_argument if the partition is invalid, or the share is not between 0 and 1.
template <memory_range Range>
std::optional<bool> expect(const Range &range, const partition &how, double share = 0.97) {
    const detail::extent_of<const Range> extent(range, how);
    clear_doubt();
    const int answer = ft_expect(extent.pointer, extent.bytes, extent.divided.get(), share);
    detail::throw_if(answer < 0 && errno == EINVAL, "firsttouch: cannot judge where the memory is");
    return answer < 0 ? std::nullopt : std::optional<bool>(answer == 1);
}

} // namespace firsttouch

#endif
