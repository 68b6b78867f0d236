/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * The innermost part of iso3dfd for one vector length; iso3dfd.c includes it once for each form, with
 *
 *   FORM        suffix of the names            TARGET     attributes that allow the instructions
 *   VECTOR      the type, WIDTH floats         LOAD, STORE, STORE_LANES(at, value, first, last), SPLAT, ADD, SUB, MUL,
 *                                              FMA (a * b + c)
 *   ACROSS      points computed from one column of vectors, which must fit the registers; divides ROWS and DEPTH
 *   AROUND(p)   statements that declare what   BESIDE(k)  the sum of the vectors k to the left and to the right of p,
 *               BESIDE needs                              from what AROUND declared
 *
 * A brick is computed in two parts: first the terms across its planes, row by row, into an array of sums; then, plane by plane,
 * the terms within them. The rows of the next brick along n1 are computed between the planes of a brick, so that the loads from
 * memory form a steady stream. At the edges of a block whole bricks are computed, and only the points of the block are stored.
 */

#define NAME_(what, form) what##_##form
#define NAME(what, form) NAME_(what, form)
#define AT(z, r) (LINE(z, r) * WIDTH)

/* sum + c[1] (its neighbours at distance 1) + ... for the point column[HALF]. */
TARGET __attribute__((always_inline)) static inline VECTOR NAME(along, FORM)(VECTOR sum, const VECTOR *column,
                                                                             const VECTOR *c) {
#pragma GCC unroll 8
    for (int k = 1; k <= HALF; k++) {
        sum = FMA(c[k], ADD(column[HALF - k], column[HALF + k]), sum);
    }
    return sum;
}

/* Row r of the brick at `now`: the terms of the points themselves and of their neighbours across the planes. */
TARGET __attribute__((always_inline)) static inline void
NAME(across, FORM)(VECTOR *sums, const float *now, const ptrdiff_t slab, const VECTOR *c, const ptrdiff_t r) {
#pragma GCC unroll 8
    for (ptrdiff_t part = 0; part < DEPTH; part += ACROSS) {
        VECTOR column[2 * HALF + ACROSS];
#pragma GCC unroll 24
        for (ptrdiff_t k = 0; k < 2 * HALF + ACROSS; k++) {
            const ptrdiff_t z = part + k - HALF;
            column[k] = LOAD(now + (z < 0 ? -slab : z < DEPTH ? 0 : slab) + AT((z + DEPTH) % DEPTH, r));
        }
#pragma GCC unroll 8
        for (ptrdiff_t o = 0; o < ACROSS; o++) {
            sums[LINE(part + o, r)] = NAME(along, FORM)(MUL(c[0], column[HALF + o]), column + o, c);
        }
    }
}

/* Plane z of the brick at `next`, `now` and `speed`: adds the terms within the plane and stores the result, in rows
 * [from[1], to[1]) and lanes [from[0], to[0]), or in all if `whole` (a constant). Prefetches what lies `ahead` floats further. */
TARGET __attribute__((always_inline)) static inline void
NAME(within, FORM)(float *restrict next, const VECTOR *sums, const float *now, const float *speed,
                   const ptrdiff_t group, const ptrdiff_t slab, const VECTOR *c, const ptrdiff_t z,
                   const ptrdiff_t from[2], const ptrdiff_t to[2], const ptrdiff_t ahead, const bool whole) {
#pragma GCC unroll 8
    for (ptrdiff_t part = 0; part < ROWS; part += ACROSS) {
        VECTOR column[2 * HALF + ACROSS], sum[ACROSS];
#pragma GCC unroll 24
        for (ptrdiff_t k = 0; k < 2 * HALF + ACROSS; k++) {
            const ptrdiff_t y = part + k + HALF; /* counted from two groups ahead of the brick */
            column[k] = LOAD(now + (y / ROWS - 2 * HALF / ROWS) * group + AT(z, y % ROWS));
        }
#pragma GCC unroll 8
        for (ptrdiff_t o = 0; o < ACROSS; o++) {
            sum[o] = NAME(along, FORM)(sums[LINE(z, part + o)], column + o, c);
        }
#pragma GCC unroll 8
        for (ptrdiff_t o = 0; o < ACROSS; o++) {
            const ptrdiff_t at = AT(z, part + o);
            const float *p = now + at;
            /* A slab ahead: the planes that its far side adds, the rows beside it, and the arrays read at its points only. */
            __builtin_prefetch(p + ahead + slab, 0, 2);
            __builtin_prefetch(p + ahead - HALF / ROWS * group, 0, 2);
            __builtin_prefetch(p + ahead + HALF / ROWS * group, 0, 2);
            __builtin_prefetch(next + ahead + at, 1, 2);
            __builtin_prefetch(speed + ahead + at, 0, 2);
            VECTOR laplacian = sum[o];
            AROUND(p)
            laplacian = FMA(c[1], BESIDE(1), laplacian);
            laplacian = FMA(c[2], BESIDE(2), laplacian);
            laplacian = FMA(c[3], BESIDE(3), laplacian);
            laplacian = FMA(c[4], BESIDE(4), laplacian);
            laplacian = FMA(c[5], BESIDE(5), laplacian);
            laplacian = FMA(c[6], BESIDE(6), laplacian);
            laplacian = FMA(c[7], BESIDE(7), laplacian);
            laplacian = FMA(c[8], BESIDE(8), laplacian);
            const VECTOR middle = LOAD(p);
            const VECTOR result = FMA(LOAD(speed + at), laplacian, SUB(ADD(middle, middle), LOAD(next + at)));
            if (whole) {
                STORE(next + at, result);
            } else if (part + o >= from[1] && part + o < to[1]) {
                STORE_LANES(next + at, result, (size_t)from[0], (size_t)to[0]);
            }
        }
    }
}

