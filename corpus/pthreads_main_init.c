// SPDX-License-Identifier: Apache-2.0 OR MIT
// corpus: object = field
// corpus: finding = serial-first-touch
// corpus: partition = block
// corpus: cause = loop
// corpus: remote = 0.5
// corpus: fix = words
// corpus: build = gcc -O2 -g -Wall -Wextra -pthread {src} -o {out}
// corpus: run = {out}
// corpus: why = main fills the field before it starts the threads that share the work, as many pthreads programs do.

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { THREADS = 4 };
static const size_t N = (size_t)4 << 20; // doubles: 32 MiB
static const double RUN_S = 1.2;

static double *field;
static long sweeps;
static bool stop;
static pthread_barrier_t in_step;

static double seconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void *worker(void *argument) {
    const size_t me = (uintptr_t)argument;
    double *mine = field + me * (N / THREADS);
    const double end = seconds() + RUN_S;
    while (!stop) {
        for (size_t i = 0; i < N / THREADS; i++)
            mine[i] += 2.0; // @used
        pthread_barrier_wait(&in_step);
        if (me == 0) {
            sweeps++;
            stop = seconds() >= end;
        }
        pthread_barrier_wait(&in_step);
    }
    return NULL;
}

int main(void) {
    field = malloc(N * sizeof *field); // @allocated
    if (!field)
        return 1;
    for (size_t i = 0; i < N; i++)
        field[i] = 1.0; // @first-touch

    // main is worker 0, so the program has four threads, not five.
    pthread_t thread[THREADS];
    pthread_barrier_init(&in_step, NULL, THREADS);
    for (uintptr_t t = 1; t < THREADS; t++)
        pthread_create(&thread[t], NULL, worker, (void *)t);
    worker((void *)0);
    for (int t = 1; t < THREADS; t++)
        pthread_join(thread[t], NULL);

    int bad = 0;
    for (size_t i = 0; i < N; i += 512)
        bad |= field[i] != 1.0 + 2.0 * (double)sweeps;
    puts(bad ? "bad" : "ok");
    free(field);
    return bad;
}
