/* Starts a program (the rest of the command line) by every function that starts programs, and waits for each. */
#define _GNU_SOURCE
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static void wait_for(pid_t child) {
    int status = -1;
    waitpid(child, &status, 0);
    printf("status %x\n", status);
    fflush(stdout);
}

int main(int argc, char **argv) {
    (void)argc;
    char **command = argv + 1, line[4096] = "";
    char *const small[] = {"A=1", NULL};
    for (char **word = command; *word != NULL; word++) {
        strcat(strcat(line, *word), " ");
    }
    pid_t child;
    if (posix_spawn(&child, command[0], NULL, NULL, command, environ) == 0) {
        wait_for(child);
    }
    if (posix_spawnp(&child, command[0], NULL, NULL, command, small) == 0) {
        wait_for(child);
    }
    if ((child = vfork()) == 0) {
        execve(command[0], command, environ);
        _exit(127);
    }
    wait_for(child);
    if ((child = fork()) == 0) {
        execvp(command[0], command);
        _exit(127);
    }
    wait_for(child);
    printf("system %d\n", system(line));
    fflush(stdout);
    FILE *pipe = popen(line, "r");
    for (int byte; (byte = getc(pipe)) != EOF;) {
        putchar(byte);
    }
    printf("popen %d\n", pclose(pipe));
    return 0;
}
