// SPDX-License-Identifier: Apache-2.0 OR MIT
// A child of clone has 4 KiB of stack, with a guard below, when it calls execvp.
// corpus: build = gcc -O2 -g -Wall -Wextra -Werror {src} -o {out}
#define _GNU_SOURCE
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static int run(void *nothing) {
    (void)nothing;
    char *const arguments[] = {"true", NULL};
    execvp("true", arguments);
    _exit(1);
}

int main(void) {
    setenv("PATH", "/usr/bin:/bin", 1);
    char *stack = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (stack == MAP_FAILED || mprotect(stack, 4096, PROT_NONE) != 0) {
        return 1;
    }
    int status = -1;
    waitpid(clone(run, stack + 8192, CLONE_VM | CLONE_VFORK | SIGCHLD, NULL), &status, 0);
    printf("status %x\n", (unsigned)status);
    return status != 0;
}
