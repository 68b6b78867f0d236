// SPDX-License-Identifier: Apache-2.0 OR MIT
// Binds arrays to nodes, in pages of each kind, with a thread on each node that has CPUs, and waits to be killed:
//
//     two_arrays NODE:CPU...     (CPU -: a node without CPUs, and no thread)
//
// Prints a line for each array, START END KIND POLICY NODE=BYTES..., where the bytes are the kernel's answers (move_pages as a
// query) for its pages; then `ready`. KIND is base (4 KiB), transparent (2 MiB) or hugetlb (2 MiB, MAP_HUGETLB).
// corpus: build = gcc -O2 -g -Wall -Wextra -Werror -pthread {src} -o {out}
#define _GNU_SOURCE
#include <errno.h>
#include <linux/mempolicy.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { BASE = 4096, HUGE = 2 << 20, MOST_NODES = 8, BYTES = 2 * HUGE };

static void fail(const char *what) {
    fprintf(stderr, "two_arrays: %s: %s\n", what, strerror(errno));
    exit(1);
}

/* BYTES at a multiple of a huge page, apart from other mappings, so that the kernel does not join it to them. */
static char *map_apart(int flags) {
    char *room = mmap(NULL, BYTES + 2 * HUGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (room == MAP_FAILED)
        fail("mmap");
    char *start = room + HUGE - (uintptr_t)room % HUGE;
    char *array = mmap(start, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | flags, -1, 0);
    if (array == MAP_FAILED)
        fail("mmap of an array");
    return array;
}

/* An array of a kind, under a policy for the nodes of a mask; prints its line. */
static void place(const char *kind, const char *policy_name, int policy, unsigned long mask) {
    int is_hugetlb = strcmp(kind, "hugetlb") == 0, is_transparent = strcmp(kind, "transparent") == 0;
    char *array = map_apart(is_hugetlb ? MAP_HUGETLB : 0);
    if (!is_hugetlb && madvise(array, BYTES, is_transparent ? MADV_HUGEPAGE : MADV_NOHUGEPAGE))
        fail("madvise");
    if (syscall(SYS_mbind, array, (unsigned long)BYTES, policy, &mask, 8 * sizeof mask, 0UL))
        fail("mbind");
    memset(array, 1, BYTES);

    size_t step = is_hugetlb ? HUGE : BASE, bytes_on[MOST_NODES] = {0};
    for (size_t at = 0; at < BYTES; at += step) {
        void *page = array + at;
        int node = -1;
        if (syscall(SYS_move_pages, 0, 1UL, &page, NULL, &node, 0) || node < 0 || node >= MOST_NODES)
            fail("move_pages");
        bytes_on[node] += step;
    }
    printf("%lu %lu %s %s", (unsigned long)array, (unsigned long)array + BYTES, kind, policy_name);
    for (int node = 0; node < MOST_NODES; node++)
        if (bytes_on[node] > 0)
            printf(" %d=%zu", node, bytes_on[node]);
    printf("\n");
}

static void *wait_on(void *name) {
    pthread_setname_np(pthread_self(), name);
    while (pause())
        ;
    return NULL;
}

int main(int count, char **words) {
    unsigned long all = 0;
    for (int i = 1; i < count; i++) {
        char *end, policy[32], *name = malloc(16);
        unsigned long node = strtoul(words[i], &end, 10);
        if (*end != ':' || node >= MOST_NODES || !name)
            return 2;
        all |= 1UL << node;
        snprintf(policy, sizeof policy, "bind:%lu", node);
        place("base", policy, MPOL_BIND, 1UL << node);
        place("transparent", policy, MPOL_BIND, 1UL << node);
        place("hugetlb", policy, MPOL_BIND, 1UL << node);
        if (end[1] == '-')
            continue;
        cpu_set_t cpus;
        CPU_ZERO(&cpus);
        CPU_SET(strtoul(end + 1, NULL, 10), &cpus);
        pthread_attr_t attributes;
        pthread_t thread;
        snprintf(name, 16, "on-node-%lu", node);
        pthread_attr_init(&attributes);
        pthread_attr_setaffinity_np(&attributes, sizeof cpus, &cpus);
        if (pthread_create(&thread, &attributes, wait_on, name))
            fail("pthread_create");
    }
    place("base", "interleave", MPOL_INTERLEAVE, all);
    printf("ready\n");
    fflush(stdout);
    while (pause())
        ;
}
