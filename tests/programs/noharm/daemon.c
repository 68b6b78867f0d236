// SPDX-License-Identifier: Apache-2.0 OR MIT
// Leaves a child behind that outlives it. The child waits for the file in argument 1, then writes argument 2.
// corpus: build = gcc -O2 -g -Wall -Wextra -Werror {src} -o {out}
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

int main(int argc, char **argv) {
    if (argc != 3)
        return 2;
    char *block = malloc(1 << 20);
    if (!block)
        return 1;
    memset(block, 5, 1 << 20);
    pid_t child = fork();
    if (child < 0)
        return 1;
    if (child > 0) {
        puts("the parent leaves");
        return 3;
    }
    setsid();
    int null = open("/dev/null", O_RDWR);
    for (int number = 0; number < 3; number++)
        dup2(null, number);
    struct timespec tick = {0, 20 * 1000 * 1000};
    for (int i = 0; i < 3000 && access(argv[1], F_OK) != 0; i++) {
        char *own = malloc(200 * 1000);
        if (own)
            memset(own, i, 200 * 1000);
        free(own);
        nanosleep(&tick, NULL);
    }
    FILE *out = fopen(argv[2], "w");
    if (!out)
        return 1;
    fprintf(out, "the child was here, memory %s\n", block[(1 << 20) - 1] == 5 ? "intact" : "damaged");
    return fclose(out) != 0;
}
