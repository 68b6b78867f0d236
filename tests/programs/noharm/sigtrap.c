// SPDX-License-Identifier: Apache-2.0 OR MIT
// Counts its own SIGTRAPs, from raise() and from a breakpoint instruction, as a debugger-like runtime does.
// corpus: build = gcc -O2 -g -Wall -Wextra -Werror {src} -o {out}
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static volatile sig_atomic_t trap_count;

static void on_trap(int signal_number) {
    (void)signal_number;
    trap_count++;
}

int main(void) {
    struct sigaction action = {.sa_handler = on_trap};
    sigaction(SIGTRAP, &action, NULL);
    size_t bytes = 1 << 20;
    char *block = malloc(bytes);
    if (!block)
        return 1;
    for (int i = 0; i < 1000; i++) {
        raise(SIGTRAP);
#if defined(__x86_64__)
        __asm__ volatile("int3");
#else
        raise(SIGTRAP);
#endif
        memset(block, i, bytes);
    }
    printf("traps %d last byte %d\n", (int)trap_count, block[bytes - 1]);
    free(block);
    return trap_count == 2000 ? 0 : 1;
}
