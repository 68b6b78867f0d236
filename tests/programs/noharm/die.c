// SPDX-License-Identifier: Apache-2.0 OR MIT
// Ends in the way its arguments say: `die exit N`, `die signal N`, `die thread` (exit from a second thread).
// corpus: build = gcc -O2 -g -Wall -Wextra -Werror -pthread {src} -o {out}
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

static void *leave(void *argument) {
    (void)argument;
    exit(42);
}

int main(int argc, char **argv) {
    struct rlimit no_core = {0, 0};
    setrlimit(RLIMIT_CORE, &no_core);
    char *block = malloc(1 << 20);
    if (!block || argc < 2)
        return 2;
    memset(block, 1, 1 << 20);
    printf("about to end by %s %s\n", argv[1], argc > 2 ? argv[2] : "");
    fprintf(stderr, "a line on stderr\n");
    fflush(stdout);
    if (strcmp(argv[1], "thread") == 0) {
        pthread_t thread;
        pthread_create(&thread, NULL, leave, NULL);
        pthread_join(thread, NULL);
    } else if (argc > 2 && strcmp(argv[1], "signal") == 0) {
        if (atoi(argv[2]) == SIGABRT)
            abort();
        kill(getpid(), atoi(argv[2]));
        pause();
    } else if (argc > 2 && strcmp(argv[1], "exit") == 0) {
        return atoi(argv[2]);
    }
    return 2;
}
