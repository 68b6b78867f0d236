/* Executes itself by every exec function; each image allocates a block of its own size (100000 + step). The
 * last image prints its environment. With an argument: only one exec, of the rest of the command line. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

extern char **environ;

int main(int argc, char **argv) {
    (void)argc;
    int step = atoi(argv[1]);
    void *block = malloc(100000 + (size_t)step);
    __asm__ volatile("" : : "r"(block) : "memory");
    char next[16];
    snprintf(next, sizeof next, "%d", step + 1);
    char *const arguments[] = {argv[0], next, NULL};
    char *const made[] = {"A=1", getenv("PATH") - 5, "LD_PRELOAD=", "Z=26", NULL};
    fflush(stdout);
    switch (step) {
    case 0:
        execve(argv[0], arguments, environ);
        break;
    case 1:
        execv(argv[0], arguments);
        break;
    case 2:
        execvp("execs", arguments);
        break;
    case 3:
        execl(argv[0], argv[0], next, (char *)NULL);
        break;
    case 4:
        execlp("execs", argv[0], next, (char *)NULL);
        break;
    case 5:
        execveat(AT_FDCWD, argv[0], arguments, environ, 0);
        break;
    case 6:
        fexecve(open(argv[0], O_RDONLY | O_CLOEXEC), arguments, environ);
        break;
    case 7:
        execle(argv[0], argv[0], next, (char *)NULL, made);
        break;
    case 8:
        execvpe("execs", arguments, environ);
        break;
    case 9:
        execveat(open(argv[0], O_RDONLY | O_CLOEXEC), "", arguments, environ, AT_EMPTY_PATH);
        break;
    case 100:
        execvp(argv[2], argv + 2);
        break;
    default:
        for (char **entry = environ; *entry != NULL; entry++) {
            puts(*entry);
        }
        return 7;
    }
    perror("exec");
    return 1;
}
