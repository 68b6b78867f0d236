/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * libfirsttouch: places memory on NUMA nodes in the source of a program, and verifies where it is.
 *
 * Terms. A *node* is a memory domain as the kernel numbers it. A *partition* divides the bytes of a block into *parts* and
 * gives each part an owner: a thread of a team, or a node. A *team* is the threads that work on the data together, numbered
 * 0 to n - 1; the library learns on which node each of them runs by `ft_team_join`. A page with bytes of several parts goes to the
 * node that owns most of its bytes (of equal shares, the first in the block).
 *
 * Promises. No function aborts, writes to a stream, or touches the memory that it places, unless its comment says so. If the
 * kernel refuses a policy (containers without CAP_SYS_NICE often forbid mbind), if the machine has one node, or if a node is
 * absent, the caller gets its memory all the same, and `ft_last_doubt` says what was not done. All functions are thread-safe
 * and may be called in a forked child; none is async-signal-safe. Sizes and offsets are bytes.
 *
 * Costs. Where the process may use one node only, no policy is set and no mapping is split. Elsewhere each run of neighbouring parts
 * on one node costs one call of mbind and one mapping, at most 256 a block: partitions that change the node more often, or within
 * pages, become pages in turn over the nodes of their owners, and ft_last_doubt says so.
 *
 * The process. The nodes and CPUs that this process may use are read once, at the first call that needs them: the nodes of its cpuset
 * that have memory, without those that the calling thread's memory policy excludes (numactl --membind), and the CPUs of all its threads.
 * With OMP_PROC_BIND or OMP_PLACES set, the OpenMP runtime may have pinned them: then it is asked for the CPUs of its places, and if that
 * cannot be done, they are those of the cpuset, which ft_last_doubt says. A part whose thread runs on a node without memory belongs to
 * the nearest node with memory.
 */
#ifndef FIRSTTOUCH_H
#define FIRSTTOUCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#ifdef _OPENMP
#include <omp.h>
#endif

