// SPDX-License-Identifier: Apache-2.0 OR MIT
// corpus: build = gcc -O2 -g -Wall -Wextra -pthread {src} -o {out}
// corpus: run = {out} 50 20 3 20 60
//
// Many processes with many threads, of which some work: what `scripts/bench-top` watches.
//
//   processes PROCESSES THREADS BUSY DUTY SECONDS
//
// Each process has 8 MiB, and its threads divide it. Those of the first BUSY processes read their parts again and again for 0.2 ms, and then sleep,
// so that each of these processes uses DUTY CPUs (THREADS: they never sleep). All others sleep, and look at the clock five times a second.

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define ELEMENTS (1L << 20)
#define MOST_THREADS 1000
#define PAUSE_NS 200000000L
#define WORK_NS 2e5

static double *data;
static long threads;
static int busy;
static double duty, end;
static volatile double sink;

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static void *work(void *argument) {
    const long part = ELEMENTS / threads, first = (long)argument * part;
    double sum = 0;
    while (now() < end) {
        struct timespec pause = {0, PAUSE_NS};
        if (busy) {
            const double until = now() + 1e-9 * WORK_NS;
            do {
                for (long i = first; i < first + part; i++)
                    sum += data[i];
            } while (now() < until);
            const double slept = WORK_NS * ((double)threads / duty - 1);
            pause.tv_sec = (time_t)(slept * 1e-9);
            pause.tv_nsec = (long)(slept - 1e9 * (double)pause.tv_sec);
        }
        if (pause.tv_sec > 0 || pause.tv_nsec > 0)
            nanosleep(&pause, NULL);
    }
    sink = sum;
    return NULL;
}

static int process(void) {
    pthread_t started[MOST_THREADS];
    data = malloc(ELEMENTS * sizeof *data);
    if (!data)
        return 1;
    for (long i = 0; i < ELEMENTS; i++)
        data[i] = (double)i;
    long count = 0;
    while (count < threads && pthread_create(&started[count], NULL, work, (void *)count) == 0)
        count++;
    for (long i = 0; i < count; i++)
        pthread_join(started[i], NULL);
    return count < threads;
}

int main(int count, char **arguments) {
    if (count != 6) {
        fprintf(stderr, "usage: %s PROCESSES THREADS BUSY DUTY SECONDS\n", arguments[0]);
        return 2;
    }
    const long processes = atol(arguments[1]), working = atol(arguments[3]);
    threads = atol(arguments[2]);
    duty = atof(arguments[4]);
    end = now() + atof(arguments[5]);
    if (processes < 1 || threads < 1 || threads > MOST_THREADS || duty < 0.001 || duty > (double)threads) {
        fprintf(stderr, "%s: PROCESSES and THREADS (at most %d) are at least 1, DUTY is 0.001 to THREADS\n",
                arguments[0], MOST_THREADS);
        return 2;
    }
    int status = 0, own;
    for (long i = 0; i < processes; i++) {
        const pid_t child = fork();
        if (child == 0) {
            busy = i < working;
            _exit(process());
        }
        status |= child < 0;
    }
    while (wait(&own) > 0)
        status |= own != 0;
    return status;
}
