/* exec with pointers that cannot be read, or that end where memory does: an error, not a fault. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define TRY(call) (errno = 0, result = (int)(call), printf("%s: %d %d\n", #call, result, errno))

int main(void) {
    char *const arguments[] = {"true", NULL};
    char *bad[] = {"A=1", (char *)8, NULL};
    char *pages = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    mprotect(pages + 4096, 4096, PROT_NONE);
    char **unended = (char **)(pages + 4096 - 2 * sizeof(char *));
    unended[0] = unended[1] = "A=1";
    char *unended_text = memcpy(pages + 4096 - 10, "LD_PRELOAD", 10);
    char *with_text[] = {unended_text, NULL};
    int result;
    pid_t child;
    TRY(execve("/bin/true", arguments, (char **)8));
    TRY(execve("/bin/true", arguments, (char **)9));
    TRY(execve("/bin/true", arguments, (char **)-8));
    TRY(execve("/bin/true", arguments, bad));
    TRY(execve("/bin/true", arguments, unended));
    TRY(execve("/bin/true", arguments, with_text));
    TRY(execve((char *)8, arguments, NULL));
    TRY(execve(NULL, arguments, NULL));
    TRY(execveat(AT_FDCWD, (char *)8, arguments, NULL, AT_EMPTY_PATH));
    TRY(execveat(3000, "", arguments, NULL, AT_EMPTY_PATH));
    TRY(fexecve(-1, arguments, bad));
    TRY(posix_spawn(&child, "/bin/true", NULL, NULL, arguments, bad));
    TRY(posix_spawn(&child, (char *)8, NULL, NULL, arguments, NULL));
    return 3;
}
