// SPDX-License-Identifier: Apache-2.0 OR MIT
// corpus: build = gcc -O2 -g -Wall -Wextra -fno-tree-vectorize -fopenmp {src} -o {out}
// corpus: run = {out} --threads 8 --seconds 10 --mib 64 --init serial
//
// One array, dealt to the threads page by page (512 doubles): page p belongs to thread p mod T. A sweep reads and
// writes each word once. With --init parallel each page is initialised by its user.

#include "team.h"

static struct options options;
static size_t pages;
static double *a;

static struct range page_range(size_t page) {
    return (struct range){page * PAGE_WORDS, (page + 1) * PAGE_WORDS};
}

KERNEL void add(double *data, struct range range, double value) {
    for (size_t i = range.begin; i < range.end; i++)
        data[i] += value;
}

static void sweep(int thread) {
    for (size_t page = (size_t)thread; page < pages; page += (size_t)options.threads)
        add(a, page_range(page), 1.0);
}

int main(int argc, char **argv) {
    options = options_from(argc, argv);
    pages = words_of(&options, 1) / PAGE_WORDS;
    const int threads = options.threads;
    a = aligned_alloc(PAGE, pages * PAGE);
    struct object truth_a = object_of("a", a, pages * PAGE_WORDS);
    const int init_threads = options.parallel_init ? threads : 1;
#pragma omp parallel for num_threads(init_threads) schedule(static, 1)
    for (size_t page = 0; page < pages; page++)
        write_words(a, page_range(page), 0.0);
    for (size_t page = 0; page < pages; page++)
        count(&truth_a, (int)(page % (size_t)init_threads), threads, page_range(page), 1);

    const uint64_t sweeps = run_sweeps(&options, UINT64_MAX, sweep);

    const bool ok = all_equal(a, page_range(0), (double)sweeps);
    count(&truth_a, 0, threads, page_range(0), 1);
    for (size_t page = 0; page < pages; page++)
        count(&truth_a, (int)(page % (size_t)threads), threads, page_range(page), 2 * sweeps);
    print_truth(&options, (struct object *[]){&truth_a}, 1);
    return finish(ok);
}
