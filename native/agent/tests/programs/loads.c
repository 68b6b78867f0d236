/* dlopen and dlclose in loops while other threads allocate, and from within a constructor (the library named by the
 * argument allocates in its own). */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static int stop;
static void *allocate(void *unused) {
    (void)unused;
    while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
        void *p = malloc(70000);
        __asm__ volatile("" : : "r"(p) : "memory");
        free(p);
    }
    return NULL;
}
static void load_times(const char *name, int times) {
    for (int i = 0; i < times; i++) {
        void *library = dlopen(name, RTLD_NOW);
        if (library == NULL) {
            puts(dlerror());
            exit(1);
        }
        dlclose(library);
    }
}
static void *load(void *name) {
    load_times(name, 2000);
    return NULL;
}
int main(int argc, char **argv) {
    (void)argc;
    pthread_t loader[2], worker[2];
    load_times(argv[1], 150); /* alone: each of these runs the constructor, while two at a time may share a library */
    for (int i = 0; i < 2; i++) {
        pthread_create(&worker[i], NULL, allocate, NULL);
        pthread_create(&loader[i], NULL, load, argv[1]);
    }
    for (int i = 0; i < 2; i++) {
        pthread_join(loader[i], NULL);
    }
    stop = 1;
    for (int i = 0; i < 2; i++) {
        pthread_join(worker[i], NULL);
    }
    puts("loads done");
    return 0;
}
