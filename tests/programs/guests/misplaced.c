// SPDX-License-Identifier: Apache-2.0 OR MIT
// Threads, each on a CPU of its own, divide arrays in equal blocks, and use them until the time is up. A thread of its own asks the kernel five
// times a second where all pages are, and counts those that are not on the node of the thread that uses them. So the program knows what
// something that moves its pages achieves: misplaced KERNEL SECONDS MIB CPU,CPU... INIT [PERIOD]
//   SECONDS    until:60 ends 4 s after 95 % of the pages are where they are used, or after 60 s
//   rows       each thread multiplies its rows of a matrix by a vector (DGEMV)
//   triad      a = b + s * c, three arrays in one mapping
//   stencil    b = (a's neighbours and itself) / 3, with a halo of one row at each border
//   INIT       serial: the first thread initialises everything; parallel: each its own part
//   PERIOD     after so many seconds, again and again, each thread takes the part of the one half of the threads away
// It prints: sweeps (of all threads, per second), pages, misplaced_end, misplaced_page_s (the integral over the time), page_moves (seen).
// corpus: build = gcc -O2 -g -Wall -Wextra -Werror -pthread {src} -o {out}
#define _GNU_SOURCE
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

enum { MOST = 16, PAGE = 4096, ROW = 1 << 13, PAUSE_NS = 200000000 };

static int cpus[MOST], nodes[MOST], threads, is_serial, arrays = 1;
static const char *kernel;
static double seconds, period, begin;
static int ends_early;
static volatile double stop_at;
static double *data, vector[ROW / 8];
static size_t words_each, pages_each;
static long sweeps[MOST][16];
static volatile int is_over;
static pthread_barrier_t ready;

