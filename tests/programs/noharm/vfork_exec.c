// SPDX-License-Identifier: Apache-2.0 OR MIT
// vfork + exec: the child runs on its parent's stack and memory until it execs.
// corpus: build = gcc -O2 -g -Wall -Wextra -Werror -Wno-clobbered -Wno-deprecated-declarations {src} -o {out}
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

int main(void) {
    size_t bytes = 1 << 20;
    char *block = malloc(bytes);
    if (!block)
        return 1;
    memset(block, 7, bytes);
    volatile int failed_exec = 0, good = 0;
    for (volatile int i = 0; i < 50; i++) {
        const char *program = i % 5 == 4 ? "/nonexistent/program" : "/bin/sh";
        pid_t child = vfork();
        if (child == 0) {
            execl(program, "sh", "-c", "exit 5", (char *)NULL);
            _exit(99);
        }
        int status;
        if (child < 0 || waitpid(child, &status, 0) != child || !WIFEXITED(status))
            return 1;
        good += WEXITSTATUS(status) == 5;
        failed_exec += WEXITSTATUS(status) == 99;
    }
    printf("children %d, execs that failed %d, block %s\n", good, failed_exec,
           block[0] == 7 && block[bytes - 1] == 7 ? "intact" : "damaged");
    free(block);
    return 0;
}
