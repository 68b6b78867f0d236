// SPDX-License-Identifier: Apache-2.0 OR MIT
// corpus: build = gcc -O2 -g -Wall -Wextra -fopenmp {src} -o {out}
//
// crowded THREADS SECONDS: two loops of some milliseconds in turn, one through an array from its beginning and one from its end, with a barrier after each.
// Prints the CPU time of all threads in each loop, s. With more threads than CPUs, a thread that is waked up finishes its part of a loop between two
// ticks of the scheduler.

#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { WORDS = 8000000 };

static double seconds_of(clockid_t clock) {
    struct timespec time;
    clock_gettime(clock, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

int main(int argc, char **argv) {
    if (argc != 3) {
        fputs("crowded THREADS SECONDS\n", stderr);
        return 2;
    }
    omp_set_num_threads(atoi(argv[1]));
    double *w = malloc(WORDS * sizeof *w), *s = malloc(WORDS * sizeof *s);
    if (!w || !s)
        return 1;
#pragma omp parallel for schedule(static)
    for (int i = 0; i < WORDS; i++) {
        w[i] = i % 10;
        s[i] = 0.25;
    }
    double forwards = 0, backwards = 0, end = seconds_of(CLOCK_MONOTONIC) + atof(argv[2]);
    while (seconds_of(CLOCK_MONOTONIC) < end) {
#pragma omp parallel reduction(+ : forwards)
        {
            double begin = seconds_of(CLOCK_THREAD_CPUTIME_ID);
#pragma omp for schedule(static) nowait
            for (int i = 0; i < WORDS; i++)
                w[i] = w[i] * 0.999 + s[i]; // forwards
            forwards += seconds_of(CLOCK_THREAD_CPUTIME_ID) - begin;
        }
#pragma omp parallel reduction(+ : backwards)
        {
            double begin = seconds_of(CLOCK_THREAD_CPUTIME_ID);
#pragma omp for schedule(static) nowait
            for (int i = 0; i < WORDS; i++)
                w[WORDS - 1 - i] = w[WORDS - 1 - i] * 1.0001 - 0.02; // backwards
            backwards += seconds_of(CLOCK_THREAD_CPUTIME_ID) - begin;
        }
    }
    printf("%.6f %.6f\n", forwards, backwards);
    fprintf(stderr, "%g\n", w[WORDS / 2]);
    free(w);
    free(s);
    return 0;
}
