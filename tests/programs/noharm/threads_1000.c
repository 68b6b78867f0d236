// SPDX-License-Identifier: Apache-2.0 OR MIT
// 1,000 short threads, 25 alive at a time; each allocates 128 KiB, touches it, and hands it to its parent to free.
// corpus: build = gcc -O2 -g -Wall -Wextra -Werror -pthread {src} -o {out}
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { THREADS = 1000, AT_ONCE = 25, BLOCK_BYTES = 128 * 1024 };

static void *work(void *argument) {
    unsigned char *block = malloc(BLOCK_BYTES);
    if (block)
        memset(block, (int)(uintptr_t)argument & 0xff, BLOCK_BYTES);
    return block;
}

int main(void) {
    unsigned long sum = 0;
    for (int first = 0; first < THREADS; first += AT_ONCE) {
        pthread_t threads[AT_ONCE];
        for (int i = 0; i < AT_ONCE; i++)
            if (pthread_create(&threads[i], NULL, work, (void *)(uintptr_t)(first + i)) != 0)
                return 1;
        for (int i = 0; i < AT_ONCE; i++) {
            void *result;
            pthread_join(threads[i], &result);
            unsigned char *block = result;
            if (!block)
                return 1;
            sum += block[0] + block[BLOCK_BYTES - 1];
            free(block);
        }
    }
    printf("%d threads, sum %lu\n", THREADS, sum);
    return 0;
}
