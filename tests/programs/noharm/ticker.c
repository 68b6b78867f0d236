// SPDX-License-Identifier: Apache-2.0 OR MIT
// A worker for tests that interrupt it: `ticker MILLISECONDS FILE` prints "ready", lets two threads walk a 16 MiB
// array and allocate, and at its end writes FILE and prints "done".
// corpus: build = gcc -O2 -g -Wall -Wextra -Werror -pthread {src} -o {out}
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { ARRAY_BYTES = 16 << 20, THREADS = 2 };

static double end_s;
static unsigned char *array;
static atomic_int wrong;

static double now_s(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static void *walk(void *argument) {
    size_t half = ARRAY_BYTES / THREADS;
    volatile unsigned char *mine = array + half * *(size_t *)argument;
    while (now_s() < end_s) {
        for (size_t i = 0; i < half; i += 16)
            mine[i] ^= 1;
        for (size_t i = 0; i < half; i += 16)
            mine[i] ^= 1;
        char *block = malloc(200 * 1000);
        if (!block)
            abort();
        memset(block, 1, 200 * 1000);
        free(block);
    }
    for (size_t i = 0; i < half; i += 16)
        if (mine[i] != 5)
            wrong++;
    return NULL;
}

int main(int argc, char **argv) {
    if (argc != 3)
        return 2;
    array = malloc(ARRAY_BYTES);
    if (!array)
        return 1;
    memset(array, 5, ARRAY_BYTES);
    puts("ready");
    fflush(stdout);
    end_s = now_s() + atof(argv[1]) / 1000;
    pthread_t threads[THREADS];
    size_t numbers[THREADS];
    for (size_t i = 0; i < THREADS; i++) {
        numbers[i] = i;
        if (pthread_create(&threads[i], NULL, walk, &numbers[i]) != 0)
            return 1;
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    FILE *out = fopen(argv[2], "w");
    if (!out || fprintf(out, "wrong bytes %d\n", wrong) < 0 || fclose(out) != 0)
        return 1;
    puts("done");
    free(array);
    return 0;
}
