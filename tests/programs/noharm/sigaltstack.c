// SPDX-License-Identifier: Apache-2.0 OR MIT
// Overflows its stack, catches that on an alternate stack, and recovers with siglongjmp: three times.
// corpus: build = gcc -O1 -g -Wall -Wextra -Werror -Wno-infinite-recursion {src} -o {out}
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

static sigjmp_buf recovery;
static char alternate_stack[64 * 1024];

static void on_fault(int signal_number) {
    (void)signal_number;
    siglongjmp(recovery, 1);
}

static int recurse(int depth) {
    volatile char frame[4096];
    frame[0] = (char)depth;
    frame[4095] = frame[0];
    return recurse(depth + 1) + frame[4095];
}

int main(void) {
    stack_t stack = {.ss_sp = alternate_stack, .ss_size = sizeof alternate_stack};
    struct sigaction action = {.sa_handler = on_fault, .sa_flags = SA_ONSTACK};
    // Without a limit the overflow would take all memory first.
    struct rlimit limit;
    getrlimit(RLIMIT_STACK, &limit);
    limit.rlim_cur = 1 << 20;
    if (setrlimit(RLIMIT_STACK, &limit) != 0 || sigaltstack(&stack, NULL) != 0 ||
        sigaction(SIGSEGV, &action, NULL) != 0)
        return 1;
    for (volatile int round = 0; round < 3; round++) {
        void *block = malloc(256 * 1024);
        if (sigsetjmp(recovery, 1) == 0) {
            printf("unreachable %d\n", recurse(0));
            return 1;
        }
        printf("recovered from overflow %d\n", round);
        free(block);
    }
    return 0;
}
