// SPDX-License-Identifier: Apache-2.0 OR MIT
// Prints where its threads and pages are: placed PAGES. Each thread of an OpenMP team touches PAGES pages of its own first. Prints for
// each thread its CPU and how many of its pages are on each node: `thread 1 cpu 3 node 1: 64`.
// corpus: build = gcc -O2 -g -Wall -Wextra -Werror -fopenmp {src} -o {out}
#define _GNU_SOURCE
#include <omp.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { PAGE = 4096, NODES = 64, MOST = 4096 };

static int show(int thread, int cpu, char *memory, long pages) {
    static void *addresses[MOST];
    static int nodes[MOST];
    long on[NODES] = {0};
    for (long i = 0; i < pages; i++)
        addresses[i] = memory + i * PAGE;
    if (syscall(SYS_move_pages, 0, pages, addresses, NULL, nodes, 0) != 0) {
        perror("move_pages");
        return 1;
    }
    printf("thread %d cpu %d", thread, cpu);
    for (long i = 0; i < pages; i++)
        if (nodes[i] >= 0 && nodes[i] < NODES)
            on[nodes[i]]++;
    for (int node = 0; node < NODES; node++)
        if (on[node])
            printf(" node %d: %ld", node, on[node]);
    puts("");
    return 0;
}

int main(int count, char **words) {
    long pages = count == 2 ? strtol(words[1], NULL, 10) : 0;
    int threads = omp_get_max_threads(), failed = 0;
    if (pages < 1 || pages > MOST)
        return 2;
    size_t bytes = (size_t)pages * PAGE;
    char *memory = mmap(NULL, bytes * (size_t)threads, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    int *cpus = calloc((size_t)threads, sizeof *cpus);
    if (memory == MAP_FAILED || !cpus)
        return 1;
    madvise(memory, bytes * (size_t)threads, MADV_NOHUGEPAGE);
#pragma omp parallel num_threads(threads)
    {
        char *own = memory + (size_t)omp_get_thread_num() * bytes;
        cpus[omp_get_thread_num()] = sched_getcpu();
        for (size_t at = 0; at < bytes; at += PAGE)
            own[at] = 1;
    }
    for (int thread = 0; thread < threads; thread++)
        failed |= show(thread, cpus[thread], memory + (size_t)thread * bytes, pages);
    return failed;
}
