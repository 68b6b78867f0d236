/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * A pointer chase written by hand, to compare with `map` and `bench chase`: one thread, one load a cache line, one random
 * cycle through BYTES of memory on huge pages where the system provides them. Prints the nanoseconds of a load, a repetition a line.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

#define STRIDE (64 / sizeof(void *))

int main(int argc, char **argv) {
    if (argc != 4) {
        fprintf(stderr, "usage: %s BYTES LOADS REPETITIONS\n", argv[0]);
        return 2;
    }
    const size_t lines = strtoull(argv[1], NULL, 10) / 64;
    const uint64_t loads = strtoull(argv[2], NULL, 10);
    size_t *order = malloc(lines * sizeof *order);
    void **memory = aligned_alloc((size_t)2 << 20, (lines * 64 + ((size_t)2 << 20) - 1) >> 21 << 21);
    if (lines < 2 || order == NULL || memory == NULL) {
        fprintf(stderr, "%s: no memory, or too little asked for\n", argv[0]);
        return 1;
    }
    madvise(memory, lines * 64, MADV_HUGEPAGE);
    for (size_t i = 0; i < lines; i++) {
        order[i] = i;
    }
    srand48(1);
    for (size_t i = lines - 1; i > 0; i--) {
        const size_t other = (size_t)(drand48() * (double)(i + 1)), swap = order[i];
        order[i] = order[other];
        order[other] = swap;
    }
    for (size_t i = 0; i < lines; i++) {
        memory[order[i] * STRIDE] = &memory[order[(i + 1) % lines] * STRIDE];
    }
    void **at = memory;
    for (int repetition = atoi(argv[3]); repetition > 0; repetition--) {
        struct timespec a, b;
        clock_gettime(CLOCK_MONOTONIC, &a);
        for (uint64_t i = 0; i < loads; i++) {
            at = *at;
        }
        clock_gettime(CLOCK_MONOTONIC, &b);
        printf("%.4f\n", ((double)(b.tv_sec - a.tv_sec) * 1e9 + (double)(b.tv_nsec - a.tv_nsec)) / (double)loads);
    }
    return at == NULL;
}
