// SPDX-License-Identifier: Apache-2.0 OR MIT
// corpus: object = a
// corpus: finding = none
// corpus: partition = single
// corpus: remote = 0.0
// corpus: build = gcc -O2 -g -Wall -Wextra {src} -o {out}
// corpus: run = {out}
// corpus: why = Near miss of serial_loop: one thread touches everything first, but it is also the only one that uses it.

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static const size_t N = (size_t)4 << 20; // doubles: 32 MiB
static const double RUN_S = 1.2;

static double seconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

int main(void) {
    double *a = malloc(N * sizeof *a); // @allocated
    if (!a)
        return 1;
    for (size_t i = 0; i < N; i++)
        a[i] = 1.0; // @first-touch

    long sweeps = 0;
    for (double end = seconds() + RUN_S; seconds() < end; sweeps++)
        for (size_t i = 0; i < N; i++)
            a[i] += 1.0; // @used

    int bad = 0;
    for (size_t i = 0; i < N; i++)
        bad |= a[i] != 1.0 + (double)sweeps;
    puts(bad ? "bad" : "ok");
    free(a);
    return bad;
}
