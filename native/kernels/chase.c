/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * Latency: each load, one a cache line, returns the address of the next, in an order that no prefetcher predicts. Each thread
 * chases pointers in its own part of the lines.
 */
#include "kernel.h"

#include <omp.h>
#include <stdlib.h>

#define LINE 64

struct line {
    struct line *next;
    uint64_t visits; /* counted when the chain is checked */
    unsigned char rest[LINE - sizeof(void *) - sizeof(uint64_t)];
};

static uint64_t next_random(uint64_t *state) {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

/* One cycle through all lines of a part (Sattolo's shuffle, done on the pointers). */
static FT_NOINLINE void link_lines(struct line *lines, size_t count, uint64_t seed) {
    for (size_t i = 0; i < count; i++) {
        lines[i].next = &lines[i];
        lines[i].visits = 0;
    }
    for (size_t i = count - 1; i > 0; i--) {
        const size_t other = next_random(&seed) % i;
        struct line *swap = lines[i].next;
        lines[i].next = lines[other].next;
        lines[other].next = swap;
    }
}

static void touch(const struct ft_kernel_options *o, struct line *lines, int threads) {
#pragma omp parallel num_threads(threads)
    {
        size_t first, last;
        for (size_t turn = 0; ft_part_to_touch(o->init, o->size[0], LINE, turn, &first, &last); turn++) {
            for (size_t i = first; i < last; i++) {
                lines[i].visits = 0;
            }
        }
    }
}

static FT_NOINLINE struct line *chase(struct line *at, uint64_t loads) {
    for (uint64_t i = 0; i < loads; i++) {
        at = at->next;
    }
    return at;
}

/* Checks that the chain visits every line of the part once before it closes. */
static bool check(struct line *lines, size_t count, size_t *wrong) {
    struct line *at = lines;
    for (size_t i = 0; i < count; i++) {
        if (at->visits++ != 0) {
            break;
        }
        at = at->next;
    }
    for (*wrong = 0; *wrong < count; ++*wrong) {
        if (lines[*wrong].visits != 1) {
            return false;
        }
    }
    return at == lines;
}

int ft_chase(const struct ft_kernel_options *o, double *seconds, struct ft_kernel_result *result) {
    if (!ft_options_are_valid(o)) {
        return FT_KERNEL_OPTIONS;
    }
    const size_t bytes = o->size[0] * LINE;
    struct line *lines = ft_allocate(bytes, o);
    if (lines == NULL) {
        return FT_KERNEL_MEMORY;
    }
    int threads = ft_team_size(o);
    if ((size_t)threads > o->size[0]) {
        ft_release(lines, bytes);
        return FT_KERNEL_OPTIONS;
    }
    const size_t each = o->size[0] / (size_t)threads;
    bool right = true;
    touch(o, lines, threads);
#pragma omp parallel num_threads(threads)
    link_lines(lines + (size_t)omp_get_thread_num() * each, each, 88172645463325252u + (uint64_t)omp_get_thread_num());
    for (uint64_t repetition = 0; repetition < o->repetitions; repetition++) {
        const double start = omp_get_wtime();
#pragma omp parallel num_threads(threads)
        {
            const struct line *end = chase(lines + (size_t)omp_get_thread_num() * each, o->iterations);
            /* Keeps the compiler from removing the loads: to it the result is used. */
            __asm__ volatile("" : : "r"(end) : "memory");
        }
        seconds[repetition] = (omp_get_wtime() - start) / (double)o->iterations;
    }
    ft_observe(result, lines, bytes, threads);
    result->worst_error = 0;
    for (int t = 0; t < threads && right; t++) {
        size_t wrong;
        right = check(lines + (size_t)t * each, each, &wrong);
        result->wrong_at = (size_t)t * each + wrong;
        result->worst_error = right ? 0 : 1;
    }
    result->threads = (uint32_t)threads;
    result->form = FT_FORM_PORTABLE;
    result->bytes = bytes;
    ft_release(lines, bytes);
    return right ? FT_KERNEL_OK : FT_KERNEL_WRONG;
}
