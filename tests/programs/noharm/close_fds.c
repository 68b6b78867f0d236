// SPDX-License-Identifier: Apache-2.0 OR MIT
// Closes every file descriptor from 3 on at its start, as daemons do, then works and opens files of its own.
// corpus: build = gcc -O2 -g -Wall -Wextra -Werror {src} -o {out}
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int main(void) {
    int closed = 0;
    for (int number = 3; number < 1024; number++)
        closed += close(number) == 0;
    int opened = open("/dev/zero", O_RDONLY);
    long sum = 0;
    for (int i = 0; i < 100; i++) {
        size_t bytes = 128 * 1024 + (size_t)i * 4096;
        char *block = malloc(bytes);
        if (!block)
            return 1;
        memset(block, 1, bytes);
        if (read(opened, block, bytes / 2) != (ssize_t)(bytes / 2))
            return 1;
        sum += block[0] + block[bytes - 1];
        free(block);
    }
    printf("closed %d, first free descriptor %d, sum %ld\n", closed, opened, sum);
    return 0;
}
