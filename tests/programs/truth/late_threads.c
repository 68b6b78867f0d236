// SPDX-License-Identifier: Apache-2.0 OR MIT
// corpus: build = gcc -O2 -g -Wall -Wextra -fno-tree-vectorize -pthread {src} -o {out}
// corpus: run = {out} --threads 8 --seconds 10 --mib 64 --init serial
//
// One array in equal blocks, one a thread, each read once a sweep. The first half of the threads (main is thread 0)
// start at once, main starts the other half when half of the time is over. The threads are not in step: each sweeps as
// fast as it can until the end. With --init parallel each thread initialises its block when it is born.

#include "truth.h"
#include <pthread.h>

struct worker {
    pthread_t id;
    int thread;
    uint64_t sweeps;
    bool wrong;
};

static struct options options;
static size_t words;
static double *a;
static double half_time, end_time;
static struct worker workers[MAX_THREADS];

KERNEL double sum_of(const double *data, struct range mine) {
    double sum = 0.0;
    for (size_t i = mine.begin; i < mine.end; i++)
        sum += data[i];
    return sum;
}

static void *work(void *argument);

static void start(int first, int last) {
    for (int t = first; t < last; t++) {
        workers[t].thread = t;
        if (pthread_create(&workers[t].id, NULL, work, &workers[t]) != 0)
            exit(finish(false));
    }
}

static void *work(void *argument) {
    struct worker *me = argument;
    const struct range mine = block_of(words, me->thread, options.threads);
    bool late_to_start = me->thread == 0;
    if (options.parallel_init)
        write_words(a, mine, 2.0);
    while (seconds_now() < end_time) {
        me->wrong |= sum_of(a, mine) != 2.0 * (double)(mine.end - mine.begin);
        me->sweeps++;
        if (late_to_start && seconds_now() >= half_time) {
            start((options.threads + 1) / 2, options.threads);
            late_to_start = false;
        }
    }
    if (late_to_start) // a sweep longer than half of the time
        start((options.threads + 1) / 2, options.threads);
    return NULL;
}

int main(int argc, char **argv) {
    options = options_from(argc, argv);
    words = words_of(&options, 1);
    a = aligned_alloc(PAGE, words * sizeof *a);
    struct object truth_a = object_of("a", a, words);
    if (!options.parallel_init)
        write_words(a, (struct range){0, words}, 2.0);

    half_time = seconds_now() + 0.5 * options.seconds;
    end_time = seconds_now() + options.seconds;
    start(1, (options.threads + 1) / 2);
    work(&workers[0]);
    for (int t = 1; t < options.threads; t++)
        pthread_join(workers[t].id, NULL);

    bool ok = true;
    if (!options.parallel_init)
        count(&truth_a, 0, options.threads, (struct range){0, words}, 1);
    for (int t = 0; t < options.threads; t++) {
        const uint64_t writes = options.parallel_init ? 1 : 0;
        count(&truth_a, t, options.threads, block_of(words, t, options.threads), writes + workers[t].sweeps);
        ok &= !workers[t].wrong;
    }
    print_truth(&options, (struct object *[]){&truth_a}, 1);
    return finish(ok);
}
