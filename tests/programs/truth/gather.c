// SPDX-License-Identifier: Apache-2.0 OR MIT
// corpus: build = gcc -O2 -g -Wall -Wextra -fno-tree-vectorize -fopenmp {src} -o {out}
// corpus: run = {out} --threads 8 --seconds 10 --mib 64 --init serial
//
// to[i] = table[at[i]], with places in the whole table drawn at random before the run: a third of all accesses each. at and to are used in blocks,
// the table by all threads. With --init parallel only the table is remote.

#include "team.h"

static struct options options;
static size_t words;
static double *table, *to;
static size_t *at;

KERNEL void gather(double *into, const double *from, const size_t *places, struct range mine) {
    for (size_t i = mine.begin; i < mine.end; i++)
        into[i] = from[places[i]];
}

static void sweep(int thread) {
    gather(to, table, at, block_of(words, thread, options.threads));
}

// The i-th place: a linear congruential generator (Knuth's constants), drawn anew for each block, so that each thread can make its own.
KERNEL void draw_places(struct range mine) {
    uint64_t state = mine.begin + 1;
    for (size_t i = mine.begin; i < mine.end; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        at[i] = (size_t)((state >> 33) % words);
    }
}

static void make_places(struct object *truth) {
    if (!options.parallel_init) {
        for (int t = 0; t < options.threads; t++)
            draw_places(block_of(words, t, options.threads));
        place(truth, 0, (struct range){0, words});
        return;
    }
#pragma omp parallel num_threads(options.threads)
    draw_places(block_of(words, omp_get_thread_num(), options.threads));
    for (int t = 0; t < options.threads; t++)
        place(truth, t, block_of(words, t, options.threads));
}

int main(int argc, char **argv) {
    options = options_from(argc, argv);
    words = words_of(&options, 3);
    table = aligned_alloc(PAGE, words * sizeof *table);
    at = aligned_alloc(PAGE, words * sizeof *at);
    to = aligned_alloc(PAGE, words * sizeof *to);
    struct object truth_table = object_of("table", table, words);
    struct object truth_at = object_of("at", at, words);
    struct object truth_to = object_of("to", to, words);
    initialise(&truth_table, table, 3.0, &options, block_of);
    initialise(&truth_to, to, 0.0, &options, block_of);
    make_places(&truth_at);

    const uint64_t sweeps = run_sweeps(&options, options.sweeps ? options.sweeps : UINT64_MAX, sweep);

    const struct range first_page = {0, PAGE_WORDS};
    const bool ok = all_equal(to, first_page, 3.0);
    count(&truth_to, 0, options.threads, first_page, 1);
    for (int t = 0; t < options.threads; t++) {
        const struct range mine = block_of(words, t, options.threads);
        count(&truth_at, t, options.threads, mine, sweeps);
        count(&truth_to, t, options.threads, mine, sweeps);
        for (size_t i = mine.begin; i < mine.end; i++)
            count(&truth_table, t, options.threads, (struct range){at[i], at[i] + 1}, sweeps);
    }
    print_truth(&options, (struct object *[]){&truth_table, &truth_at, &truth_to}, 3);
    return finish(ok);
}
