/* Allocations, 30 ms apart: three of 2 MiB (malloc, mmap, realloc), smaller ones, and a mapped file of 2 MiB. Prints errno after each. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

enum { LARGE = 2 << 20 };

static void next(const char *what, const void *block) {
    printf("%s %s %d\n", what, block != NULL && block != MAP_FAILED ? "ok" : "failed", errno);
    usleep(30000);
    errno = 77;
}

int main(void) {
    int fd = memfd_create("file", MFD_CLOEXEC);
    if (fd < 0 || ftruncate(fd, LARGE) != 0) {
        return 1;
    }
    usleep(30000);
    errno = 77;
    void *block = malloc(LARGE);
    next("malloc", block);
    next("small malloc", malloc(70000));
    next("mmap", mmap(NULL, LARGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    next("file", mmap(NULL, LARGE, PROT_READ, MAP_PRIVATE, fd, 0));
    next("small mmap", mmap(NULL, 80000, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    next("realloc", realloc(block, 2 * LARGE));
    return 0;
}
