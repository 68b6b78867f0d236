// SPDX-License-Identifier: Apache-2.0 OR MIT
// Threads that are cancelled, that exit early with destructors of their own data, and that outlive main's return
// through pthread_exit.
// corpus: build = gcc -O2 -g -Wall -Wextra -Werror -pthread {src} -o {out}
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static pthread_key_t key;
static atomic_int destructors, cleanups;

static void destroy(void *block) {
    free(block);
    // Allocates while the thread's own data is being torn down: the recorder's thread state may be gone already.
    char *late = malloc(200 * 1000);
    if (late)
        late[0] = 1;
    free(late);
    destructors++;
}

static void clean_up(void *block) {
    free(block);
    cleanups++;
}

static void *wait_for_cancel(void *argument) {
    (void)argument;
    char *block = malloc(128 * 1024), *own = malloc(128 * 1024);
    if (!block || !own)
        abort();
    memset(block, 1, 128 * 1024);
    memset(own, 1, 128 * 1024);
    pthread_setspecific(key, own);
    pthread_cleanup_push(clean_up, block);
    for (;;)
        pause();
    pthread_cleanup_pop(1);
    return NULL;
}

static void *outlive_main(void *argument) {
    (void)argument;
    struct timespec nap = {0, 50 * 1000 * 1000};
    nanosleep(&nap, NULL);
    printf("after main: destructors %d, cleanups %d\n", destructors, cleanups);
    return NULL;
}

int main(void) {
    pthread_key_create(&key, destroy);
    for (int i = 0; i < 100; i++) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, wait_for_cancel, NULL) != 0)
            return 1;
        struct timespec nap = {0, 1000 * 1000};
        nanosleep(&nap, NULL);
        pthread_cancel(thread);
        pthread_join(thread, NULL);
    }
    pthread_t last;
    if (pthread_create(&last, NULL, outlive_main, NULL) != 0)
        return 1;
    pthread_exit(NULL);
}
