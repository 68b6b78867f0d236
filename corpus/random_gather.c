// SPDX-License-Identifier: Apache-2.0 OR MIT
// corpus: object = x
// corpus: finding = shared-read
// corpus: partition = shared
// corpus: watch = none (watchpoints do not show whether places without a stride are only read)
// corpus: remote = 0.5
// corpus: fix = words
// corpus: build = gcc -O2 -g -Wall -Wextra -fopenmp {src} -o {out}
// corpus: run = {out}
// corpus: why = Every thread reads random elements of the whole vector; whoever places it, half of it is on the other node.

#include <omp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { THREADS = 4 };
static const uint64_t N = UINT64_C(4) << 20; // 8 bytes each: 32 MiB
static const double RUN_S = 1.2;

static uint64_t next_random(uint64_t *state) // xorshift64
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

int main(void) {
    uint64_t *x = malloc(N * sizeof *x); // @allocated
    if (!x)
        return 1;
#pragma omp parallel for num_threads(THREADS) schedule(static)
    for (uint64_t i = 0; i < N; i++)
        x[i] = ~i; // @first-touch

    long bad = 0;
    uint64_t sweep = 0;
    for (double end = omp_get_wtime() + RUN_S; omp_get_wtime() < end; sweep++) {
#pragma omp parallel num_threads(THREADS) reduction(+ : bad)
        {
            uint64_t state = (sweep * THREADS + (uint64_t)omp_get_thread_num() + 1) * UINT64_C(0x9e3779b97f4a7c15);
            for (uint64_t i = 0; i < N / THREADS; i++) {
                const uint64_t k = next_random(&state) % N;
                bad += x[k] != ~k; // @used
            }
        }
    }
    puts(bad ? "bad" : "ok");
    free(x);
    return bad != 0;
}
