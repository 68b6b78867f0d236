/* Three parallel regions of three threads. With -DOWN_TOOL it brings its own OMPT tool. */
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>

#ifdef OWN_TOOL
struct result {
    int (*initialize)(void *, int, void *);
    void (*finalize)(void *);
    unsigned long data;
};
static int initialize(void *lookup, int device, void *data) {
    (void)lookup, (void)device, (void)data;
    puts("own tool");
    return 1;
}
static void finalize(void *data) {
    (void)data;
}
struct result *ompt_start_tool(unsigned version, const char *runtime) {
    (void)version, (void)runtime;
    static struct result result = {initialize, finalize, 0};
    return &result;
}
#endif

int main(void) {
    size_t n = 100000;
    double *a = malloc(n * sizeof *a), sum = 0;
    for (int round = 0; round < 2; round++) {
#pragma omp parallel for num_threads(3) schedule(static)
        for (size_t i = 0; i < n; i++) {
            a[i] = (double)i;
        }
    }
#pragma omp parallel for num_threads(3) reduction(+ : sum)
    for (size_t i = 0; i < n; i++) {
        sum += a[i];
    }
    printf("%.0f\n", sum);
    free(a);
    return 0;
}
