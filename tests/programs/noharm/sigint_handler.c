// SPDX-License-Identifier: Apache-2.0 OR MIT
// Exits 7 from its SIGINT handler. `self` sends the signal itself; `wait` prints "ready" and waits for it; `count`
// prints "ready", and after the first SIGINT waits half a second more and prints how many came.
// corpus: build = gcc -O2 -g -Wall -Wextra -Werror {src} -o {out}
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static volatile sig_atomic_t interrupts;
static int leave_at_once = 1;

static void on_interrupt(int signal_number) {
    (void)signal_number;
    interrupts++;
    if (leave_at_once) {
        static const char text[] = "interrupted\n";
        if (write(STDOUT_FILENO, text, sizeof text - 1) < 0)
            _exit(8);
        _exit(7);
    }
}

int main(int argc, char **argv) {
    const char *mode = argc > 1 ? argv[1] : "self";
    leave_at_once = strcmp(mode, "count") != 0;
    struct sigaction action = {.sa_handler = on_interrupt};
    sigaction(SIGINT, &action, NULL);
    char *block = malloc(4 << 20);
    if (!block)
        return 1;
    memset(block, 1, 4 << 20);
    puts("ready");
    fflush(stdout);
    if (strcmp(mode, "self") == 0)
        kill(getpid(), SIGINT);
    struct timespec tick = {0, 10 * 1000 * 1000};
    for (int i = 0; i < 3000 && interrupts == 0; i++)
        nanosleep(&tick, NULL);
    for (int i = 0; i < 50; i++)
        nanosleep(&tick, NULL);
    printf("interrupts %d\n", (int)interrupts);
    return interrupts ? 7 : 1;
}
