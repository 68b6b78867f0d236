// SPDX-License-Identifier: Apache-2.0 OR MIT
// corpus: build = gcc -O2 -g -Wall -Wextra -fno-tree-vectorize -fopenmp {src} -o {out}
// corpus: run = {out} --threads 8 --seconds 10 --mib 96 --init serial
//
// One block that holds three arrays. The threads that use a and b fill them, and one thread fills c, with --init serial. So an eighth of the accesses is
// remote on two nodes: each round reads and writes a, and reads b and c once.

#include "team.h"

static struct options options;
static size_t words;
static double *a, *b, *c;

static void sweep(int thread) {
    const struct range mine = block_of(words, thread, options.threads);
    for (size_t i = mine.begin; i < mine.end; i++)
        a[i] += 1e-9 * b[i] * c[i];
}

static struct range part_of(struct range part, size_t array) {
    return (struct range){array * words + part.begin, array * words + part.end};
}

int main(int argc, char **argv) {
    options = options_from(argc, argv);
    words = words_of(&options, 3);
    double *block = aligned_alloc(PAGE, 3 * words * sizeof *block);
    a = block;
    b = a + words;
    c = b + words;
    struct object truth = object_of("block", block, 3 * words);
#pragma omp parallel num_threads(options.threads)
    {
        write_words(a, block_of(words, omp_get_thread_num(), options.threads), 1.0);
        write_words(b, block_of(words, omp_get_thread_num(), options.threads), 2.0);
        if (options.parallel_init)
            write_words(c, block_of(words, omp_get_thread_num(), options.threads), 3.0);
    }
    if (!options.parallel_init)
        write_words(c, (struct range){0, words}, 3.0);

    const uint64_t sweeps = run_sweeps(&options, UINT64_MAX, sweep);

    for (int t = 0; t < options.threads; t++) {
        const struct range mine = block_of(words, t, options.threads);
        for (size_t array = 0; array < 3; array++) {
            place(&truth, options.parallel_init || array < 2 ? t : 0, part_of(mine, array));
            count(&truth, t, options.threads, part_of(mine, array), array == 0 ? 2 * sweeps : sweeps);
        }
    }
    print_truth(&options, (struct object *[]){&truth}, 1);
    return finish(a[0] > 1.0);
}
