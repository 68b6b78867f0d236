// SPDX-License-Identifier: Apache-2.0 OR MIT
// Allows itself four file descriptors, then allocates, starts threads and opens a file: a profiler can use none of them.
// corpus: build = gcc -O2 -g -Wall -Wextra -Werror -pthread {src} -o {out}
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

static void *work(void *argument) {
    (void)argument;
    char *block = malloc(1 << 20);
    if (block)
        memset(block, 1, 1 << 20);
    return block;
}

int main(void) {
    struct rlimit limit = {4, 4};
    if (setrlimit(RLIMIT_NOFILE, &limit) != 0)
        return 1;
    long sum = 0;
    for (int i = 0; i < 50; i++) {
        pthread_t thread;
        void *block;
        if (pthread_create(&thread, NULL, work, NULL) != 0 || pthread_join(thread, &block) != 0 || !block)
            return 1;
        sum += *(char *)block;
        free(block);
    }
    int first = open("/dev/null", O_RDONLY), second = open("/dev/null", O_RDONLY);
    printf("sum %ld, descriptors %d %d\n", sum, first, second);
    return 0;
}
