// SPDX-License-Identifier: Apache-2.0 OR MIT
// corpus: build = gcc -O2 -g -Wall -Wextra -fno-tree-vectorize -fopenmp {src} -o {out}
// corpus: run = {out} SECONDS PERCENT
//
// Four threads compute in registers for PERCENT of their CPU time, and sweep their blocks of a large array for the rest. One thread initialises the
// array before. Prints what part of the run is computing, by the threads' own clocks: of the CPU time of the initialisation, which one thread spends alone,
// and of the mean of the threads' times after it.

#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { THREADS = 4, WORDS = 8 << 20 };

static double now(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

// noipa: so that the compiler does not move the call behind the next look at the clock.
__attribute__((noipa)) static double in_registers(double x, long rounds) {
    for (long i = 0; i < rounds; i++)
        x = x * 0.999999 + 1e-6;
    return x;
}

__attribute__((noipa)) static double sweep(const double *a, long begin, long end) {
    double sum = 0.0;
    for (long i = begin; i < end; i++)
        sum += a[i];
    return sum;
}

int main(int argc, char **argv) {
    const double seconds = argc > 1 ? atof(argv[1]) : 4.0, part = argc > 2 ? atof(argv[2]) / 100.0 : 0.5;
    double *a = malloc(WORDS * sizeof *a);
    if (!a)
        return 1;
    const double began = now(CLOCK_THREAD_CPUTIME_ID);
    for (long i = 0; i < WORDS; i++)
        a[i] = 1.0;
    const double alone = now(CLOCK_THREAD_CPUTIME_ID) - began;
    const double end = now(CLOCK_MONOTONIC) + seconds;
    double computed = 0.0, at_memory = 0.0, result = 0.0;
#pragma omp parallel num_threads(THREADS) reduction(+ : computed, at_memory, result)
    {
        const long me = omp_get_thread_num(), begin = me * (WORDS / THREADS);
        double rounds_a_second = 1e8;
        while (now(CLOCK_MONOTONIC) < end) {
            const double start = now(CLOCK_THREAD_CPUTIME_ID);
            for (int pass = 0; pass < 8; pass++)
                result += sweep(a, begin, begin + WORDS / THREADS);
            const double middle = now(CLOCK_THREAD_CPUTIME_ID);
            at_memory += middle - start;
            // As much as is missing so far, in one piece: ticks of the thread's clock that fall into a system call are seen there.
            const double missing = part / (1.0 - part) * at_memory - computed;
            const long rounds = missing > 0.0 ? (long)(missing * rounds_a_second) : 0;
            result += in_registers(2.0, rounds);
            const double took = now(CLOCK_THREAD_CPUTIME_ID) - middle;
            computed += took;
            if (rounds > 100000)
                rounds_a_second = (double)rounds / took;
        }
    }
    const char *is_right = result > 0.0 ? "true" : "false";
    printf("{\"computing\": %.4f, \"result\": %s}\n", computed / (THREADS * alone + computed + at_memory), is_right);
    free(a);
    return 0;
}
