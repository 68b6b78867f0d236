// SPDX-License-Identifier: Apache-2.0 OR MIT
// Allocates in two threads, as fast as possible and sometimes with pauses, and prints for each 100th allocation its size
// and the time before and after it. Sizes are unique.
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static uint64_t now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void *run(void *first) {
    size_t size = 70000 + (size_t)first;
    for (int i = 0; i < 60000; i++) {
        if (i % 100 != 0) {
            void *volatile large = malloc(65536);
            free(large);
            continue;
        }
        uint64_t before = now();
        void *volatile block = malloc(size);
        uint64_t after = now();
        flockfile(stdout);
        printf("%zu %lu %lu\n", size, (unsigned long)before, (unsigned long)after);
        funlockfile(stdout);
        free(block);
        size += 2;
        if (i % 5000 == 0) {
            nanosleep(&(struct timespec){.tv_nsec = 3000000}, NULL);
        }
    }
    return NULL;
}

int main(void) {
    pthread_t thread;
    pthread_create(&thread, NULL, run, (void *)1);
    run((void *)0);
    pthread_join(thread, NULL);
    return 0;
}
