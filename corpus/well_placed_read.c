// SPDX-License-Identifier: Apache-2.0 OR MIT
// corpus: object = a
// corpus: finding = none
// corpus: partition = block
// corpus: remote = 0.0
// corpus: build = gcc -O2 -g -Wall -Wextra -fopenmp {src} -o {out}
// corpus: run = {out}
// corpus: why = Near miss of fread_into_malloc: a parallel loop touches the array before one thread reads the file into it.

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
    double *a = malloc(N * sizeof *a); // @allocated
    if (!input || !a)
        return 1;
#pragma omp parallel for num_threads(THREADS) schedule(static)
    for (size_t i = 0; i < N; i++)
        a[i] = 0.0; // @first-touch
    rewind(input);
    if (fread(a, sizeof *a, N, input) != N)
        return 1;
    fclose(input);

    int bad = 0;
    for (double end = omp_get_wtime() + RUN_S; omp_get_wtime() < end;) {
        double sum = 0.0;
#pragma omp parallel for num_threads(THREADS) schedule(static) reduction(+ : sum)
        for (size_t i = 0; i < N; i++)
            sum += a[i]; // @used
        bad |= sum != 0.5 * (BLOCK - 1) * (double)N;
    }
    puts(bad ? "bad" : "ok");
    free(a);
    return bad;
}
