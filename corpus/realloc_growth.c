// SPDX-License-Identifier: Apache-2.0 OR MIT
// corpus: object = samples
// corpus: finding = serial-first-touch
// corpus: partition = block
// corpus: cause = realloc
// corpus: remote = 0.5
// corpus: fix = words
// corpus: build = gcc -O2 -g -Wall -Wextra -fopenmp {src} -o {out}
// corpus: run = {out}
// corpus: why = The main thread appends to an array that realloc doubles; moving it (mremap) keeps the pages on its node.

#include <omp.h>
#include <stdio.h>
#include <stdlib.h>

enum { THREADS = 4 };
static const size_t N = (size_t)4 << 20; // doubles: 32 MiB in the end
static const double RUN_S = 1.2;

int main(void) {
    double *samples = NULL;
    size_t count = 0, room = 0;
    while (count < N) {
        if (count == room) {
            room = room ? 2 * room : 1024;
            samples = realloc(samples, room * sizeof *samples); // @allocated
            if (!samples)
                return 1;
        }
        samples[count] = (double)(count % 8); // @first-touch
        count++;
    }

    int bad = 0;
    for (double end = omp_get_wtime() + RUN_S; omp_get_wtime() < end;) {
        double sum = 0.0;
#pragma omp parallel for num_threads(THREADS) schedule(static) reduction(+ : sum)
        for (size_t i = 0; i < count; i++)
            sum += samples[i]; // @used
        bad |= sum != 3.5 * (double)N;
    }
    puts(bad ? "bad" : "ok");
    free(samples);
    return bad;
}
