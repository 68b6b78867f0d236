// SPDX-License-Identifier: Apache-2.0 OR MIT
// corpus: build = gcc -O2 -g -Wall -Wextra -fno-tree-vectorize -fopenmp {src} -o {out}
// corpus: run = {out} --threads 4 --seconds 10 --mib 128 --init serial
//
// Two arrays of the same size, half of --mib each, each read and written once in a sweep. Chunks of a go to whichever thread is free; b has blocks. So
// between two looks at a thread, its place in a has passed the chunks of the others too. With --init serial one thread fills a, and the threads fill their
// blocks of b: a quarter of the accesses is remote on two nodes.

#include "team.h"

enum { CHUNK = 1 << 12, MAX_CHUNKS = 1 << 16 };

static struct options options;
static size_t words;
static double *a, *b;
static uint32_t (*taken)[MAX_CHUNKS]; // by thread and chunk

KERNEL void scale(double *x, struct range part) {
    for (size_t i = part.begin; i < part.end; i++)
        x[i] *= 1.0000001;
}

KERNEL void add(double *x, struct range part) {
    for (size_t i = part.begin; i < part.end; i++)
        x[i] += 0.5;
}

static struct range chunk_of(size_t chunk) {
    const size_t begin = chunk * CHUNK;
    return (struct range){begin, begin + CHUNK < words ? begin + CHUNK : words};
}

static void sweep(int thread) {
#pragma omp for schedule(dynamic, 1)
    for (size_t chunk = 0; chunk < (words + CHUNK - 1) / CHUNK; chunk++) {
        scale(a, chunk_of(chunk));
        taken[thread][chunk]++;
    }
    add(b, block_of(words, thread, options.threads));
}

int main(int argc, char **argv) {
    options = options_from(argc, argv);
    words = words_of(&options, 2);
    if (words > (size_t)MAX_CHUNKS * CHUNK)
        usage(argv[0]);
    taken = calloc((size_t)options.threads, sizeof *taken);
    a = aligned_alloc(PAGE, words * sizeof *a);
    b = aligned_alloc(PAGE, words * sizeof *b);
    struct object truth_a = object_of("a", a, words);
    struct object truth_b = object_of("b", b, words);
    initialise(&truth_a, a, 1.0, &options, block_of);
    initialise_by_users(&truth_b, b, 2.0, options.threads, block_of);

    const uint64_t sweeps = run_sweeps(&options, UINT64_MAX, sweep);

    for (int t = 0; t < options.threads; t++) {
        for (size_t chunk = 0; chunk < (words + CHUNK - 1) / CHUNK; chunk++)
            count(&truth_a, t, options.threads, chunk_of(chunk), 2 * (uint64_t)taken[t][chunk]);
        count(&truth_b, t, options.threads, block_of(words, t, options.threads), 2 * sweeps);
    }
    print_truth(&options, (struct object *[]){&truth_a, &truth_b}, 2);
    return finish(b[0] == 2.0 + 0.5 * (double)sweeps);
}
