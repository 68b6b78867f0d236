/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * Measures nanoseconds for a pair of allocation and release. run.sh runs it bare and with the agent and prints the ratios.
 *
 *   small      64 B: below the threshold, the cost of every allocation
 *   medium     32 KiB: below the threshold
 *   large      80 KiB: recorded, from a stack of 8 frames
 *   deep       80 KiB: recorded, from a stack of 30 frames
 *   work       80 KiB and about 900 ns of work: a program that makes a million such pairs a second
 *   mapped     1 MiB by mmap and munmap
 */
#define _GNU_SOURCE
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

static double now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static size_t pair_bytes;
static void pair(void) {
    void *p = malloc(pair_bytes);
    __asm__ volatile("" : : "r"(p) : "memory");
    free(p);
}

/* A dependent chain: its time does not depend on the other instructions in flight. */
static double work_state = 1.5;
static void pair_and_work(void) {
    void *p = malloc(pair_bytes);
    __asm__ volatile("" : : "r"(p) : "memory");
    double x = work_state;
    for (int i = 0; i < 570; i++) {
        x = x * 0.999 + 0.001;
    }
    work_state = x;
    free(p);
}

static void map_pair(void) {
    void *p = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    munmap(p, 1 << 20);
}

/* The best of many short rounds: on a shared machine, other programs only add time. */
static double best_ns(void (*step)(void), long count) {
    double best = 1e18;
    for (int round = 0; round < 200; round++) {
        double start = now_ns();
        for (long i = 0; i < count; i++) {
            step();
        }
        double each = (now_ns() - start) / (double)count;
        best = each < best ? each : best;
    }
    return best;
}

__attribute__((noinline)) static double at_depth(int depth, void (*step)(void), long count) {
    double result = depth == 0 ? best_ns(step, count) : at_depth(depth - 1, step, count);
    __asm__ volatile("" ::: "memory"); /* no tail call */
    return result;
}

int main(void) {
    mallopt(M_MMAP_THRESHOLD, 1 << 20);
    mallopt(M_TRIM_THRESHOLD, 64 << 20);
    pair_bytes = 64;
    printf("small %.2f\n", at_depth(2, pair, 50000));
    pair_bytes = 32768;
    printf("medium %.2f\n", at_depth(2, pair, 30000));
    pair_bytes = 80 << 10;
    printf("large %.2f\n", at_depth(2, pair, 10000));
    printf("deep %.2f\n", at_depth(26, pair, 10000));
    printf("work %.2f\n", at_depth(2, pair_and_work, 2000));
    printf("mapped %.2f\n", at_depth(2, map_pair, 1000));
    return 0;
}
