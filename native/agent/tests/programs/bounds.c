/* Repeated allocations at one place in the code, on threads of many stack sizes; prints how many. The number of STACK
 * records tells the test that ids are stable, and the cost benchmark that the cache is used. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static void *run(void *unused) {
    for (int i = 0; i < 100; i++) {
        void *p = malloc(70000);
        __asm__ volatile("" : : "r"(p) : "memory");
        free(p);
    }
    return unused;
}
int main(void) {
    for (size_t kib = 32; kib <= 32768; kib *= 2) {
        pthread_t thread;
        pthread_attr_t attributes;
        pthread_attr_init(&attributes);
        pthread_attr_setstacksize(&attributes, kib << 10);
        pthread_create(&thread, &attributes, run, NULL);
        pthread_join(thread, NULL);
    }
    run(NULL);
    puts("1200");
    return 0;
}
