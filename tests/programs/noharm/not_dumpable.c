// SPDX-License-Identifier: Apache-2.0 OR MIT
// Forbids core dumps and with them other processes' view of /proc/PID (maps, mem, fd) while it runs.
// corpus: build = gcc -O2 -g -Wall -Wextra -Werror -pthread {src} -o {out}
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

static void *work(void *argument) {
    (void)argument;
    char *block = malloc(1 << 20);
    if (block)
        memset(block, 1, 1 << 20);
    free(block);
    return NULL;
}

int main(void) {
    if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0)
        return 1;
    for (int i = 0; i < 100; i++) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, work, NULL) != 0)
            return 1;
        pthread_join(thread, NULL);
    }
    printf("dumpable %d\n", prctl(PR_GET_DUMPABLE, 0, 0, 0, 0));
    return 0;
}
