/* Children created in every way: 200001 fork, 200002 raw fork, 200003 grandchild, 200004 vfork (the parent's memory),
 * 200005 after exec in a child (never recorded without FOLLOW), 200010 the parent at the end. */
#define _GNU_SOURCE
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;
__attribute__((noinline)) static void *allocate(size_t size) {
    void *p = malloc(size);
    __asm__ volatile("" : : "r"(p) : "memory");
    return p;
}
static int end_of(pid_t child) {
    int status = -1;
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

int main(int argc, char **argv) {
    if (argc > 1) { /* run by the parent below */
        free(allocate((size_t)atoi(argv[1])));
        return getenv("LD_PRELOAD") != NULL || getenv("FIRSTTOUCH_AGENT") != NULL ? 1 : 0;
    }
    void *before = allocate(200000);
    pid_t child = fork();
    if (child == 0) {
        free(before);
        free(allocate(200001));
        pid_t grandchild = fork();
        if (grandchild == 0) {
            free(allocate(200003));
            _exit(3);
        }
        _exit(end_of(grandchild));
    }
    printf("fork %d\n", end_of(child));
    child = (pid_t)syscall(SYS_clone, 17 /* SIGCHLD */, 0, 0, 0, 0);
    if (child == 0) {
        allocate(200002);
        _exit(2);
    }
    printf("raw fork %d\n", end_of(child));
    child = vfork();
    if (child == 0) {
        free(allocate(200004));
        char *const arguments[] = {argv[0], "200005", NULL};
        execve("/nonexistent", arguments, environ);
        execv(argv[0], arguments);
        _exit(99);
    }
    printf("vfork %d\n", end_of(child));
    char *const arguments[] = {argv[0], "200005", NULL};
    posix_spawn(&child, argv[0], NULL, NULL, arguments, environ);
    printf("spawn %d\n", end_of(child));
    posix_spawnp(&child, "forks", NULL, NULL, arguments, environ);
    printf("spawnp %d\n", end_of(child));
    fflush(stdout);
    printf("system %d\n", system("env | grep -c -e LD_PRELOAD -e FIRSTTOUCH"));
    FILE *pipe = popen("env | grep -c -e LD_PRELOAD -e FIRSTTOUCH", "r");
    char line[16] = "";
    printf("popen %s", fgets(line, sizeof line, pipe) != NULL ? line : "?\n");
    pclose(pipe);
    child = fork();
    if (child == 0) {
        execl(argv[0], argv[0], "200005", (char *)NULL);
        _exit(99);
    }
    printf("fork and exec %d\n", end_of(child));
    free(allocate(200010));
    free(before);
    return 0;
}
