// SPDX-License-Identifier: Apache-2.0 OR MIT
// corpus: object = image
// corpus: finding = io-first-touch
// corpus: partition = block
// corpus: remote = 0.5
// corpus: fix = edit: #pragma omp parallel for num_threads(THREADS) schedule(static)
// corpus: build = gcc -O2 -g -Wall -Wextra -fopenmp {src} -o {out}
// corpus: run = {out}
// corpus: why = A big fread bypasses the stream's buffer: glibc hands the fresh array to read(), so the kernel touches it.

#include <omp.h>
#include <stdio.h>
#include <stdlib.h>

enum { THREADS = 4, BLOCK = 8192 };
static const size_t N = (size_t)4 << 20; // doubles: 32 MiB
static const double RUN_S = 1.2;

// A temporary file of N doubles, value i % BLOCK.
static FILE *make_input(void) {
    static double block[BLOCK];
    for (int i = 0; i < BLOCK; i++)
        block[i] = i;
    FILE *file = tmpfile();
    for (size_t i = 0; file && i < N; i += BLOCK)
        if (fwrite(block, sizeof block, 1, file) != 1)
            return NULL;
    return file;
}

int main(void) {
    FILE *input = make_input();
    double *image = malloc(N * sizeof *image); // @allocated
    if (!input || !image)
        return 1;
    rewind(input);
    if (fread(image, sizeof *image, N, input) != N) // @first-touch
        return 1;
    fclose(input);

    long sweeps = 0;
    for (double end = omp_get_wtime() + RUN_S; omp_get_wtime() < end; sweeps++) {
#pragma omp parallel for num_threads(THREADS) schedule(static)
        for (size_t i = 0; i < N; i++)
            image[i] += 1.0; // @used
    }

    int bad = 0;
    for (size_t i = 0; i < N; i++)
        bad |= image[i] != (double)(i % BLOCK) + (double)sweeps;
    puts(bad ? "bad" : "ok");
    free(image);
    return bad;
}
