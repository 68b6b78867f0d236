/* Prints errno after each call, successful or failed: it must be the same with and without the agent. */
#define _GNU_SOURCE
#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <unistd.h>

static volatile size_t huge = (size_t)1 << 60, big = 100000, most = SIZE_MAX;
static void *nothing(void *p) {
    return p;
}
#define SHOW(what)                                                                          \
    do {                                                                                    \
        errno = 77;                                                                         \
        long value = (long)(what);                                                          \
        int error = errno;                                                                  \
        printf("%-40s %s %d\n", #what, value == 0 ? "0" : value == -1 ? "-1" : "+", error); \
    } while (0)

int main(void) {
    void *p = NULL, *q = NULL;
    pthread_t thread;
    SHOW(p = malloc(big));
    SHOW(p = realloc(p, 2 * big));
    SHOW(q = realloc(p, huge));
    SHOW((free(p), 5));
    SHOW((free(NULL), 5));
    SHOW(p = malloc(10 * big * big));
    SHOW((free(p), 5));
    SHOW(malloc(huge));
    SHOW(malloc(most));
    SHOW(calloc(huge, huge));
    SHOW(calloc(huge, 8));
    SHOW(reallocarray(NULL, huge, huge));
    SHOW(posix_memalign(&q, 3, big));
    SHOW(posix_memalign(&q, 64, huge));
    SHOW(posix_memalign(&q, 64, big));
    SHOW(aligned_alloc(64, huge));
    SHOW(memalign(64, big));
    SHOW(memalign(64, most));
    SHOW(valloc(most));
    SHOW(pvalloc(most));
    SHOW(mmap(NULL, huge, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    SHOW(mmap(NULL, big, PROT_READ, MAP_PRIVATE, 999, 0));
    SHOW(p = mmap(NULL, big, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    SHOW(mremap(p, big, huge, 0));
    SHOW(madvise(p, big, MADV_DONTNEED));
    SHOW(madvise((char *)p + 1, big, MADV_DONTNEED));
    SHOW(munmap((char *)p + 1, big));
    SHOW(munmap(p, 0));
    SHOW(munmap(p, big));
    int segment;
    SHOW(segment = shmget(IPC_PRIVATE, big, 0600));
    SHOW(shmat(-1, NULL, 0));
    SHOW(p = shmat(segment, NULL, 0));
    SHOW(shmctl(segment, IPC_RMID, NULL));
    SHOW(shmdt((char *)p + 1));
    SHOW(shmdt(p));
    SHOW(pthread_create(&thread, NULL, nothing, NULL));
    SHOW(pthread_join(thread, NULL));
    SHOW(execl("/nonexistent", "x", (char *)NULL));
    SHOW(execlp("no-such-program", "x", (char *)NULL));
    SHOW(execl("/etc", "x", (char *)NULL));
    SHOW(execl("/etc/passwd", "x", (char *)NULL));
    return 0;
}
