// SPDX-License-Identifier: Apache-2.0 OR MIT
// posix_spawn with file actions and a chosen environment: the child prints all that it inherited.
// corpus: build = gcc -O2 -g -Wall -Wextra -Werror {src} -o {out}
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static int spawn_and_read(char *const environment[], char *output, size_t output_bytes) {
    int ends[2];
    if (pipe(ends) != 0)
        return -1;
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    posix_spawn_file_actions_addclose(&actions, ends[0]);
    posix_spawn_file_actions_addclose(&actions, ends[1]);
    pid_t child;
    char *arguments[] = {"env", NULL};
    int error = posix_spawn(&child, "/usr/bin/env", &actions, NULL, arguments, environment);
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    size_t used = 0;
    ssize_t count;
    while (used + 1 < output_bytes && (count = read(ends[0], output + used, output_bytes - 1 - used)) > 0)
        used += (size_t)count;
    output[used] = 0;
    close(ends[0]);
    int status = -1;
    if (error == 0)
        waitpid(child, &status, 0);
    return status;
}

int main(void) {
    static char output[1 << 16];
    char *block = malloc(1 << 20);
    if (!block)
        return 1;
    memset(block, 1, 1 << 20);
    char *small[] = {"ONE=1", "TWO=2", NULL};
    int status = spawn_and_read(small, output, sizeof output);
    printf("status %d, a chosen environment:\n%s", status, output);
    status = spawn_and_read(environ, output, sizeof output);
    printf("status %d, the inherited environment:\n%s", status, output);
    char *none[] = {NULL};
    status = spawn_and_read(none, output, sizeof output);
    printf("status %d, an empty environment:\n%s", status, output);
    free(block);
    return 0;
}
