// SPDX-License-Identifier: Apache-2.0 OR MIT
// Copies stdin to stdout through one big fresh buffer: stdin must stay the program's, and every byte must be copied.
// corpus: build = gcc -O2 -g -Wall -Wextra -Werror {src} -o {out}
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int main(void) {
    size_t bytes = 1 << 20;
    char *buffer = malloc(bytes);
    if (!buffer)
        return 1;
    ssize_t count;
    while ((count = read(STDIN_FILENO, buffer, bytes)) > 0)
        for (ssize_t written = 0; written < count;) {
            ssize_t part = write(STDOUT_FILENO, buffer + written, (size_t)(count - written));
            if (part < 0)
                return 1;
            written += part;
        }
    free(buffer);
    return count < 0;
}