#ifdef __cplusplus
extern "C" {
#endif

#define FT_VERSION_MAJOR 1
#define FT_VERSION_MINOR 0
#define FT_VERSION_PATCH 0

#if defined(__GNUC__)
#define FT_API __attribute__((visibility("default")))
#else
#define FT_API
#endif

/* What a partition looks like. The values are part of the ABI. */
enum ft_kind {
    FT_LOCAL = 0,     /* first touch: each page goes to the node of the thread that touches it (the kernel's default) */
    FT_BLOCKED = 1,   /* `parts` equal contiguous parts, as `schedule(static)` divides a loop */
    FT_CYCLIC = 2,    /* chunks of `chunk` bytes, dealt to `parts` owners in turn, as `schedule(static, n)` */
    FT_BY_BOUNDS = 3, /* part i is [bounds[i], bounds[i + 1]) */
    FT_INTERLEAVED = 4, /* pages in turn over all allowed nodes */
    FT_WEIGHTED = 5,    /* `parts` contiguous parts, sized by weights[i] */
    FT_REPLICATED = 6,  /* a copy a node, for tables that are only read: see ft_replicate */
    FT_BIND = 7         /* all of it on node `node` */
};

/* What the parts of a partition are numbered by. The values are part of the ABI. */
enum ft_unit {
    FT_THREADS = 0, /* part i belongs to thread i of the team */
    FT_NODES =
        1 /* part i belongs to the i-th node that this process may use, in ascending order, modulo their number */
};

/* A partition. Make one by the functions below; zero is FT_LOCAL. The arrays are borrowed: they need to live until the
 * function that takes the partition returns. */
typedef struct ft_partition {
    int32_t kind; /* enum ft_kind */
    int32_t unit; /* enum ft_unit */
    size_t parts; /* FT_BLOCKED, FT_CYCLIC, FT_BY_BOUNDS, FT_WEIGHTED: the number of parts or owners, 1 to 2^20 */
    size_t chunk; /* FT_CYCLIC: bytes of one chunk, at least 1 */
    const size_t *bounds;  /* FT_BY_BOUNDS: parts + 1 offsets, ascending, in bytes */
    const double *weights; /* FT_WEIGHTED: parts weights, finite and not negative, one at least positive */
    int32_t node;          /* FT_BIND: the kernel's number of the node */
    int32_t team;          /* FT_THREADS: the team (see ft_team_join); 0 is the default team */
} ft_partition;

/* First touch decides, as for memory from malloc: the value zero of ft_partition. */
static inline ft_partition ft_local(void) {
    ft_partition p = {FT_LOCAL, FT_THREADS, 0, 0, NULL, NULL, 0, 0};
    return p;
}

/* `threads` equal contiguous parts, part i for thread i of the default team: what `schedule(static)` of `threads` threads gives
 * a loop over the elements. Part i begins at byte i * bytes / threads, rounded down: OpenMP's border is at most threads / 4 elements
 * away from that. 0 threads: as many as the team has. */
static inline ft_partition ft_blocked(size_t threads) {
    ft_partition p = {FT_BLOCKED, FT_THREADS, threads, 0, NULL, NULL, 0, 0};
    return p;
}

/* Chunks of `chunk_bytes`, dealt to `threads` threads of the default team in turn: what `schedule(static, c)` gives, with
 * chunk_bytes = c * size of an element. Chunks below a page share it. Small chunks of a large block are too many mappings (see
 * Costs): there ft_local() and a first touch by the owners, ft_zero_parallel, or ft_localise place each page. 0 threads: as many as
 * the team has. */
static inline ft_partition ft_cyclic(size_t threads, size_t chunk_bytes) {
    ft_partition p = {FT_CYCLIC, FT_THREADS, threads, chunk_bytes, NULL, NULL, 0, 0};
    return p;
}

/* Part i is [bounds[i], bounds[i + 1]), for thread i of the default team; `bounds` has parts + 1 ascending offsets in bytes.
 * Bytes before the first and behind the last bound belong to the first and the last part. */
static inline ft_partition ft_by_bounds(const size_t *bounds, size_t parts) {
    ft_partition p = {FT_BY_BOUNDS, FT_THREADS, parts, 0, bounds, NULL, 0, 0};
    return p;
}

/* `parts` contiguous parts, sized in proportion to weights[0] to weights[parts - 1], for the nodes of this process in ascending
 * order (thread i of a team: set `unit` to FT_THREADS). */
static inline ft_partition ft_weighted(const double *weights, size_t parts) {
    ft_partition p = {FT_WEIGHTED, FT_NODES, parts, 0, NULL, weights, 0, 0};
    return p;
}

/* Pages in turn over all nodes that this process may use. */
static inline ft_partition ft_interleaved(void) {
    ft_partition p = {FT_INTERLEAVED, FT_NODES, 0, 0, NULL, NULL, 0, 0};
    return p;
}

/* A copy on each node that this process may use: fill the memory, call ft_replicate, then read through ft_local_copy. */
static inline ft_partition ft_replicated(void) {
    ft_partition p = {FT_REPLICATED, FT_NODES, 0, 0, NULL, NULL, 0, 0};
    return p;
}

/* All of it on node `node`; preferred, not bound, so that a full node does not kill the program. */
static inline ft_partition ft_bind(int node) {
    ft_partition p = {FT_BIND, FT_NODES, 0, 0, NULL, NULL, node, 0};
    return p;
}

/* The same partition with its parts numbered by nodes instead of threads. */
static inline ft_partition ft_over_nodes(ft_partition p) {
    p.unit = FT_NODES;
    return p;
}

/* The same partition for the threads of another team than the default one. */
static inline ft_partition ft_for_team(ft_partition p, int team) {
    p.unit = FT_THREADS;
    p.team = team;
    return p;
}

/* Flags, to be combined with |.
 *
 * With FT_STRICT, NULL or -1 and errno also report that
 *   - the kernel refused a policy, a move, or the huge pages of FT_HUGE_PAGES: its errno (EPERM, ENOSYS, ENOMEM, ...)
 *   - a node has no memory that this process may use: ENODEV
 *   - the partition needs more than 256 pieces, so that pages that come go in turn over the nodes: E2BIG
 *   - ft_place: pages stayed on another node: EIO
 * ft_place has done what it could then. These stay doubts, and no failures: the process may use one node only; a team was not joined,
 * or has another number of threads than the partition has parts; chunks within pages share the pages. Blocks below FT_SMALL_BYTES come
 * from malloc all the same. */
enum {
    FT_HUGE_PAGES =
        1, /* ask for transparent huge pages where a whole one lies inside one part; borders keep small pages. Ignored where
              pages of several nodes are in turn, unless the block has 32 huge pages a node */
    FT_SMALL_PAGES = 2,  /* no transparent huge pages at all */
    FT_KEEP_PRESENT = 4, /* ft_place: leave pages that are present where they are */
    FT_STRICT = 8        /* report failures of placement by the return value too: see above */
};

/* ---- Teams ---- */

/* Tells the library that the calling thread is number `thread` (from 0) of the `threads` threads of team `team` (0 to 63; 0 is
 * the default team), and runs on the node where it is now: call it in each thread of the team, once it is pinned, before memory
 * is partitioned by threads. A later call replaces what an earlier one said. Returns 0, or -1 with errno = EINVAL
 * or ENOMEM.
 *
 * A team that nobody has joined, and threads that have not, are assumed to be spread over the CPUs that this process may use, in the
 * order of their nodes (OMP_PROC_BIND=spread, or close with a thread on each CPU); `ft_last_doubt` says so. If a partition has more
 * parts than the team has threads, part i belongs to thread i modulo the number of threads. */
FT_API int ft_team_join(int team, size_t thread, size_t threads);

/* The number of threads of the team: as ft_team_join said, or the number of CPUs that this process may use. 0 if `team` is invalid. */
FT_API size_t ft_team_size(int team);

/* The node on which thread `thread` of the team runs: as ft_team_join found, or as assumed. -1 with errno = EINVAL if `team` is
 * invalid. */
FT_API int ft_team_node(int team, size_t thread);

#ifdef _OPENMP
/* Joins all threads of an OpenMP parallel region of default size to `team`. Call it outside of parallel regions, with
 * OMP_PROC_BIND set: threads that move do not stay at their memory. */
static inline void ft_team_openmp(int team) {
#pragma omp parallel
    ft_team_join(team, (size_t)omp_get_thread_num(), (size_t)omp_get_num_threads());
}
#endif

/* ---- Memory ---- */

/* Allocates `bytes` bytes whose pages will lie by the partition. The memory reads as zero if it is at least FT_SMALL_BYTES large;
 * smaller blocks come from malloc, as they are, because a page is the smallest unit of placement. Replicated blocks of any size are
 * mapped. Each mapped block is given back to the kernel when it is freed: a program that allocates the same size again and again
 * should keep its blocks.
 *   partition  NULL is ft_local()
 *   flags      FT_HUGE_PAGES or FT_SMALL_PAGES, FT_STRICT
 * Returns memory aligned to 16 bytes (to a page from FT_SMALL_BYTES on), or NULL with errno = ENOMEM, or EINVAL if the partition
 * is invalid. Nothing is touched. 0 bytes: as malloc(0). Free it by ft_free. */
FT_API void *ft_alloc(size_t bytes, const ft_partition *partition, unsigned flags);

#define FT_SMALL_BYTES ((size_t)64 * 1024)

/* Frees what ft_alloc or ft_realloc returned. NULL is ignored. Any other pointer is passed to free: a second call with the
 * same pointer, and pointers that neither the library nor malloc gave, are undefined behaviour, as for free. */
FT_API void ft_free(void *pointer);

/* Changes the size, keeps the contents, and divides the new size by the partition of the block (that of ft_alloc; bounds stay where
 * they are). Pages that move keep their contents; bytes behind the old size are undefined. A block from malloc stays with malloc
 * whatever its new size, because it has no partition; ft_realloc(NULL, n) is ft_alloc(n, NULL, 0). NULL with errno as ft_alloc, and
 * then the old block stays. 0 bytes, and replicated blocks, are EINVAL. Where policies have split the mapping, the old and the new
 * block exist together for a while. */
FT_API void *ft_realloc(void *pointer, size_t bytes);

/* The bytes that ft_alloc or ft_realloc gave the block; 0 if `pointer` came from elsewhere, or from malloc. */
FT_API size_t ft_size(const void *pointer);

/* Places memory that exists, from any allocator: sets the policy of its whole pages, and moves pages that are present and
 * elsewhere, unless flags has FT_KEEP_PRESENT. Pages that the range shares with other data at its two ends are left alone.
 * The policy stays with the addresses: place memory from malloc by ft_local() before it is freed, or malloc gives it to others with
 * the policy. Huge pages
 * that several parts share are split. ft_local() takes policies away, and moves nothing.
 * FT_REPLICATED is EINVAL. Returns the number of pages that were moved, or -1 with errno = EINVAL, ENOMEM, or EFAULT (a whole page
 * of the range is not mapped), and what FT_STRICT says. */
FT_API ptrdiff_t ft_place(void *pointer, size_t bytes, const ft_partition *partition, unsigned flags);

/* Prepares memory for I/O that one thread will do: places it as ft_place, and lets the kernel populate the pages on their nodes
 * (MADV_POPULATE_WRITE, in the calling thread; contents stay). Afterwards read() does not decide where the pages are. Each page gets
 * its node even if the partition needs too many policies. Returns 0, or -1 with errno = EINVAL, ENOMEM, EFAULT (a page of the
 * range is not mapped, or lies behind the end of its file), or EACCES (it is not writable). Kernels before Linux 5.14 cannot populate:
 * there the library writes each page without changing it, and behind the end of a file that is a SIGBUS. A placement that the kernel refuses is a doubt, and no error. */
FT_API int ft_localise(void *pointer, size_t bytes, const ft_partition *partition);

/* Sets the memory to zero, or copies it, by threads of the library's own, each pinned to the node of its part: for programs
 * without a team at hand. Pages that are touched for the first time come to the node of their part; no policy is set,
 * and small pages are asked for where a huge one would cover parts of several nodes. There is up to
 * one thread for each CPU of the node, all signals are blocked in them, and they end before the call returns. If they cannot be
 * created, the calling thread does the work. `partition` divides `to`; FT_LOCAL and NULL: each CPU does an equal part.
 * FT_REPLICATED is EINVAL. The source and the target of a copy must not overlap (EINVAL).
 * Returns 0, or -1 with errno = EINVAL or ENOMEM. */
FT_API int ft_zero_parallel(void *pointer, size_t bytes, const ft_partition *partition);
FT_API int ft_copy_parallel(void *to, const void *from, size_t bytes, const ft_partition *partition);

/* Copies the first copy of a replicated block to the copies on the other nodes, each written by a thread on its node. Call it
 * after the block has been filled through the pointer of ft_alloc, and again after changes, while nobody reads.
 * Returns the number of copies, 1 on one node, or -1 with errno = EINVAL. */
FT_API int ft_replicate(void *pointer);

/* The copy of a replicated block on the node of the calling thread; `pointer` itself for anything else. `pointer` is what ft_alloc
 * returned, not an address inside the block. A thread asks once, after it is pinned, and keeps the answer. */
FT_API void *ft_local_copy(const void *pointer);

/* ---- Verification ---- */

typedef struct ft_verdict {
    size_t pages;     /* pages that the range has whole, of the size the kernel places (4 KiB mostly) */
    size_t present;   /* of them, present in memory */
    size_t on_target; /* of these, where the partition wants them */
    size_t
        border; /* of `present`: pages with bytes of parts on different nodes; each of these nodes counts as the target */
    double share;          /* on_target / present; NaN if no page is present or the kernel was not to be asked */
    size_t node_pages[64]; /* present pages by node number; nodes from 64 on are counted in the last */
    int error;             /* 0, or errno of the query that failed: then `share` is NaN */
} ft_verdict;

/* Asks the kernel where each page of the range is (move_pages without nodes), and compares with the partition. Touches nothing.
 * Every page is asked about, 512 in a call; nothing is sampled.
 * Chunks of FT_CYCLIC that are smaller than a page, with more of them in turn than a page holds, cost a step each.
 * FT_LOCAL has no target: then on_target counts the pages on the node of the calling thread. FT_INTERLEAVED: each node may have an
 * equal share of the present pages of each stretch (16 turns); pages beyond that share are not on target. A replicated block: the first `bytes` bytes of each copy count.
 * Returns 0 and fills `verdict`, or -1 with errno = EINVAL, or what the kernel said (also in verdict->error). */
FT_API int ft_verify(const void *pointer, size_t bytes, const ft_partition *partition, ft_verdict *verdict);

/* Writes one or more lines in words about where the memory is and where it should be, as snprintf: returns the length that the
 * whole text has, without its end. `name` is what the program calls the memory, or NULL. What makes ft_verify fail is in the text. */
FT_API size_t ft_report(char *text, size_t text_bytes, const char *name, const void *pointer, size_t bytes,
                        const ft_partition *partition);

/* What the last call of this thread that had a doubt could not do or assumed, and what to do about it, in one sentence; NULL if
 * there was no doubt. Calls without a doubt leave it; ft_clear_doubt forgets it. The text is the thread's own and holds until its
 * next call. */
FT_API const char *ft_last_doubt(void);
FT_API void ft_clear_doubt(void);

/* The nodes with memory that this process may use: writes up to `capacity` numbers in ascending order, and returns how many there
 * are. */
FT_API size_t ft_nodes(int *nodes, size_t capacity);

/* The version of the library in use, as "1.0.0". */
FT_API const char *ft_version(void);

/* For tests: 1 if at least `share` (0 to 1) of the present pages are on target, 0 if fewer are, and -1 with errno if that is not
 * known (the kernel cannot be asked, no page is present, or the arguments are invalid): not known is never a success. On a machine
 * with one node everything is on target, and ft_last_doubt says that nothing was tested. */
FT_API int ft_expect(const void *pointer, size_t bytes, const ft_partition *partition, double share);

/* The same as an assertion: if the answer is 0, writes what was expected and what was found to standard error, with file and line,
 * and ends the program by abort(). If it is -1, writes "not judged" with the reason, and returns. */
FT_API void ft_expect_or_abort(const void *pointer, size_t bytes, const ft_partition *partition, double share,
                               const char *file, int line, const char *expression);
#define FT_EXPECT_PLACED(pointer, bytes, partition, share) \
    ft_expect_or_abort((pointer), (bytes), (partition), (share), __FILE__, __LINE__, #pointer)
/* All of `bytes` on the node of the calling thread. */
#define FT_EXPECT_LOCAL(pointer, bytes, share) \
    ft_expect_or_abort((pointer), (bytes), NULL, (share), __FILE__, __LINE__, #pointer)

/* ---- Small blocks ----
 *
 * Where GCC or Clang optimise, ft_alloc of a small block is a call of malloc, and ft_free of it one of free, without a call of the
 * library between. What they promise stays the same. FT_NO_INLINE, defined before this header, turns it off. */

#if defined(__GNUC__)
#define FT_INLINE_ extern inline __attribute__((gnu_inline, always_inline))
#else
#define FT_INLINE_ static inline
#endif

/* The short paths below call these; programs do not. ft_free_block_ returns false if the library did not make the block. */
FT_API void *ft_alloc_block_(size_t bytes, const ft_partition *partition, unsigned flags);
FT_API bool ft_free_block_(void *pointer);

/* The partitions of which ft_alloc checks nothing more for a small block. */
FT_INLINE_ bool ft_is_plain_(const ft_partition *p) {
    return p == NULL ||
           ((p->kind == FT_LOCAL || p->kind == FT_BLOCKED || p->kind == FT_INTERLEAVED) &&
            (uint32_t)p->unit <= (uint32_t)FT_NODES && (uint32_t)p->team < 64 && p->parts <= (size_t)1 << 20);
}

#if defined(__GNUC__) && defined(__OPTIMIZE__) && !defined(FT_NO_INLINE)
FT_INLINE_ void *ft_alloc(size_t bytes, const ft_partition *partition, unsigned flags) {
    bool is_small = bytes < FT_SMALL_BYTES && flags == 0 && ft_is_plain_(partition);
    return __builtin_expect(is_small, 1) ? malloc(bytes) : ft_alloc_block_(bytes, partition, flags);
}

/* Blocks of the library's own begin at a page; malloc's large ones begin behind a header. */
FT_INLINE_ void ft_free(void *pointer) {
    if (__builtin_expect(((uintptr_t)pointer & 4095) != 0, 1) || !ft_free_block_(pointer)) {
        free(pointer);
    }
}
#endif

#ifdef __cplusplus
}
#endif

#endif
