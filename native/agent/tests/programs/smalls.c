/* Small blocks from every function of malloc's family, in threads, whose number and bytes it prints:
 *   smalls COUNT THREADS
 * One line a function: name, blocks, bytes. A handler that allocates nothing runs at 1 kHz. */
#define _GNU_SOURCE
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>

enum { KINDS = 4 };
static long count;
static unsigned long blocks[KINDS], bytes[KINDS];
static const char *const names[KINDS] = {"malloc", "calloc", "realloc", "aligned"};

static __attribute__((noinline)) void *by_malloc(size_t size) {
    return malloc(size);
}
static __attribute__((noinline)) void *by_calloc(size_t size) {
    return calloc(size, 1);
}
static __attribute__((noinline)) void *by_realloc(size_t size) {
    return realloc(malloc(0), size);
}
static __attribute__((noinline)) void *by_aligned(size_t size) {
    void *block = NULL;
    return posix_memalign(&block, 64, size) == 0 ? block : NULL;
}

static void *run(void *seed) {
    unsigned long state = (unsigned long)seed * 2654435761u + 1;
    void *kept[64] = {0};
    for (long i = 0; i < count; i++) {
        state = state * 6364136223846793005ul + 1442695040888963407ul;
        size_t size = 1 + (state >> 33) % 4000;
        int kind = (int)(i % 4);
        void *block = kind == 0   ? by_malloc(size)
                      : kind == 1 ? by_calloc(size)
                      : kind == 2 ? by_realloc(size)
                                  : by_aligned(size);
        if (block == NULL)
            abort();
        __atomic_fetch_add(&blocks[kind], 1, __ATOMIC_RELAXED);
        __atomic_fetch_add(&bytes[kind], size, __ATOMIC_RELAXED);
        free(kept[i % 64]);
        kept[i % 64] = block;
    }
    for (int i = 0; i < 64; i++)
        free(kept[i]);
    return NULL;
}

static void handle(int signal) {
    (void)signal;
}

int main(int argc, char **argv) {
    count = argc > 1 ? atol(argv[1]) : 1000;
    long threads = argc > 2 ? atol(argv[2]) : 1;
    struct itimerval timer = {{0, 1000}, {0, 1000}};
    signal(SIGALRM, handle);
    setitimer(ITIMER_REAL, &timer, NULL);
    pthread_t ids[64];
    for (long i = 0; i < threads && i < 64; i++)
        pthread_create(&ids[i], NULL, run, (void *)(i + 1));
    for (long i = 0; i < threads && i < 64; i++)
        pthread_join(ids[i], NULL);
    for (int kind = 0; kind < KINDS; kind++)
        printf("%s %lu %lu\n", names[kind], blocks[kind], bytes[kind]);
    return 0;
}
