// SPDX-License-Identifier: Apache-2.0 OR MIT
// corpus: object = g->u
// corpus: fix = edit
// corpus: build = gcc -O2 -g -Wall -Wextra -fopenmp -I{dir} {src} -o {out}
// corpus: run = {out}
// corpus: why = Two arrays of a structure are filled in one loop, and one of them needs the other.

#include "fixes.h"

#include <stdlib.h>

struct grid {
    size_t n;
    double *u, *v;
};

static int make(struct grid *g, size_t n) {
    g->n = n;
    g->u = malloc(n * sizeof *g->u);
    g->v = malloc(n * sizeof *g->v);
    if (g->u == NULL || g->v == NULL)
        return 1;
    for (size_t i = 0; i < g->n; i++) {
        double x = 0.001 * (double)i;
        g->u[i] = x;
        g->v[i] = g->u[i] * 2.0 + 1.0;
    }
    return 0;
}

int main(void) {
    struct grid g;
    if (make(&g, (size_t)2 << 20))
        return 1;
    use_all(g.u, g.n);
    use_all(g.v, g.n);
    print_sum("u", g.u, g.n);
    print_sum("v", g.v, g.n);
    return 0;
}
