// SPDX-License-Identifier: Apache-2.0 OR MIT
// corpus: build = gcc -O2 -g -Wall -Wextra -fno-tree-vectorize -fopenmp {src} -o {out}
// corpus: run = {out} --threads 8 --seconds 10 --mib 64 --init serial
//
// Three arrays of a third of --mib, used in blocks: a sweep reads each word of a in a loop and copies b to c with a string
// instruction, which passes a word in steps of a byte. In words all three are accessed equally often. Exits 77 on
// other machines than x86-64.

#include "team.h"

static struct options options;
static size_t words;
static double *a, *b, *c;
static bool wrong;

KERNEL double sum_of(const double *data, struct range mine) {
    double sum = 0.0;
    for (size_t i = mine.begin; i < mine.end; i++)
        sum += data[i];
    return sum;
}

KERNEL void copy(double *to, const double *from, struct range mine) {
    size_t bytes = (mine.end - mine.begin) * sizeof *to;
    to += mine.begin;
    from += mine.begin;
#ifdef __x86_64__
    __asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(bytes) : : "memory");
#else
    memcpy(to, from, bytes);
#endif
}

static void sweep(int thread) {
    const struct range mine = block_of(words, thread, options.threads);
    if (sum_of(a, mine) != (double)(mine.end - mine.begin)) {
#pragma omp atomic write
        wrong = true;
    }
    copy(c, b, mine);
}

int main(int argc, char **argv) {
    options = options_from(argc, argv);
#ifndef __x86_64__
    fprintf(stderr, "this processor has no string instructions\n");
    return 77;
#endif
    words = words_of(&options, 3);
    a = aligned_alloc(PAGE, words * sizeof *a);
    b = aligned_alloc(PAGE, words * sizeof *b);
    c = aligned_alloc(PAGE, words * sizeof *c);
    struct object truth_a = object_of("a", a, words);
    struct object truth_b = object_of("b", b, words);
    struct object truth_c = object_of("c", c, words);
    initialise(&truth_a, a, 1.0, &options, block_of);
    initialise(&truth_b, b, 7.0, &options, block_of);
    initialise(&truth_c, c, 2.0, &options, block_of);

    const uint64_t sweeps = run_sweeps(&options, options.sweeps ? options.sweeps : UINT64_MAX, sweep);

    const struct range first_page = {0, PAGE_WORDS};
    const bool ok = !wrong && all_equal(c, first_page, 7.0);
    count(&truth_c, 0, options.threads, first_page, 1);
    for (int t = 0; t < options.threads; t++) {
        const struct range mine = block_of(words, t, options.threads);
        count(&truth_a, t, options.threads, mine, sweeps);
        count(&truth_b, t, options.threads, mine, sweeps);
        count(&truth_c, t, options.threads, mine, sweeps);
    }
    print_truth(&options, (struct object *[]){&truth_a, &truth_b, &truth_c}, 3);
    return finish(ok);
}
