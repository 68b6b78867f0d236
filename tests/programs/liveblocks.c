// SPDX-License-Identifier: Apache-2.0 OR MIT
// corpus: build = gcc -O2 {src} -o {out}
// liveblocks COUNT BYTES RATE: allocates COUNT blocks of BYTES, RATE a second, that all live until the end; a page of each is touched. Prints
// the rate that it reached. (docs/scale.md: records of allocations that are dropped.)
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

int main(int count, char **words) {
    if (count != 4) {
        fprintf(stderr, "usage: liveblocks COUNT BYTES RATE\n");
        return 2;
    }
    long blocks = atol(words[1]), bytes = atol(words[2]);
    double rate = atof(words[3]), began = now();
    char **all = malloc((size_t)blocks * sizeof *all);
    if (all == NULL) {
        return 1;
    }
    for (long at = 0; at < blocks; at++) {
        // Each 16 blocks, the time is looked at.
        while (at % 16 == 0 && (now() - began) * rate < (double)at) {
        }
        all[at] = malloc((size_t)bytes);
        if (all[at] == NULL) {
            return 1;
        }
        *(volatile char *)all[at] = 1;
    }
    double took = now() - began;
    printf("%ld blocks of %ld bytes: %.0f a second\n", blocks, bytes, (double)blocks / took);
    // Not freed: a million calls of free take some 20 ms.
    return 0;
}
