// SPDX-License-Identifier: Apache-2.0 OR MIT
// corpus: object = table
// corpus: finding = shared-read
// corpus: partition = shared
// corpus: remote = 0.5
// corpus: fix = words
// corpus: build = gcc -O2 -g -Wall -Wextra -pthread {src} -o {out}
// corpus: run = {out}
// corpus: why = main builds a table that all threads scan in full; a parallel initialisation would not help, a copy a node would.

// By hand: all of it is on node 0, two of four readers are on node 1: 0.5.

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { THREADS = 4 };
static const size_t N = (size_t)2 << 20; // 8 bytes each: 16 MiB
static const double RUN_S = 1.2;

static uint64_t *table;
static bool stop, wrong[THREADS];
static pthread_barrier_t in_step;

static double seconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void *query(void *argument) {
    const uint64_t me = (uintptr_t)argument;
    const double end = seconds() + RUN_S;
    bool bad = false;
    while (!stop) {
        uint64_t found = 0;
        for (size_t i = 0; i < N; i++)
            found += table[i] % 16 == me; // @used
        bad |= found != N / 16;
        pthread_barrier_wait(&in_step);
        if (me == 0)
            stop = seconds() >= end;
        pthread_barrier_wait(&in_step);
    }
    wrong[me] = bad;
    return NULL;
}

int main(void) {
    table = malloc(N * sizeof *table); // @allocated
    if (!table)
        return 1;
    for (size_t i = 0; i < N; i++)
        table[i] = i; // @first-touch

    pthread_t thread[THREADS];
    pthread_barrier_init(&in_step, NULL, THREADS);
    for (uintptr_t t = 1; t < THREADS; t++)
        pthread_create(&thread[t], NULL, query, (void *)t);
    query((void *)0);
    for (int t = 1; t < THREADS; t++)
        pthread_join(thread[t], NULL);

    const bool bad = wrong[0] || wrong[1] || wrong[2] || wrong[3];
    puts(bad ? "bad" : "ok");
    free(table);
    return bad;
}
