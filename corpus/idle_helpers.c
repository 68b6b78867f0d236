// SPDX-License-Identifier: Apache-2.0 OR MIT
// corpus: object = field
// corpus: finding = serial-first-touch
// corpus: partition = block
// corpus: cause = loop
// corpus: remote = 0.5
// corpus: fix = words
// corpus: build = gcc -O2 -g -Wall -Wextra -pthread {src} -o {out}
// corpus: run = {out}
// corpus: why = As pthreads_main_init, with 12 helpers that only wait, started between and after the workers and taking no place.
//
// Threads by birth: 0 works (main), 1 waits, 2 works, 3 waits, 4 works, 5 waits, 6 works, 7 to 15 wait. If each of the 16 took a place,
// threads 0 to 7 would be on node 0 of two: all that work, so nothing would be remote and the defect would not show.

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { THREADS = 4, HELPERS = 12 };
static const size_t N = (size_t)4 << 20; // doubles: 32 MiB
static const double RUN_S = 1.2;

static double *field;
static long sweeps;
static bool stop;
static pthread_barrier_t in_step;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t asked = PTHREAD_COND_INITIALIZER;
static bool is_over;

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

// Like the thread of a library that waits for messages, of which this program has none.
static void *helper(void *argument) {
    pthread_mutex_lock(&lock);
    while (!is_over)
        pthread_cond_wait(&asked, &lock);
    pthread_mutex_unlock(&lock);
    return argument;
}

int main(void) {
    field = malloc(N * sizeof *field); // @allocated
    if (!field)
        return 1;
    for (size_t i = 0; i < N; i++)
        field[i] = 1.0; // @first-touch

    pthread_t thread[THREADS], helpers[HELPERS];
    int started = 0;
    pthread_barrier_init(&in_step, NULL, THREADS);
    for (uintptr_t t = 1; t < THREADS; t++) {
        pthread_create(&helpers[started++], NULL, helper, NULL);
        pthread_create(&thread[t], NULL, worker, (void *)t);
    }
    while (started < HELPERS)
        pthread_create(&helpers[started++], NULL, helper, NULL);
    worker((void *)0);
    for (int t = 1; t < THREADS; t++)
        pthread_join(thread[t], NULL);

    pthread_mutex_lock(&lock);
    is_over = true;
    pthread_cond_broadcast(&asked);
    pthread_mutex_unlock(&lock);
    for (int h = 0; h < HELPERS; h++)
        pthread_join(helpers[h], NULL);

    int bad = 0;
    for (size_t i = 0; i < N; i += 512)
        bad |= field[i] != 1.0 + 2.0 * (double)sweeps;
    puts(bad ? "bad" : "ok");
    free(field);
    return bad;
}
