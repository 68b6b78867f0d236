// SPDX-License-Identifier: Apache-2.0 OR MIT
// corpus: build = gcc -O2 -g -Wall -Wextra -pthread {src} -o {out}
//
// Two rings of buffers. A producer fills each buffer in a fast loop, and a consumer adds up its values in a slower one, and waits for the producer by
// design: of ten samples, one shows the producer, who makes half of the accesses.

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#define SLOTS 512
#define WORDS 8192

typedef struct {
    double *buffers, sum;
    long filled, used, messages;
    pthread_mutex_t lock;
    pthread_cond_t changed;
} Ring;

static double *wait_until(Ring *ring, const long *counter, long beyond, long message) {
    pthread_mutex_lock(&ring->lock);
    while (*counter <= beyond)
        pthread_cond_wait(&ring->changed, &ring->lock);
    pthread_mutex_unlock(&ring->lock);
    return ring->buffers + (message % SLOTS) * WORDS;
}

static void count(Ring *ring, long *counter) {
    pthread_mutex_lock(&ring->lock);
    ++*counter;
    pthread_cond_broadcast(&ring->changed);
    pthread_mutex_unlock(&ring->lock);
}

static void *produce(void *argument) {
    Ring *ring = argument;
    for (long message = 0; message < ring->messages; message++) {
        double *buffer = wait_until(ring, &ring->used, message - SLOTS, message);
        for (long i = 0; i < WORDS; i++)
            buffer[i] = (double)message;
        count(ring, &ring->filled);
    }
    return NULL;
}

static void *consume(void *argument) {
    Ring *ring = argument;
    for (long message = 0; message < ring->messages; message++) {
        const double *buffer = wait_until(ring, &ring->filled, message, message);
        double sum = 0;
        for (long i = 0; i < WORDS; i++)
            sum += buffer[i];
        ring->sum += sum;
        count(ring, &ring->used);
    }
    return NULL;
}

int main(int argc, char **argv) {
    static Ring rings[2];
    pthread_t threads[4];
    for (int i = 0; i < 2; i++) {
        Ring *ring = &rings[i];
        ring->buffers = malloc((size_t)SLOTS * WORDS * sizeof(double));
        ring->messages = argc > 1 ? atol(argv[1]) : 180000;
        pthread_mutex_init(&ring->lock, NULL);
        pthread_cond_init(&ring->changed, NULL);
    }
    for (int i = 0; i < 4; i++)
        pthread_create(&threads[i], NULL, i < 2 ? produce : consume, &rings[i % 2]);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    printf("%.10g %.10g\n", rings[0].sum, rings[1].sum);
}
