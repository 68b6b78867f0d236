// SPDX-License-Identifier: Apache-2.0 OR MIT
// corpus: build = gcc -O2 -g -Wall -Wextra {src} -o {out}
// corpus: run = {out}
//
// A server forks four children for each step, which takes some milliseconds, and waits for them: no child lives long enough to be judged by itself, but
// the first child of each step always reads the first quarter of a table that the server filled. Each child also fills and uses memory of its own.

#define _GNU_SOURCE
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define N ((size_t)4 << 20)   // 32 MiB
#define OWN ((size_t)1 << 18) // 2 MiB
#define TEAM 4
#define PASSES 6
#define SECONDS 2.0

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

static void child(const volatile double *table, size_t member) {
    double sum = 0;
    volatile double *own = malloc(OWN * sizeof *own);
    if (!own) {
        _exit(1);
    }
    for (size_t i = 0; i < OWN; i++) {
        own[i] = (double)i;
    }
    for (int pass = 0; pass < PASSES; pass++) {
        for (size_t i = N / TEAM * member; i < N / TEAM * (member + 1); i++) {
            sum += table[i];
        }
        for (size_t i = 0; i < OWN; i++) {
            own[i] += sum;
        }
    }
    _exit(0);
}

int main(void) {
    double *table = mmap(NULL, N * sizeof *table, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (table == MAP_FAILED) {
        return 1;
    }
    for (size_t i = 0; i < N; i++) {
        table[i] = 1.0; // @first-touch
    }
    int failed = 0;
    for (double start = now(); now() - start < SECONDS;) {
        for (size_t member = 0; member < TEAM; member++) {
            const pid_t pid = fork();
            if (pid == 0) {
                child(table, member);
            }
            failed += pid < 0;
        }
        for (int status; wait(&status) > 0;) {
            failed += status != 0;
        }
    }
    puts(failed ? "a child failed" : "ok");
    return failed != 0;
}
