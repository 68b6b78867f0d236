// SPDX-License-Identifier: Apache-2.0 OR MIT
// A timer's handler maps and unmaps memory while the main thread is inside the allocator: a recorder that took a lock
// would hang here.
// corpus: build = gcc -O2 -g -Wall -Wextra -Werror {src} -o {out}
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <unistd.h>

static volatile sig_atomic_t mapped;

static void on_alarm(int signal_number) {
    (void)signal_number;
    size_t bytes = 256 * 1024;
    char *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        _exit(3);
    memory[0] = 1;
    munmap(memory, bytes);
    mapped++;
}

int main(void) {
    struct sigaction action = {.sa_handler = on_alarm, .sa_flags = SA_RESTART};
    struct itimerval interval = {{0, 500}, {0, 500}};
    if (sigaction(SIGALRM, &action, NULL) != 0 || setitimer(ITIMER_REAL, &interval, NULL) != 0)
        return 1;
    while (mapped < 400) {
        char *block = malloc(100 * 1000);
        if (!block)
            return 1;
        block[0] = 1;
        free(block);
    }
    puts("400 mappings from a handler");
    return 0;
}
