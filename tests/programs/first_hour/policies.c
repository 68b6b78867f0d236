// SPDX-License-Identifier: Apache-2.0 OR MIT
// corpus: build = gcc -O2 -g -Wall -Wextra -fopenmp {src} -o {out}
// corpus: run = {out} set|bind|none
//
// One thread fills an array that all threads use in blocks. Its policy: interleaved by set_mempolicy (set), by mbind (bind), or none.
// Without a library for it: the system calls are called directly.

#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define INTERLEAVE 3

static const size_t N = (size_t)4 << 20; // 32 MiB

int main(int count, char **arguments) {
    const char *how = count > 1 ? arguments[1] : "none";
    unsigned long nodes = 1;
    omp_set_num_threads(4);
    if (strcmp(how, "set") == 0 && syscall(SYS_set_mempolicy, INTERLEAVE, &nodes, 8 * sizeof nodes) != 0) {
        perror("set_mempolicy");
        return 77;
    }
    double *field = mmap(NULL, N * sizeof *field, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (field == MAP_FAILED) {
        return 1;
    }
    if (strcmp(how, "bind") == 0 &&
        syscall(SYS_mbind, field, N * sizeof *field, INTERLEAVE, &nodes, 8 * sizeof nodes, 0) != 0) {
        perror("mbind");
        return 77;
    }
    for (size_t i = 0; i < N; i++) {
        field[i] = 1.0;
    }
    double start = omp_get_wtime(), sum = 0;
    while (omp_get_wtime() - start < 2.5) {
#pragma omp parallel for schedule(static) reduction(+ : sum)
        for (size_t i = 0; i < N; i++) {
            sum += field[i];
        }
    }
    puts(sum > 0 ? "ok" : "wrong");
    return 0;
}
