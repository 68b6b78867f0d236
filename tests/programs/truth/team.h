/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * For the OpenMP programs: initialise and sweep with a team in step. See truth.h.
 */
#ifndef TEAM_H
#define TEAM_H

#include "truth.h"
#include <omp.h>

typedef struct range partition(size_t words, int thread, int threads);

/* Writes every word once, each part by its user. */
static inline void initialise_by_users(struct object *object, double *data, double value, int threads,
                                       partition *part_of) {
#pragma omp parallel num_threads(threads)
    write_words(data, part_of(object->words, omp_get_thread_num(), threads), value);
    for (int t = 0; t < threads; t++)
        place(object, t, part_of(object->words, t, threads));
}

/* Writes every word once: by thread 0, or each part by its user, as --init says. */
static inline void initialise(struct object *object, double *data, double value, const struct options *o,
                              partition *part_of) {
    const struct range all = {0, object->words};
    if (o->parallel_init) {
        initialise_by_users(object, data, value, o->threads, part_of);
        return;
    }
    write_words(data, all, value);
    place(object, 0, all);
}

/* All threads run sweep(thread) together until the time is up, at most `limit` times. Returns the number of sweeps. */
static inline uint64_t run_sweeps(const struct options *o, uint64_t limit, void (*sweep)(int thread)) {
    const double end = seconds_now() + o->seconds;
    uint64_t sweeps = 0;
    bool running = true;
#pragma omp parallel num_threads(o->threads)
    while (running) {
        sweep(omp_get_thread_num());
#pragma omp barrier
#pragma omp single
        {
            const double now = seconds_now();
            sweeps++;
            running = sweeps < limit && now < end;
            if (o->has_progress)
                fprintf(stderr, "%.6f\n", now);
        }
    }
    return sweeps;
}

#endif
