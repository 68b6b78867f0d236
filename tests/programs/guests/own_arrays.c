// SPDX-License-Identifier: Apache-2.0 OR MIT
// Two threads, each on a CPU of its own, each with an array of its own that it touches first and then uses until the time is up:
// own_arrays CPU CPU SECONDS. Well placed on any machine. Prints the addresses of both arrays.
// corpus: build = gcc -O2 -g -Wall -Wextra -Werror -pthread {src} -o {out}
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { WORDS = 1 << 20 };

static double seconds;
static volatile double *arrays[2];

static double seconds_now(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void *work(void *argument) {
    volatile double *array = *(volatile double **)argument, sum = 0;
    for (size_t i = 0; i < WORDS; i++)
        array[i] = 1;
    for (double end = seconds_now() + seconds; seconds_now() < end;)
        for (size_t i = 0; i < WORDS; i++)
            sum += array[i];
    return sum > 0 ? argument : NULL;
}

int main(int count, char **words) {
    if (count != 4)
        return 2;
    seconds = strtod(words[3], NULL);
    pthread_t threads[2];
    for (int i = 0; i < 2; i++) {
        arrays[i] = malloc(WORDS * sizeof *arrays[i]);
        cpu_set_t cpus;
        CPU_ZERO(&cpus);
        CPU_SET(strtoul(words[1 + i], NULL, 10), &cpus);
        pthread_attr_t attributes;
        pthread_attr_init(&attributes);
        pthread_attr_setaffinity_np(&attributes, sizeof cpus, &cpus);
        if (!arrays[i] || pthread_create(&threads[i], &attributes, work, &arrays[i]))
            return 1;
    }
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    printf("%lu %lu\n", (unsigned long)arrays[0], (unsigned long)arrays[1]);
    return 0;
}
