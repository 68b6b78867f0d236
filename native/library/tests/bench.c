/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * What libfirsttouch costs beside malloc, on this machine: bench [ROUNDS].
 *
 * Both ways alternate within a round, in changing order, in one process; each round gives one ratio. Printed are the median of the
 * ratios and an interval that holds the true median with at least 95 % (by order statistics: no distribution is assumed). Times of one
 * thread are its CPU time, so that other programs disturb less; the time of several threads is wall time.
 */
#include "firsttouch.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define MIB ((size_t)1 << 20)
#define MAX_ROUNDS 999

static double now_s(clockid_t clock) {
    struct timespec now;
    clock_gettime(clock, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static int rising(const void *left, const void *right) {
    double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

/* The rank k (from 0) such that the k-th smallest and k-th largest of n values enclose the median with at least 95 %. */
static int rank_95(int n) {
    double below = 0, term = pow(0.5, n);
    int k = 0;
    for (; k < n / 2; k++) {
        below += term;
        if (below > 0.025) {
            break;
        }
        term = term * (n - k) / (k + 1);
    }
    return k > 0 ? k - 1 : 0;
}

typedef void way(size_t bytes);

static double time_of(way *run, size_t bytes, clockid_t clock) {
    double start = now_s(clock);
    run(bytes);
    return now_s(clock) - start;
}

static void compare(const char *name, way *ours, way *other, size_t bytes, int rounds, clockid_t clock) {
    double ratio[MAX_ROUNDS], our[MAX_ROUNDS], their[MAX_ROUNDS];
    time_of(ours, bytes, clock);
    time_of(other, bytes, clock);
    for (int i = 0; i < rounds; i++) {
        if (i % 2 == 0) {
            our[i] = time_of(ours, bytes, clock);
            their[i] = time_of(other, bytes, clock);
        } else {
            their[i] = time_of(other, bytes, clock);
            our[i] = time_of(ours, bytes, clock);
        }
        ratio[i] = our[i] / their[i];
    }
    qsort(ratio, (size_t)rounds, sizeof ratio[0], rising);
    qsort(our, (size_t)rounds, sizeof our[0], rising);
    qsort(their, (size_t)rounds, sizeof their[0], rising);
    int rank = rank_95(rounds);
    printf("%-44s %9.3f ms %9.3f ms   %.3f [%.3f, %.3f]\n", name, our[rounds / 2] * 1e3, their[rounds / 2] * 1e3,
           ratio[rounds / 2], ratio[rank], ratio[rounds - 1 - rank]);
    fflush(stdout);
}

static void touch(volatile char *at, size_t bytes) {
    for (size_t i = 0; i < bytes; i += 4096) {
        at[i] = 1;
    }
}

static void ours_touched(size_t bytes) {
    ft_partition p = ft_blocked(0);
    char *at = ft_alloc(bytes, &p, 0);
    touch(at, bytes);
    ft_free(at);
}

static void malloc_touched(size_t bytes) {
    char *at = malloc(bytes);
    touch(at, bytes);
    free(at);
}

/* 10^6 pairs of calls; 1,000 blocks live at a time, of 16 bytes to the given size. */
#define SMALL(alloc, release)                                             \
    static void *live[1000];                                              \
    unsigned state = 12345;                                               \
    for (size_t i = 0; i < 1000000; i++) {                                \
        state = state * 1664525 + 1013904223;                             \
        size_t slot = state >> 8 & 511, size = 16 + (state >> 12) % most; \
        release(live[slot]);                                              \
        char *block = alloc(size);                                        \
        *block = 1;                                                       \
        live[slot] = block;                                               \
    }                                                                     \
    for (size_t i = 0; i < 1000; i++) {                                   \
        release(live[i]);                                                 \
        live[i] = NULL;                                                   \
    }

static void *ours(size_t bytes) {
    static const ft_partition p = {.kind = FT_BLOCKED};
    return ft_alloc(bytes, &p, 0);
}

static void ours_small(size_t most) {
    SMALL(ours, ft_free)
}

/* A partition that the compiler does not know: of another unit, or made at run time. */
static void *ours_by_pointer(size_t bytes) {
    static const ft_partition p = {.kind = FT_BLOCKED};
    static const ft_partition *volatile unknown = &p;
    return ft_alloc(bytes, unknown, 0);
}

static void ours_small_by_pointer(size_t most) {
    SMALL(ours_by_pointer, ft_free)
}

static void malloc_small(size_t most) {
    SMALL(malloc, free)
}

static void zero_parallel(size_t bytes) {
    ft_partition p = ft_blocked(0);
    char *at = malloc(bytes);
    ft_zero_parallel(at, bytes, &p);
    free(at);
}

static void zero_serial(size_t bytes) {
    char *at = malloc(bytes);
    __asm__ volatile("" : "+r"(at)::"memory"); /* keeps the compiler from calloc */
    memset(at, 0, bytes);
    __asm__ volatile("" ::"r"(at) : "memory");
    free(at);
}

int main(int count, char **arguments) {
    int rounds = count > 1 ? atoi(arguments[1]) : 31;
    rounds = rounds < 7 ? 7 : rounds > MAX_ROUNDS ? MAX_ROUNDS : rounds;
    const clockid_t cpu = CLOCK_THREAD_CPUTIME_ID;
    printf("%zu nodes, %zu threads, %d rounds\n", ft_nodes(NULL, 0), ft_team_size(0), rounds);
    printf("%-44s %12s %12s   ratio [95 %%]\n", "", "libfirsttouch", "malloc");
    compare("64 MiB: allocate, touch, free", ours_touched, malloc_touched, 64 * MIB, rounds, cpu);
    compare("512 MiB: allocate, touch, free", ours_touched, malloc_touched, 512 * MIB, rounds, cpu);
    compare("10^6 pairs of calls, 16 B to 1 KiB", ours_small, malloc_small, 1024, rounds, cpu);
    compare("the same, partition by a pointer", ours_small_by_pointer, malloc_small, 1024, rounds, cpu);
    compare("10^6 pairs of calls, 16 B to 32 KiB", ours_small, malloc_small, 32 * 1024, rounds, cpu);
    compare("1 GiB: zero in parallel, memset by one thread", zero_parallel, zero_serial, 1024 * MIB,
            rounds < 15 ? rounds : 15, CLOCK_MONOTONIC);
    return 0;
}