/* The part [from, to) of brick `brick` that lies in [begin, end) along a dimension, counted from the brick's first point. */
static inline bool NAME(part, FORM)(ptrdiff_t brick, ptrdiff_t points, ptrdiff_t begin, ptrdiff_t end, ptrdiff_t *from,
                                    ptrdiff_t *to) {
    const ptrdiff_t first = brick * points;
    *from = begin > first ? begin - first : 0;
    *to = end < first + points ? end - first : points;
    return *from == 0 && *to == points;
}

/* Computes the points from `from` to `to`. In the last slab it prefetches the beginning of the block that starts at `then`. */
TARGET static void NAME(block, FORM)(float *next, const float *now, const float *speed, const struct grid *g,
                                     const size_t from[3], const size_t to[3], const size_t then[3]) {
    const ptrdiff_t brick = WIDTH * LINES, group = g->group, slab = g->slab, room = INNER_AT - HALF;
    const ptrdiff_t begin[3] = {(ptrdiff_t)from[0] + room, (ptrdiff_t)from[1], (ptrdiff_t)from[2]};
    const ptrdiff_t end[3] = {(ptrdiff_t)to[0] + room, (ptrdiff_t)to[1], (ptrdiff_t)to[2]};
    const ptrdiff_t first = begin[0] / WIDTH, last = (end[0] - 1) / WIDTH;
    VECTOR c[HALF + 1];
    for (int k = 0; k <= HALF; k++) {
        c[k] = SPLAT(coefficients[k]);
    }
    const ptrdiff_t last_slab = (end[2] - 1) / DEPTH;
    const ptrdiff_t to_then = ((ptrdiff_t)then[2] / DEPTH - last_slab) * slab +
                              ((ptrdiff_t)then[1] / ROWS - begin[1] / ROWS) * group +
                              (((ptrdiff_t)then[0] + room) / WIDTH - first) * brick;
    for (ptrdiff_t z = begin[2] / DEPTH; z <= last_slab; z++) {
        const ptrdiff_t ahead = z < last_slab ? slab : to_then;
        for (ptrdiff_t y = begin[1] / ROWS; y * ROWS < end[1]; y++) {
            ptrdiff_t lo[3], hi[3];
            VECTOR sums[2][LINES];
            const bool planes_are_whole = NAME(part, FORM)(z, DEPTH, begin[2], end[2], &lo[2], &hi[2]);
            const bool rows_are_whole = NAME(part, FORM)(y, ROWS, begin[1], end[1], &lo[1], &hi[1]);
            const ptrdiff_t row = z * slab + y * group;
            for (ptrdiff_t r = 0; r < ROWS; r++) {
                NAME(across, FORM)(sums[first % 2], now + row + first * brick, slab, c, r);
            }
            for (ptrdiff_t x = first; x <= last; x++) {
                const bool whole =
                    NAME(part, FORM)(x, WIDTH, begin[0], end[0], &lo[0], &hi[0]) && rows_are_whole && planes_are_whole;
                const ptrdiff_t at = row + x * brick;
                /* In a brick that is not whole, loads may race with other threads' stores; those results are not stored. */
                for (ptrdiff_t plane = 0; plane < DEPTH; plane++) {
                    if (plane % (DEPTH / ROWS) == 0 && x < last) {
                        NAME(across, FORM)(sums[(x + 1) % 2], now + at + brick, slab, c, plane / (DEPTH / ROWS));
                    }
                    if (whole) {
                        NAME(within, FORM)
                        (next + at, sums[x % 2], now + at, speed + at, group, slab, c, plane, lo, hi, ahead, true);
                    } else if (plane >= lo[2] && plane < hi[2]) {
                        NAME(within, FORM)
                        (next + at, sums[x % 2], now + at, speed + at, group, slab, c, plane, lo, hi, ahead, false);
                    }
                }
            }
        }
    }
}

#undef FORM
#undef TARGET
#undef VECTOR
#undef WIDTH
#undef ACROSS
#undef LOAD
#undef STORE
#undef STORE_LANES
#undef SPLAT
#undef ADD
#undef SUB
#undef MUL
#undef FMA
#undef AROUND
#undef BESIDE
#undef CUT
#undef AT
#undef NAME
#undef NAME_
