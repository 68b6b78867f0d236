// SPDX-License-Identifier: Apache-2.0 OR MIT
// Threads, each on a CPU of its own, divide an array in equal blocks. Each touches its block first. When all have, each uses its block
// until the time is up: blocks SECONDS MIB CPU,CPU... [WAY]
// A thread with the CPU -1 stays where it may run.
//   leave      after the first touch, each thread moves to the CPU of the next one
//   from:CPU:CPU  the threads touch their blocks on the first CPU and use them on the second
//   float      the threads may run anywhere, and move to the next one's CPU every 0.3 s
//   together   each thread uses the whole array
//   turns      each thread in turn uses the whole array for two seconds, while the others sleep
//   cold:NODE  memory of the same size is bound to NODE, touched once, and not used
// corpus: build = gcc -O2 -g -Wall -Wextra -Werror -pthread {src} -o {out}
#define _GNU_SOURCE
#include <linux/mempolicy.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { MOST = 16, CHUNK = 1 << 17 };

static int cpus[MOST], threads;
static const char *way = "";
static double seconds;
static volatile uint64_t *parts;
static size_t words_each;
static pthread_barrier_t touched;

static double seconds_now(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static int is(const char *name) {
    return strcmp(way, name) == 0;
}

static void run_on(int cpu) {
    cpu_set_t set;
    if (cpu < 0)
        return;
    CPU_ZERO(&set);
    CPU_SET((size_t)cpu, &set);
    if (sched_setaffinity(0, sizeof set, &set))
        exit(1);
}

/* Moves the thread to a CPU, then lets it run anywhere. */
static void run_from(int cpu) {
    cpu_set_t set;
    run_on(cpu);
    memset(&set, 0xff, sizeof set);
    if (sched_setaffinity(0, sizeof set, &set))
        exit(1);
}

static void *work(void *argument) {
    long self = (long)argument;
    size_t own = (size_t)self * words_each, sum = 0;
    int here, there, is_moved = sscanf(way, "from:%d:%d", &here, &there) == 2;
    run_on(is_moved ? here : cpus[self]);
    for (size_t i = own; i < own + words_each; i++)
        parts[i] = i;
    pthread_barrier_wait(&touched);
    if (is("leave"))
        run_on(cpus[(self + 1) % threads]);
    if (is_moved)
        run_on(there);
    int whole = is("together") || is("turns"), seat = -1;
    size_t from = whole ? 0 : own, to = whole ? (size_t)threads * words_each : own + words_each, at = from;
    for (double now = seconds_now(), begin = now; now < begin + seconds; now = seconds_now()) {
        if (is("turns") && (long)((now - begin) / 2) % threads != self) {
            usleep(5000);
            continue;
        }
        int next = (int)((self + (long)((now - begin) / 0.3)) % threads);
        if (is("float") && next != seat)
            run_from(cpus[seat = next]);
        size_t stop = at + CHUNK < to ? at + CHUNK : to;
        for (; at < stop; at++)
            sum += parts[at];
        if (at == to)
            at = from;
    }
    return sum > 0 ? argument : NULL;
}

static void *map(size_t bytes) {
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED || madvise(memory, bytes, MADV_NOHUGEPAGE)) {
        perror("blocks");
        exit(1);
    }
    return memory;
}

int main(int count, char **words) {
    if (count < 4)
        return 2;
    for (char *cpu = strtok(words[3], ","); cpu && threads < MOST; cpu = strtok(NULL, ","))
        cpus[threads++] = atoi(cpu);
    if (count > 4)
        way = words[4];
    size_t bytes = strtoul(words[2], NULL, 10) << 20;
    if (strncmp(way, "cold:", 5) == 0) {
        unsigned long nodes = 1UL << strtoul(way + 5, NULL, 10);
        char *archive = map(bytes);
        if (syscall(SYS_mbind, archive, bytes, MPOL_BIND, &nodes, 8 * sizeof nodes, 0UL))
            return 1;
        memset(archive, 1, bytes);
    }
    parts = map(bytes);
    words_each = bytes / sizeof *parts / (size_t)threads;
    seconds = strtod(words[1], NULL);
    pthread_barrier_init(&touched, NULL, (unsigned)threads);
    pthread_t others[MOST];
    for (long i = 1; i < threads; i++)
        if (pthread_create(&others[i], NULL, work, (void *)i))
            return 1;
    work((void *)0);
    for (long i = 1; i < threads; i++)
        pthread_join(others[i], NULL);
    return 0;
}
