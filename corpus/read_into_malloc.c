// SPDX-License-Identifier: Apache-2.0 OR MIT
// corpus: object = a
// corpus: finding = io-first-touch
// corpus: partition = block
// corpus: remote = 0.5
// corpus: fix = edit: #pragma omp parallel for num_threads(THREADS) schedule(static)
// corpus: build = gcc -O2 -g -Wall -Wextra -fopenmp {src} -o {out}
// corpus: run = {out}
// corpus: why = read() into fresh memory: the kernel touches every page on behalf of the one thread that reads.

#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

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
    return file && fflush(file) == 0 ? file : NULL;
}

int main(void) {
    FILE *input = make_input();
    double *a = malloc(N * sizeof *a); // @allocated
    if (!input || !a || lseek(fileno(input), 0, SEEK_SET) != 0)
        return 1;
    for (size_t done = 0; done < N * sizeof *a;) {
        const ssize_t got = read(fileno(input), (char *)a + done, N * sizeof *a - done); // @first-touch
        if (got <= 0)
            return 1;
        done += (size_t)got;
    }
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
