// SPDX-License-Identifier: Apache-2.0 OR MIT
// corpus: build = gcc -O2 -g -Wall -Wextra {src} -o {out}
// corpus: run = {out} --seconds 10 --size 64
//
// For overhead benchmarks: a million allocations for each of --seconds, each followed by one write, a fixed amount of
// work and free. The work (--work steps of a dependent chain) makes it about a million a second on a current
// machine; nothing sleeps and nothing is calibrated, so the run time shows the added cost of each allocation. Prints the
// number of allocations.

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv) {
    double seconds = 10;
    size_t size = 64;
    long work = 880;
    for (int i = 1; i < argc; i += 2) {
        const char *value = i + 1 < argc ? argv[i + 1] : "";
        if (!strcmp(argv[i], "--seconds"))
            seconds = atof(value);
        else if (!strcmp(argv[i], "--size"))
            size = strtoul(value, NULL, 10);
        else if (!strcmp(argv[i], "--work"))
            work = atol(value);
        else
            seconds = 0;
    }
    if (seconds <= 0 || size == 0) {
        fprintf(stderr, "usage: %s [--seconds S] [--size BYTES] [--work STEPS]\n", argv[0]);
        return 2;
    }

    const long allocations = (long)(seconds * 1e6);
    volatile uint64_t sink = 1;
    for (long i = 0; i < allocations; i++) {
        volatile char *memory = malloc(size);
        if (!memory)
            return 1;
        memory[0] = 1;
        uint64_t x = sink;
        for (long step = 0; step < work; step++)
            x = x * UINT64_C(6364136223846793005) + 1;
        sink = x;
        free((void *)memory);
    }
    printf("%ld\n", allocations);
    return 0;
}
