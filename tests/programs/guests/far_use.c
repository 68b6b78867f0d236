// SPDX-License-Identifier: Apache-2.0 OR MIT
// Touches memory first on one CPU, then uses it from another: far_use FIRST-CPU CPU MIB SECONDS. NUMA balancing
// should move it.
// corpus: build = gcc -O2 -g -Wall -Wextra -Werror {src} -o {out}
#define _GNU_SOURCE
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

static int run_on(const char *cpu) {
    cpu_set_t cpus;
    CPU_ZERO(&cpus);
    CPU_SET(strtoul(cpu, NULL, 10), &cpus);
    return sched_setaffinity(0, sizeof cpus, &cpus);
}

static double seconds_now(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

int main(int count, char **words) {
    if (count != 5 || run_on(words[1]))
        return 2;
    size_t bytes = strtoul(words[3], NULL, 10) << 20;
    volatile char *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED || madvise((void *)memory, bytes, MADV_NOHUGEPAGE)) {
        perror("far_use");
        return 1;
    }
    for (size_t at = 0; at < bytes; at += 4096)
        memory[at] = 1;
    if (run_on(words[2]))
        return 2;
    for (double end = seconds_now() + strtod(words[4], NULL); seconds_now() < end;)
        for (size_t at = 0; at < bytes; at += 4096)
            memory[at]++;
    return 0;
}
