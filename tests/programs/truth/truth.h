/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * Common parts of the programs that know exactly what they did.
 *
 * Each program takes --threads T --seconds S --mib M --init serial|parallel, sweeps over its objects until the time is
 * up and prints one line of JSON on stdout:
 *
 *   wall_s       from the start of main to this line
 *   threads      T
 *   objects      NAME -> accesses (word touches: an access of w bytes counts max(1, w/8)), all and by thread
 *   first_touch  NAME -> share of the pages by thread that wrote them first
 *   remote       "N" -> fraction of the accesses that a thread made to pages of a thread on another node, when T threads
 *                sit on N nodes in equal blocks, node(t) = floor(t * N / T); over objects larger than 1 MiB
 *
 * The team programs' initialisation places pages and is not counted, since the report's figures are about use
 * (docs/estimator.md). Verification is counted like everything else. The hot loops count nothing: a thread's accesses
 * follow from its range and the number of sweeps, and are added up here when all is done. To be exact, every part of an
 * object that one thread initialises is whole pages, and accumulators stay in registers (see the kernels' disassembly).
 */
#ifndef TRUTH_H
#define TRUTH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

enum { PAGE = 4096, PAGE_WORDS = PAGE / 8, MAX_THREADS = 64, NODE_COUNTS = 3 };
static const int truth_nodes[NODE_COUNTS] = {2, 4, 8};

/* A kernel must be a function of its own, so that its disassembly can be read and its registers are its own. */
#define KERNEL static __attribute__((noinline, unused))

struct options {
    int threads;
    double seconds;
    uint64_t sweeps; /* 0: until the time is up; else this many, however long they take (to compare run times) */
    size_t mib;
    bool parallel_init;
    bool has_progress; /* run_sweeps() writes the time on the monotonic clock after each sweep to standard error */
    double start;      /* of main, on the monotonic clock */
};

struct range {
    size_t begin, end; /* words */
};

struct object {
    const char *name;
    size_t words;
    uint8_t *home; /* page -> thread that wrote it first; MAX_THREADS: none yet */
    uint64_t by_thread[MAX_THREADS];
    uint64_t remote[NODE_COUNTS];
};

KERNEL void write_words(double *data, struct range range, double value) {
    for (size_t i = range.begin; i < range.end; i++)
        data[i] = value;
}

KERNEL bool all_equal(const double *data, struct range range, double value) {
    bool equal = true;
    for (size_t i = range.begin; i < range.end; i++)
        equal &= data[i] == value;
    return equal;
}

static inline double seconds_now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static inline void usage(const char *program) {
    fprintf(stderr,
            "usage: %s [--threads 1..%d] [--seconds S | --sweeps N] [--mib M] [--init serial|parallel] "
            "[--progress 0|1]\n",
            program, MAX_THREADS);
    exit(2);
}

static inline struct options options_from(int argc, char **argv) {
    struct options o = {.threads = 8, .seconds = 10, .mib = 64, .start = seconds_now()};
    for (int i = 1; i < argc; i += 2) {
        const char *value = i + 1 < argc ? argv[i + 1] : "";
        if (!strcmp(argv[i], "--threads"))
            o.threads = atoi(value);
        else if (!strcmp(argv[i], "--seconds"))
            o.seconds = atof(value);
        else if (!strcmp(argv[i], "--sweeps"))
            o.sweeps = strtoul(value, NULL, 10);
        else if (!strcmp(argv[i], "--mib"))
            o.mib = strtoul(value, NULL, 10);
        else if (!strcmp(argv[i], "--progress"))
            o.has_progress = atoi(value) != 0;
        else if (!strcmp(argv[i], "--init") && (!strcmp(value, "serial") || !strcmp(value, "parallel")))
            o.parallel_init = value[0] == 'p';
        else
            usage(argv[0]);
    }
    if (o.threads < 1 || o.threads > MAX_THREADS || o.seconds <= 0 || o.mib == 0)
        usage(argv[0]);
    if (o.sweeps)
        o.seconds = 1e9;
    return o;
}

/* Words in `part` of `parts` equal parts of --mib, in whole pages. */
static inline size_t words_of(const struct options *o, size_t parts) {
    return o->mib * (1 << 20) / PAGE / parts * PAGE_WORDS;
}

/* First touch places single pages only without huge pages: turns them off where they are always on. */
static inline void keep_small_pages(void *data, size_t words) {
    if (data)
        madvise(data, words * sizeof(double), MADV_NOHUGEPAGE); // fails only on kernels without huge pages
}

/* The program allocates `data` itself, so that each object has an allocating line of its own. */
static inline struct object object_of(const char *name, void *data, size_t words) {
    const size_t pages = (words + PAGE_WORDS - 1) / PAGE_WORDS;
    struct object object = {.name = name, .words = words, .home = malloc(pages)};
    if (!data || !object.home || (uintptr_t)data % PAGE != 0) {
        fprintf(stderr, "cannot allocate %zu pages for %s on a page boundary\n", pages, name);
        exit(1);
    }
    keep_small_pages(data, words);
    memset(object.home, MAX_THREADS, pages);
    return object;
}

/* The pages of a thread in a block partition, as words. */
static inline struct range block_of(size_t words, int thread, int threads) {
    const size_t pages = (words + PAGE_WORDS - 1) / PAGE_WORDS;
    const size_t begin = pages * (size_t)thread / (size_t)threads * PAGE_WORDS;
    const size_t end = pages * (size_t)(thread + 1) / (size_t)threads * PAGE_WORDS;
    return (struct range){begin, end < words ? end : words};
}

/* `thread` initialises the range: pages that no thread touched before become its own. */
static inline void place(struct object *object, int thread, struct range range) {
    for (size_t page = range.begin / PAGE_WORDS; page * PAGE_WORDS < range.end; page++)
        if (object->home[page] == MAX_THREADS)
            object->home[page] = (uint8_t)thread;
}

/* `thread` touched each word of the range `times` times. Pages that no thread touched before become its own. */
static inline void count(struct object *object, int thread, int threads, struct range range, uint64_t times) {
    for (size_t begin = range.begin; begin < range.end && times > 0;) {
        const size_t page = begin / PAGE_WORDS;
        const size_t page_end = (page + 1) * PAGE_WORDS;
        const size_t end = page_end < range.end ? page_end : range.end;
        if (object->home[page] == MAX_THREADS)
            object->home[page] = (uint8_t)thread;
        const uint64_t touches = (end - begin) * times;
        object->by_thread[thread] += touches;
        for (int k = 0; k < NODE_COUNTS; k++)
            if (thread * truth_nodes[k] / threads != object->home[page] * truth_nodes[k] / threads)
                object->remote[k] += touches;
        begin = end;
    }
}

static inline uint64_t accesses_of(const struct object *object) {
    uint64_t sum = 0;
    for (int t = 0; t < MAX_THREADS; t++)
        sum += object->by_thread[t];
    return sum;
}

static inline void print_truth(const struct options *o, struct object *const *objects, int object_count) {
    printf("{\"wall_s\":%.3f,\"threads\":%d,\"objects\":{", seconds_now() - o->start, o->threads);
    for (int i = 0; i < object_count; i++) {
        printf("%s\"%s\":{\"accesses\":%llu,\"by_thread\":[", i ? "," : "", objects[i]->name,
               (unsigned long long)accesses_of(objects[i]));
        for (int t = 0; t < o->threads; t++)
            printf("%s%llu", t ? "," : "", (unsigned long long)objects[i]->by_thread[t]);
        printf("]}");
    }
    printf("},\"first_touch\":{");
    for (int i = 0; i < object_count; i++) {
        const size_t pages = (objects[i]->words + PAGE_WORDS - 1) / PAGE_WORDS;
        printf("%s\"%s\":[", i ? "," : "", objects[i]->name);
        for (int t = 0; t < o->threads; t++) {
            size_t mine = 0;
            for (size_t page = 0; page < pages; page++)
                mine += objects[i]->home[page] == t;
            printf("%s%.6f", t ? "," : "", (double)mine / (double)pages);
        }
        printf("]");
    }
    printf("},\"remote\":{");
    for (int k = 0; k < NODE_COUNTS; k++) {
        uint64_t remote = 0, all = 0;
        for (int i = 0; i < object_count; i++) {
            if (objects[i]->words * 8 <= 1 << 20)
                continue;
            remote += objects[i]->remote[k];
            all += accesses_of(objects[i]);
        }
        printf("%s\"%d\":%.6f", k ? "," : "", truth_nodes[k], all ? (double)remote / (double)all : 0.0);
    }
    printf("}}\n");
}

/* Ends the program: 1 if its own results were wrong. */
static inline int finish(bool ok) {
    if (!ok)
        fprintf(stderr, "wrong result\n");
    return ok ? 0 : 1;
}

#endif
