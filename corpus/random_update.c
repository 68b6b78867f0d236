// SPDX-License-Identifier: Apache-2.0 OR MIT
// corpus: object = histogram
// corpus: finding = no-stable-partition
// corpus: partition = irregular
// corpus: remote = 0.5
// corpus: fix = words
// corpus: build = gcc -O2 -g -Wall -Wextra -fopenmp {src} -o {out}
// corpus: run = {out}
// corpus: why = All threads add to random bins of one shared histogram (as in GUPS); no bin belongs to a thread.

#include <omp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { THREADS = 4 };
static const uint64_t BINS = UINT64_C(4) << 20; // 8 bytes each: 32 MiB
static const uint64_t EVENTS = 1 << 19;         // a thread and sweep
static const double RUN_S = 1.2;

static uint64_t next_random(uint64_t *state) // xorshift64
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

int main(void) {
    uint64_t *histogram = malloc(BINS * sizeof *histogram); // @allocated
    if (!histogram)
        return 1;
#pragma omp parallel for num_threads(THREADS) schedule(static)
    for (uint64_t i = 0; i < BINS; i++)
        histogram[i] = 1; // @first-touch

    uint64_t sweep = 0;
    for (double end = omp_get_wtime() + RUN_S; omp_get_wtime() < end; sweep++) {
#pragma omp parallel num_threads(THREADS)
        {
            uint64_t state = (sweep * THREADS + (uint64_t)omp_get_thread_num() + 1) * UINT64_C(0x9e3779b97f4a7c15);
            for (uint64_t i = 0; i < EVENTS; i++) {
                const uint64_t bin = next_random(&state) % BINS;
#pragma omp atomic                // @used
                histogram[bin]++; // @used
            }
        }
    }

    uint64_t total = 0;
    for (uint64_t i = 0; i < BINS; i++)
        total += histogram[i];
    const int bad = total != BINS + sweep * THREADS * EVENTS;
    puts(bad ? "bad" : "ok");
    free(histogram);
    return bad;
}
