// SPDX-License-Identifier: Apache-2.0 OR MIT
// corpus: object = p.x
// corpus: finding = serial-first-touch
// corpus: partition = block
// corpus: cause = loop
// corpus: remote = 0.5
// corpus: fix = edit: #pragma omp parallel for num_threads(THREADS) schedule(static)
// corpus: build = clang -O2 -g -Wall -Wextra -fopenmp {src} -o {out}
// corpus: run = {out}
// corpus: why = The arrays hide in a structure that a serial constructor fills; p.x, p.v and p.m are all with thread 0.

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { THREADS = 4 };
static const double RUN_S = 1.2;

struct particles {
    size_t count;
    double *x, *v, *m; // position, velocity, mass
};

static double seconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static struct particles particles_new(size_t count) {
    struct particles p = {.count = count};
    p.x = malloc(count * sizeof *p.x); // @allocated
    p.v = malloc(count * sizeof *p.v);
    p.m = malloc(count * sizeof *p.m);
    if (!p.x || !p.v || !p.m)
        exit(1);
    for (size_t i = 0; i < count; i++) {
        p.x[i] = (double)i; // @first-touch
        p.v[i] = 0.0;
        p.m[i] = 4.0;
    }
    return p;
}

static void advance(struct particles *p, double force, double dt) {
#pragma omp parallel for num_threads(THREADS) schedule(static)
    for (size_t i = 0; i < p->count; i++) {
        p->v[i] += force / p->m[i] * dt;
        p->x[i] += p->v[i] * dt; // @used
    }
}

int main(void) {
    struct particles p = particles_new((size_t)2 << 20); // 16 MiB an array, 48 MiB together
    for (double end = seconds() + RUN_S; seconds() < end;)
        advance(&p, 2.0, 0.5);

    int bad = 0;
    for (size_t i = 1; i < p.count; i++) // all start 1 apart and feel the same force
        bad |= p.v[i] != p.v[0] || p.x[i] - p.x[0] != (double)i;
    puts(bad ? "bad" : "ok");
    free(p.m);
    free(p.v);
    free(p.x);
    return bad;
}
