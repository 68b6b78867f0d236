// SPDX-License-Identifier: Apache-2.0 OR MIT
// corpus: build = gcc -O2 -g -Wall -Wextra {src} -o {out}
// corpus: run = {out} --gib 8
//
// For overhead benchmarks: touches --gib GiB once, one write for each 4 KiB page, in chunks of 256 MiB that are mapped
// and unmapped again, so that the time is all page faults and the memory needed is one chunk. Prints ok.

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

int main(int argc, char **argv) {
    const size_t page = 4096, chunk = (size_t)256 << 20;
    double gib = 8;
    if (argc == 3 && !strcmp(argv[1], "--gib"))
        gib = atof(argv[2]);
    if (gib <= 0 || (argc != 1 && argc != 3)) {
        fprintf(stderr, "usage: %s [--gib G]\n", argv[0]);
        return 2;
    }
    for (size_t left = (size_t)(gib * (1 << 30)); left >= page;) {
        const size_t bytes = left < chunk ? left / page * page : chunk;
        volatile char *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (memory == MAP_FAILED) {
            perror("mmap");
            return 1;
        }
        madvise((void *)memory, bytes, MADV_NOHUGEPAGE); // refused only where there are no huge pages anyway
        for (size_t i = 0; i < bytes; i += page)
            memory[i] = 1;
        munmap((void *)memory, bytes);
        left -= bytes;
    }
    puts("ok");
    return 0;
}
