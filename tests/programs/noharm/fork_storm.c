// SPDX-License-Identifier: Apache-2.0 OR MIT
// 200 children, 20 alive at a time; each allocates, touches inherited and own memory, and exits with its number.
// corpus: build = gcc -O2 -g -Wall -Wextra -Werror {src} -o {out}
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CHILDREN = 200, AT_ONCE = 20, BLOCK_BYTES = 512 * 1024 };

int main(void) {
    char *shared = malloc(BLOCK_BYTES);
    if (!shared)
        return 1;
    memset(shared, 1, BLOCK_BYTES);
    int sum = 0;
    for (int first = 0; first < CHILDREN; first += AT_ONCE) {
        pid_t children[AT_ONCE];
        for (int i = 0; i < AT_ONCE; i++) {
            children[i] = fork();
            if (children[i] < 0)
                return 1;
            if (children[i] == 0) {
                char *own = malloc(BLOCK_BYTES);
                if (!own)
                    _exit(255);
                memset(shared, i, BLOCK_BYTES);
                memcpy(own, shared, BLOCK_BYTES);
                int status = first + i + own[BLOCK_BYTES - 1] - i;
                free(own);
                free(shared);
                exit(status);
            }
        }
        for (int i = 0; i < AT_ONCE; i++) {
            int status;
            if (waitpid(children[i], &status, 0) != children[i] || !WIFEXITED(status))
                return 1;
            sum += WEXITSTATUS(status);
        }
    }
    printf("%d children, sum of their statuses %d, parent's memory %s\n", CHILDREN, sum,
           shared[0] == 1 && shared[BLOCK_BYTES - 1] == 1 ? "intact" : "damaged");
    free(shared);
    return 0;
}
