// SPDX-License-Identifier: Apache-2.0 OR MIT
// A program that mostly sleeps in system calls, with bursts of work between them. It prints how many calls ended early (EINTR) or
// transferred less than they were asked for; this exposes a profiler that interrupts system calls.
// corpus: build = gcc -O2 -g -Wall -Wextra -Werror -pthread {src} -o {out}
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

enum { ROUNDS = 200, BLOCK = 1 << 20, WORDS = 1 << 16 };

static int ends[2];
static double array[WORDS];
static unsigned char sent[BLOCK], received[BLOCK];

static double seconds(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* A few milliseconds of CPU time, in which timers of the thread's CPU clock expire. */
static double work(void) {
    const double end = seconds(CLOCK_THREAD_CPUTIME_ID) + 0.003;
    double sum = 0;
    while (seconds(CLOCK_THREAD_CPUTIME_ID) < end)
        for (int i = 0; i < WORDS; i++)
            sum += array[i] += 1.0;
    return sum;
}

/* Each write is larger than the pipe, so it sleeps until the reader has taken most of it. */
static void *write_blocks(void *result) {
    long *early = result;
    for (int round = 0; round < ROUNDS; round++)
        *early += write(ends[1], sent, sizeof sent) != (ssize_t)sizeof sent;
    return NULL;
}

int main(void) {
    struct timespec pause_time = {0, 2000000};
    int epoll = epoll_create1(0);
    pthread_t writer;
    long early = 0, early_writes = 0;
    double sum = 0;
    if (epoll < 0 || pipe(ends) != 0)
        return 1;
    memset(sent, 7, sizeof sent);
    printf("ready\n");
    fflush(stdout);
    if (pthread_create(&writer, NULL, write_blocks, &early_writes) != 0)
        return 1;
    for (int round = 0; round < ROUNDS; round++) {
        struct epoll_event event;
        sum += work();
        early += nanosleep(&pause_time, NULL) != 0;
        early += poll(NULL, 0, 2) != 0;
        early += epoll_wait(epoll, &event, 1, 2) != 0;
        for (size_t got = 0; got < sizeof received;) {
            const ssize_t count = read(ends[0], received + got, sizeof received - got);
            if (count <= 0) {
                early++;
                break;
            }
            got += (size_t)count;
        }
    }
    pthread_join(writer, NULL);
    printf("calls that ended early: %ld, short writes: %ld, received %s\n", early, early_writes,
           memcmp(sent, received, sizeof sent) == 0 && sum > 0 ? "whole" : "damaged");
    return 0;
}
