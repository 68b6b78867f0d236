// SPDX-License-Identifier: Apache-2.0 OR MIT
// A static binary: no loader, so no agent. It must run as it does bare, and the profile must say what is missing.
// corpus: build = gcc -O2 -g -Wall -Wextra -Werror -static -pthread {src} -o {out}
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BYTES = 32 << 20, THREADS = 4, PASSES = 20 };

static unsigned char *array;

static void *sum_block(void *argument) {
    unsigned long *result = argument;
    unsigned long block = *result, sum = 0;
    for (int pass = 0; pass < PASSES; pass++)
        for (size_t i = block * (BYTES / THREADS); i < (block + 1) * (BYTES / THREADS); i++)
            sum += array[i];
    *result = sum;
    return NULL;
}

int main(void) {
    array = malloc(BYTES);
    if (!array)
        return 1;
    memset(array, 3, BYTES);
    pthread_t threads[THREADS];
    unsigned long results[THREADS], total = 0;
    for (unsigned long i = 0; i < THREADS; i++) {
        results[i] = i;
        if (pthread_create(&threads[i], NULL, sum_block, &results[i]) != 0)
            return 1;
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        total += results[i];
    }
    printf("total %lu\n", total);
    free(array);
    return 0;
}
