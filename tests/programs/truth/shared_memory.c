// SPDX-License-Identifier: Apache-2.0 OR MIT
// corpus: build = gcc -O2 -g -Wall -Wextra {src} -o {out}
// corpus: run = {out} anonymous
//
// shared_memory anonymous|mapped|segment|private [SECONDS [MIB]]: a parent fills memory, and forks two children, each of which reads one half of it
// until the time is up.
//
//   anonymous  one anonymous shared mapping, which the children inherit
//   mapped     each process maps the same memory file (memfd_create), at an address of its own
//   segment    each process attaches the same System V segment, at an address of its own
//   private    one private mapping: after the fork, each child writes its half, and then has pages of its own

#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { CHILDREN = 2 };

static double seconds_now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static uint64_t *map(size_t bytes, int flags, int file) {
    uint64_t *shared = mmap(NULL, bytes, PROT_READ | PROT_WRITE, flags, file, 0);
    if (shared == MAP_FAILED) {
        perror("mmap");
        exit(1);
    }
    return shared;
}

static uint64_t *attach(int segment) {
    uint64_t *shared = shmat(segment, NULL, 0);
    if (shared == (void *)-1) {
        perror("shmat");
        exit(1);
    }
    return shared;
}

__attribute__((noinline)) static void fill(uint64_t *words, size_t number) {
    for (size_t i = 0; i < number; i++)
        words[i] = i;
}

__attribute__((noinline)) static uint64_t sum(const uint64_t *words, size_t number) {
    uint64_t all = 0;
    for (size_t i = 0; i < number; i++)
        all += ((const volatile uint64_t *)words)[i];
    return all;
}

int main(int argc, char **argv) {
    const char *how = argc > 1 ? argv[1] : "";
    const double seconds = argc > 2 ? atof(argv[2]) : 2;
    const size_t bytes = (size_t)(argc > 3 ? atoi(argv[3]) : 256) << 20, words = bytes / sizeof(uint64_t);
    const int is_mapped = !strcmp(how, "mapped"), is_segment = !strcmp(how, "segment"),
              is_private = !strcmp(how, "private");
    if (!is_mapped && !is_segment && !is_private && strcmp(how, "anonymous") != 0) {
        fprintf(stderr, "usage: %s anonymous|mapped|segment|private [SECONDS [MIB]]\n", argv[0]);
        return 2;
    }
    const int file = is_mapped ? memfd_create("halves", 0) : -1;
    if (is_mapped && (file < 0 || ftruncate(file, (off_t)bytes) != 0)) {
        perror("memfd_create");
        return 1;
    }
    const int flags = is_mapped ? MAP_SHARED : MAP_ANONYMOUS | (is_private ? MAP_PRIVATE : MAP_SHARED);
    const int segment = is_segment ? shmget(IPC_PRIVATE, bytes, 0600) : -1;
    if (is_segment && segment < 0) {
        perror("shmget");
        return 1;
    }
    uint64_t *shared = is_segment ? attach(segment) : map(bytes, flags, file);
    // It goes when the last process has ended, and can be attached until then.
    if (is_segment)
        shmctl(segment, IPC_RMID, NULL);
    fill(shared, words);
    for (int child = 0; child < CHILDREN; child++) {
        if (fork() != 0)
            continue;
        uint64_t *own = shared;
        if (is_mapped) {
            // Memory between the two keeps the addresses different.
            munmap(shared, bytes);
            mmap(NULL, (size_t)(child + 1) << 21, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
            own = map(bytes, flags, file);
        }
        if (is_segment) {
            shmdt(shared);
            mmap(NULL, (size_t)(child + 1) << 21, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
            own = attach(segment);
        }
        uint64_t *half = own + words / CHILDREN * (size_t)child;
        if (is_private)
            fill(half, words / CHILDREN);
        uint64_t all = 0;
        for (const double end = seconds_now() + seconds; seconds_now() < end;)
            all += sum(half, words / CHILDREN);
        _exit(all == 0);
    }
    int status = 0;
    for (int child = 0; child < CHILDREN; child++) {
        int one = 0;
        wait(&one);
        status |= one;
    }
    return status != 0;
}
