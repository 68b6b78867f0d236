// SPDX-License-Identifier: Apache-2.0 OR MIT
// A 1 ms interval timer whose handler interrupts computation, sleeps and system calls; this exposes a profiler that
// delays or swallows signals, or restarts calls.
// corpus: build = gcc -O2 -g -Wall -Wextra -Werror {src} -o {out}
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static volatile sig_atomic_t ticks;

static void on_alarm(int signal_number) {
    (void)signal_number;
    ticks++;
}

int main(void) {
    struct sigaction action = {.sa_handler = on_alarm}; // no SA_RESTART: calls end with EINTR
    struct itimerval interval = {{0, 1000}, {0, 1000}};
    if (sigaction(SIGALRM, &action, NULL) != 0 || setitimer(ITIMER_REAL, &interval, NULL) != 0)
        return 1;
    int interrupted_sleeps = 0;
    for (int i = 0; i < 20; i++) {
        struct timespec pause_time = {10, 0}, left;
        if (nanosleep(&pause_time, &left) != 0 && errno == EINTR)
            interrupted_sleeps++;
    }
    int ends[2], interrupted_reads = 0;
    char byte;
    if (pipe(ends) != 0)
        return 1;
    for (int i = 0; i < 20; i++)
        if (read(ends[0], &byte, 1) < 0 && errno == EINTR)
            interrupted_reads++;
    while (ticks < 300) {
        size_t bytes = 70000;
        char *block = malloc(bytes);
        if (!block)
            return 1;
        memset(block, 1, bytes);
        free(block);
    }
    printf("interrupted sleeps %d, interrupted reads %d, ticks enough %s\n", interrupted_sleeps, interrupted_reads,
           ticks >= 300 ? "yes" : "no");
    return 0;
}
