// SPDX-License-Identifier: Apache-2.0 OR MIT
// Runs for 20 ms: it ends before a sampling window does.
// corpus: build = gcc -O2 -g -Wall -Wextra -Werror {src} -o {out}
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static double now_s(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

int main(void) {
    double end_s = now_s() + 0.020;
    size_t count = 1 << 16;
    double *values = malloc(count * sizeof *values);
    if (!values)
        return 1;
    for (size_t i = 0; i < count; i++)
        values[i] = 1.0;
    while (now_s() < end_s)
        for (size_t i = 1; i < count; i++)
            values[i] = 0.5 * (values[i] + values[i - 1]);
    printf("last %.1f\n", values[count - 1]);
    free(values);
    return 0;
}
