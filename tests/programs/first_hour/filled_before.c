// SPDX-License-Identifier: Apache-2.0 OR MIT
// corpus: build = gcc -O2 -g -Wall -Wextra -fopenmp {src} -o {out}
// corpus: run = {out} fill /dev/shm/NAME
//
// `fill FILE` writes a file in shared memory, and `read FILE THREADS` reads it: it is where the other process ran. One thread reads all of it,
// as if for a check, and then THREADS threads read a block each for three seconds.
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { BYTES = 64 << 20 };

int main(int argc, char **argv) {
    if (argc < 3)
        return 2;
    const int file = open(argv[2], O_RDWR | O_CREAT, 0600);
    if (file < 0 || ftruncate(file, BYTES) != 0)
        return 1;
    double *words = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (words == MAP_FAILED)
        return 1;
    if (strcmp(argv[1], "fill") == 0) {
        memset(words, 1, BYTES);
        return 0;
    }
    double sum = 0;
    for (size_t i = 0; i < BYTES / sizeof *words; i++)
        sum += words[i];
    for (const time_t end = time(NULL) + 3; time(NULL) < end;) {
#pragma omp parallel for schedule(static) reduction(+ : sum) num_threads(argc > 3 ? atoi(argv[3]) : 1)
        for (size_t i = 0; i < BYTES / sizeof *words; i++)
            sum += words[i];
    }
    puts(sum > 0 ? "ok" : "wrong");
    return 0;
}
