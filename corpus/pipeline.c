// SPDX-License-Identifier: Apache-2.0 OR MIT
// corpus: object = ring
// corpus: finding = no-stable-partition
// corpus: partition = irregular
// corpus: remote = 0.667
// corpus: plan = interleave
// corpus: fix = words
// corpus: build = gcc -O2 -g -Wall -Wextra -pthread {src} -o {out}
// corpus: run = {out}
// corpus: why = Two threads fill slots of a ring and two others read them, twice: work cannot pass from one kind to the other.
//
// Any of the producers (threads 1 and 2, on node 0) fills a slot, any of the consumers (threads 3 and 4, on node 1) reads it, while main
// waits: of three accesses to an element, the two reads are remote.
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { SLOTS = 32, READS = 2 };
static const size_t ELEMENTS = 256 << 10; // of a slot, 2 MiB
static const double RUN_S = 1.2;

struct queue {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    int slot[SLOTS];
    size_t first, count;
};

static struct queue empty = {.mutex = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};
static struct queue filled = {.mutex = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};
static double *ring;
static bool is_over, is_right = true;

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static void put(struct queue *queue, int slot) {
    pthread_mutex_lock(&queue->mutex);
    queue->slot[(queue->first + queue->count++) % SLOTS] = slot;
    pthread_cond_signal(&queue->changed);
    pthread_mutex_unlock(&queue->mutex);
}

// Returns -1 when the queue is empty and the program is about to end.
static int take(struct queue *queue) {
    int slot = -1;
    pthread_mutex_lock(&queue->mutex);
    while (queue->count == 0 && !__atomic_load_n(&is_over, __ATOMIC_ACQUIRE))
        pthread_cond_wait(&queue->changed, &queue->mutex);
    if (queue->count != 0) {
        slot = queue->slot[queue->first];
        queue->first = (queue->first + 1) % SLOTS;
        queue->count--;
    }
    pthread_mutex_unlock(&queue->mutex);
    return slot;
}

static void *produce(void *nothing) {
    const double end = now() + RUN_S;
    for (int slot; now() < end && (slot = take(&empty)) >= 0;) {
        double *x = ring + (size_t)slot * ELEMENTS;
        for (size_t i = 0; i < ELEMENTS; i++)
            x[i] = slot; // @first-touch
        put(&filled, slot);
    }
    return nothing;
}

static void *consume(void *nothing) {
    for (int slot; (slot = take(&filled)) >= 0;) {
        const double *x = ring + (size_t)slot * ELEMENTS;
        for (int read = 0; read < READS; read++) {
            double sum = 0.0;
            for (size_t i = 0; i < ELEMENTS; i++)
                sum += x[i]; // @used
            if (sum != (double)slot * (double)ELEMENTS)
                __atomic_store_n(&is_right, false, __ATOMIC_RELAXED);
        }
        put(&empty, slot);
    }
    return nothing;
}

static void wake_all(struct queue *queue) {
    pthread_mutex_lock(&queue->mutex);
    pthread_cond_broadcast(&queue->changed);
    pthread_mutex_unlock(&queue->mutex);
}

int main(void) {
    pthread_t producers[2], consumers[2];
    ring = malloc(SLOTS * ELEMENTS * sizeof *ring); // @allocated
    if (ring == NULL)
        return 1;
    for (int slot = 0; slot < SLOTS; slot++)
        put(&empty, slot);
    for (int i = 0; i < 2; i++)
        pthread_create(&producers[i], NULL, produce, NULL);
    for (int i = 0; i < 2; i++)
        pthread_create(&consumers[i], NULL, consume, NULL);
    for (int i = 0; i < 2; i++)
        pthread_join(producers[i], NULL);
    __atomic_store_n(&is_over, true, __ATOMIC_RELEASE);
    wake_all(&filled);
    for (int i = 0; i < 2; i++)
        pthread_join(consumers[i], NULL);
    free(ring);
    if (is_right)
        puts("ok");
    return is_right ? 0 : 1;
}
