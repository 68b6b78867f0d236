/* A child of clone calls exec on a stack of its own; the parent prints how much of that stack it used. */
#define _GNU_SOURCE
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define BYTES 65536

static int by_search(void *name) {
    char *const arguments[] = {name, NULL};
    execvp(name, arguments);
    _exit(1);
}

static int by_path(void *name) {
    char *const arguments[] = {name, NULL};
    execv(name, arguments);
    _exit(1);
}

static int used_by(int (*way)(void *), char *name) {
    unsigned char *stack = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
    memset(stack, 0xa5, BYTES);
    int status, untouched = 0;
    waitpid(clone(way, stack + BYTES, CLONE_VM | CLONE_VFORK | SIGCHLD, name), &status, 0);
    while (stack[untouched] == 0xa5) {
        untouched++;
    }
    return status == 0 ? BYTES - untouched : -1;
}

int main(int argc, char **argv) {
    (void)argv;
    if (argc > 1) { /* an environment that does not fit */
        for (int i = 0; i < 1000; i++) {
            char name[16];
            snprintf(name, sizeof name, "V%d", i);
            setenv(name, "a value", 1);
        }
    }
    used_by(by_search, "true"); /* the first call binds its symbols */
    used_by(by_path, "/bin/true");
    printf("%d %d\n", used_by(by_search, "true"), used_by(by_path, "/bin/true"));
    return 0;
}