static double seconds_now(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* The part that a thread has at a time. */
static int part_of(int thread, double now) {
    int turn = period > 0 && now > begin ? (int)((now - begin) / period) : 0;
    return (thread + turn % 2 * (threads / 2)) % threads;
}

static double *of_array(int array) {
    return data + (size_t)array * words_each * (size_t)threads;
}

static double use(size_t from, size_t to) {
    double sum = 0;
    if (strcmp(kernel, "rows") == 0) {
        for (size_t i = from; i < to; i++)
            sum += data[i] * vector[i % (ROW / 8)];
    } else if (strcmp(kernel, "triad") == 0) {
        double *a = of_array(0), *b = of_array(1), *c = of_array(2);
        for (size_t i = from; i < to; i++)
            a[i] = b[i] + 3.0 * c[i];
        sum = a[from];
    } else {
        const size_t row = ROW / 8, all = words_each * (size_t)threads;
        double *a = of_array(0), *b = of_array(1);
        for (size_t i = from < row ? row : from; i < (to > all - row ? all - row : to); i++)
            b[i] = (a[i - row] + a[i] + a[i + row]) / 3.0;
        sum = b[from];
    }
    return sum;
}

static void initialise(int part) {
    for (int array = 0; array < arrays; array++)
        for (size_t i = (size_t)part * words_each; i < ((size_t)part + 1) * words_each; i++)
            of_array(array)[i] = 1.0;
}

static void *work(void *argument) {
    int self = (int)(long)argument;
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET((size_t)cpus[self], &set);
    unsigned node = 0;
    if (sched_setaffinity(0, sizeof set, &set) || syscall(SYS_getcpu, NULL, &node, NULL))
        exit(1);
    nodes[self] = (int)node;
    if (!is_serial)
        initialise(self);
    else if (self == 0)
        for (int part = 0; part < threads; part++)
            initialise(part);
    if (pthread_barrier_wait(&ready) == PTHREAD_BARRIER_SERIAL_THREAD)
        stop_at = (begin = seconds_now()) + seconds;
    pthread_barrier_wait(&ready);
    double sum = 0;
    const size_t chunk = 1 << 16;
    for (double now = seconds_now(); now < stop_at; now = seconds_now()) {
        size_t from = (size_t)part_of(self, now) * words_each, to = from + words_each;
        for (size_t at = from; at < to && !(at != from && seconds_now() > stop_at); at += chunk)
            sum += use(at, at + chunk < to ? at + chunk : to);
        sweeps[self][0]++;
    }
    return sum > 0 ? argument : NULL;
}

/* Where all pages are; returns how many are not where they are used. */
static long misplaced(void **addresses, int *where, size_t count, double now) {
    int seat[MOST];
    for (int thread = 0; thread < threads; thread++)
        seat[part_of(thread, now)] = nodes[thread];
    if (syscall(SYS_move_pages, 0, count, addresses, NULL, where, 0)) {
        perror("misplaced: move_pages");
        exit(1);
    }
    long wrong = 0;
    for (size_t page = 0; page < count; page++)
        wrong += where[page] != seat[page / pages_each % (size_t)threads];
    return wrong;
}

static void *watch(void *argument) {
    size_t count = pages_each * (size_t)threads * (size_t)arrays;
    void **addresses = calloc(count, sizeof *addresses);
    int *where = calloc(count, sizeof *where), *before = calloc(count, sizeof *before);
    if (!addresses || !where || !before)
        exit(1);
    for (size_t page = 0; page < count; page++)
        addresses[page] = (char *)data + page * PAGE;
    double last = seconds_now(), area = 0;
    long wrong = misplaced(addresses, before, count, last), moves = 0;
    while (!is_over) {
        nanosleep(&(struct timespec){0, PAUSE_NS}, NULL);
        double now = seconds_now();
        area += (double)wrong * (now - last);
        wrong = misplaced(addresses, where, count, last = now);
        if (ends_early && wrong <= (long)count / 20 && now + 4 < stop_at) {
            stop_at = now + 4;
            ends_early = 0;
        }
        for (size_t page = 0; page < count; page++)
            if (where[page] >= 0) {
                moves += before[page] >= 0 && where[page] != before[page];
                before[page] = where[page];
            }
    }
    double all = 0;
    for (int thread = 0; thread < threads; thread++)
        all += (double)sweeps[thread][0];
    printf("sweeps=%.2f pages=%zu misplaced_end=%ld misplaced_page_s=%.0f page_moves=%ld\n", all / (stop_at - begin),
           count, wrong, area, moves);
    return argument;
}

int main(int count, char **words) {
    if (count < 6)
        return 2;
    kernel = words[1];
    ends_early = strncmp(words[2], "until:", 6) == 0;
    seconds = strtod(words[2] + (ends_early ? 6 : 0), NULL);
    for (char *cpu = strtok(words[4], ","); cpu && threads < MOST; cpu = strtok(NULL, ","))
        cpus[threads++] = atoi(cpu);
    is_serial = strcmp(words[5], "serial") == 0;
    period = count > 6 ? strtod(words[6], NULL) : 0;
    arrays = strcmp(kernel, "triad") == 0 ? 3 : strcmp(kernel, "stencil") == 0 ? 2 : 1;
    pages_each = (strtoul(words[3], NULL, 10) << 20) / PAGE / (size_t)threads;
    words_each = pages_each * PAGE / sizeof *data;
    size_t bytes = words_each * sizeof *data * (size_t)threads * (size_t)arrays;
    data = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (data == MAP_FAILED || madvise(data, bytes, MADV_NOHUGEPAGE)) {
        perror("misplaced");
        return 1;
    }
    for (size_t i = 0; i < ROW / 8; i++)
        vector[i] = 1.0;
    pthread_barrier_init(&ready, NULL, (unsigned)threads + 1);
    pthread_t workers[MOST], watcher;
    for (long i = 0; i < threads; i++)
        if (pthread_create(&workers[i], NULL, work, (void *)i))
            return 1;
    pthread_barrier_wait(&ready);
    pthread_barrier_wait(&ready);
    printf("ready\n");
    fflush(stdout);
    if (pthread_create(&watcher, NULL, watch, NULL))
        return 1;
    for (long i = 0; i < threads; i++)
        pthread_join(workers[i], NULL);
    is_over = 1;
    pthread_join(watcher, NULL);
    return 0;
}
