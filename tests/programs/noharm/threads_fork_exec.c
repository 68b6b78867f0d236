// SPDX-License-Identifier: Apache-2.0 OR MIT
// Threads that allocate without pause while others fork (the child allocates: a lock held by a vanished thread would
// hang it) and fork + exec.
// corpus: build = gcc -O2 -g -Wall -Wextra -Werror -pthread {src} -o {out}
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ALLOCATORS = 3, FORKERS = 3, FORKS = 40, BLOCK_BYTES = 96 * 1024 };

static atomic_int stop;

static void *allocate(void *argument) {
    (void)argument;
    while (!atomic_load(&stop)) {
        char *block = malloc(BLOCK_BYTES);
        if (!block)
            abort();
        block[0] = block[BLOCK_BYTES - 1] = 1;
        free(block);
    }
    return NULL;
}

static void *fork_children(void *argument) {
    long *sum = argument;
    for (int i = 0; i < FORKS; i++) {
        pid_t child = fork();
        if (child == 0) {
            if (i % 2)
                execl("/bin/sh", "sh", "-c", "exit 3", (char *)NULL);
            char *block = malloc(BLOCK_BYTES);
            if (!block)
                _exit(100);
            memset(block, 3, BLOCK_BYTES);
            int status = block[BLOCK_BYTES - 1];
            free(block);
            _exit(status);
        }
        int status;
        if (child < 0 || waitpid(child, &status, 0) != child || !WIFEXITED(status))
            abort();
        *sum += WEXITSTATUS(status);
    }
    return NULL;
}

int main(void) {
    pthread_t allocators[ALLOCATORS], forkers[FORKERS];
    long sums[FORKERS] = {0}, total = 0;
    for (int i = 0; i < ALLOCATORS; i++)
        if (pthread_create(&allocators[i], NULL, allocate, NULL) != 0)
            return 1;
    for (int i = 0; i < FORKERS; i++)
        if (pthread_create(&forkers[i], NULL, fork_children, &sums[i]) != 0)
            return 1;
    for (int i = 0; i < FORKERS; i++) {
        pthread_join(forkers[i], NULL);
        total += sums[i];
    }
    atomic_store(&stop, 1);
    for (int i = 0; i < ALLOCATORS; i++)
        pthread_join(allocators[i], NULL);
    printf("%d children, sum of statuses %ld\n", FORKERS * FORKS, total);
    return 0;
}
