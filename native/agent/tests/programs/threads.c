/* 1000 short threads that end in every way: return, pthread_exit, cancellation, detached; with small stacks and
 * allocations in thread-specific destructors. Prints the sum of their results. */
#define _GNU_SOURCE
#include <limits.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static pthread_key_t key;
static int detached_done, destroyed;
static void destroy(void *p) {
    free(p);
    void *q = malloc(90000);
    __asm__ volatile("" : : "r"(q) : "memory");
    free(q);
    __atomic_fetch_add(&destroyed, 1, __ATOMIC_RELAXED);
}
static void *run(void *argument) {
    uintptr_t number = (uintptr_t)argument;
    pthread_setspecific(key, malloc(80000));
    switch (number % 4) {
    case 0:
        return argument;
    case 1:
        pthread_exit(argument);
    case 2:
        for (;;) {
            pause();
        }
    default:
        __atomic_fetch_add(&detached_done, 1, __ATOMIC_RELEASE);
        return NULL;
    }
}

int main(void) {
    uintptr_t sum = 0, cancelled = 0;
    pthread_key_create(&key, destroy);
    pthread_attr_t small;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, (size_t)PTHREAD_STACK_MIN);
    for (uintptr_t i = 0; i < 1000; i += 8) {
        pthread_t thread[8];
        for (uintptr_t k = 0; k < 8; k++) {
            if (pthread_create(&thread[k], k < 4 ? &small : NULL, run, (void *)(i + k)) != 0) {
                puts("pthread_create failed");
                return 1;
            }
        }
        for (uintptr_t k = 0; k < 8; k++) {
            void *result = NULL;
            if (k % 4 == 2) {
                pthread_cancel(thread[k]);
            }
            if (k % 4 == 3) {
                pthread_detach(thread[k]);
            } else {
                pthread_join(thread[k], &result);
                if (result == PTHREAD_CANCELED) {
                    cancelled++;
                } else {
                    sum += (uintptr_t)result;
                }
            }
        }
    }
    while (__atomic_load_n(&detached_done, __ATOMIC_ACQUIRE) != 250) {
        usleep(1000);
    }
    usleep(50000);
    printf("sum %lu cancelled %lu destroyed %d\n", (unsigned long)sum, (unsigned long)cancelled, destroyed);
    return 0;
}
