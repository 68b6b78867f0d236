/* COUNT pairs of allocation and release; then touches the file DONE, if given. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int main(int argc, char **argv) {
    long count = atol(argv[1]);
    for (long i = 0; i < count; i++) {
        void *p = malloc(70000);
        __asm__ volatile("" : : "r"(p) : "memory");
        free(p);
        if (argc > 3) {
            usleep((useconds_t)atoi(argv[3]));
        }
    }
    if (argc > 2) {
        FILE *done = fopen(argv[2], "w");
        if (done != NULL) {
            fclose(done);
        }
    }
    puts("flood done");
    return 0;
}
