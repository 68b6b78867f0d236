/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * The innermost part of iso3dfd for one vector length; iso3dfd.c includes it once for each form, with
 *
 *   FORM        suffix of the names            TARGET     attributes that allow the instructions
 *   PLANES      done together: as many as the registers hold the columns of
 *   VECTOR      the type, WIDTH floats         LOAD, STORE, STORE_LANES(at, value, first, last), SPLAT, ADD, SUB, MUL,
 *                                              FMA (a * b + c)
 *   AROUND(p)   statements that declare what   BESIDE(k)  the sum of the vectors k to the left and to the right of p,
 *               BESIDE needs                              from what AROUND declared
 *
 * The ROWS rows of a group are done together, so that a row of the plane is loaded once for all of them. At the edges of a block
 * whole vectors of whole groups are computed, and the points of the block are stored.
 */

#define NAME_(what, form) what##_##form
#define NAME(what, form) NAME_(what, form)

/* Floats from a row of a group to row `by` behind it (before it, where negative) in a plane; a constant but for g->group. */
#define ROW(r, by) (((r) + (by) + 4 * ROWS) / ROWS - 4) * group + ((r) + (by) + 4 * ROWS) % ROWS *WIDTH

/* Vectors [first, last] of a group in `planes` planes (a constant, at most PLANES); (next, now, speed) point at the group's
 * first float. Stored are rows [row, end) and, of the first and last vector, lanes from `lane` and to `lanes`. */
TARGET __attribute__((always_inline)) static inline void
NAME(group, FORM)(float *restrict next, const float *restrict now, const float *restrict speed, const struct grid *g,
                  size_t first, size_t last, size_t lane, size_t lanes, const ptrdiff_t row, const ptrdiff_t end,
                  const ptrdiff_t planes) {
    const ptrdiff_t group = g->group, plane = g->plane;
    VECTOR c[HALF + 1];
    for (int k = 0; k <= HALF; k++) {
        c[k] = SPLAT(coefficients[k]);
    }
    for (size_t v = first; v <= last; v++) {
        const ptrdiff_t x = (ptrdiff_t)(v * WIDTH * ROWS);
        const float *at = now + x;
        VECTOR sums[PLANES][ROWS];
        /* Across planes: what two of them share is loaded once. */
#pragma GCC unroll 8
        for (ptrdiff_t r = 0; r < ROWS; r++) {
            VECTOR column[2 * HALF + PLANES];
#pragma GCC unroll 24
            for (ptrdiff_t k = 0; k < 2 * HALF + planes; k++) {
                column[k] = LOAD(at + r * WIDTH + (k - HALF) * plane);
            }
#pragma GCC unroll 8
            for (ptrdiff_t z = 0; z < planes; z++) {
                VECTOR sum = MUL(c[0], column[HALF + z]);
#pragma GCC unroll 8
                for (int k = 1; k <= HALF; k++) {
                    sum = FMA(c[k], ADD(column[HALF + z - k], column[HALF + z + k]), sum);
                }
                sums[z][r] = sum;
            }
        }
#pragma GCC unroll 8
        for (ptrdiff_t z = 0; z < planes; z++) {
            const float *in = at + z * plane;
#pragma GCC unroll 8
            for (int k = 1; k <= HALF; k++) {
#pragma GCC unroll 8
                for (ptrdiff_t r = 0; r < ROWS; r++) {
                    sums[z][r] = FMA(c[k], ADD(LOAD(in + ROW(r, -k)), LOAD(in + ROW(r, k))), sums[z][r]);
                }
            }
#pragma GCC unroll 8
            for (ptrdiff_t r = row; r < end; r++) {
                const float *p = in + r * WIDTH;
                const ptrdiff_t offset = x + z * plane + r * WIDTH;
                /* The next planes: the rows that enter at their far side, and those beside this block, which only they read. */
                __builtin_prefetch(p + plane * (HALF + planes), 0, 2);
                __builtin_prefetch(p + plane * planes - HALF / ROWS * group, 0, 2);
                __builtin_prefetch(p + plane * planes + HALF / ROWS * group, 0, 2);
                __builtin_prefetch(next + offset + plane * planes, 1, 2);
                __builtin_prefetch(speed + offset + plane * planes, 0, 2);
                VECTOR along = SPLAT(0);
                AROUND(p)
                along = FMA(c[1], BESIDE(1), along);
                along = FMA(c[2], BESIDE(2), along);
                along = FMA(c[3], BESIDE(3), along);
                along = FMA(c[4], BESIDE(4), along);
                along = FMA(c[5], BESIDE(5), along);
                along = FMA(c[6], BESIDE(6), along);
                along = FMA(c[7], BESIDE(7), along);
                along = FMA(c[8], BESIDE(8), along);
                const VECTOR sum = ADD(sums[z][r], along);
                const VECTOR middle = LOAD(p);
                const VECTOR twice = ADD(middle, middle);
                const VECTOR result = FMA(LOAD(speed + offset), sum, SUB(twice, LOAD(next + offset)));
                const size_t from = v == first ? lane : 0, to = v == last ? lanes : WIDTH;
                if (from == 0 && to == WIDTH) {
                    STORE(next + offset, result);
                } else {
                    STORE_LANES(next + offset, result, from, to);
                }
            }
        }
    }
}

/* All points from (from[0], from[1], z) to to[0] and to[1], of `planes` planes. */
TARGET __attribute__((always_inline)) static inline void NAME(slab, FORM)(float *next, const float *now,
                                                                          const float *speed, const struct grid *g,
                                                                          const size_t from[3], const size_t to[3],
                                                                          size_t z, const ptrdiff_t planes) {
    const size_t begin = from[0] + INNER_AT - HALF, end = to[0] + INNER_AT - HALF;
    const size_t first = begin / WIDTH, last = (end - 1) / WIDTH, lane = begin % WIDTH, lanes = (end - 1) % WIDTH + 1;
    for (size_t y = from[1] / ROWS * ROWS; y < to[1]; y += ROWS) {
        const size_t o = z * (size_t)g->plane + y / ROWS * (size_t)g->group;
        if (y >= from[1] && y + ROWS <= to[1]) {
            NAME(group, FORM)(next + o, now + o, speed + o, g, first, last, lane, lanes, 0, ROWS, planes);
        } else {
            const ptrdiff_t row = y < from[1] ? (ptrdiff_t)(from[1] - y) : 0;
            const ptrdiff_t rows = y + ROWS > to[1] ? (ptrdiff_t)(to[1] - y) : ROWS;
            NAME(group, FORM)(next + o, now + o, speed + o, g, first, last, lane, lanes, row, rows, planes);
        }
    }
}

TARGET static void NAME(block, FORM)(float *next, const float *now, const float *speed, const struct grid *g,
                                     const size_t from[3], const size_t to[3]) {
    size_t z = from[2];
    for (; z + PLANES <= to[2]; z += PLANES) {
        NAME(slab, FORM)(next, now, speed, g, from, to, z, PLANES);
    }
    for (; z + 2 <= to[2]; z += 2) {
        NAME(slab, FORM)(next, now, speed, g, from, to, z, 2);
    }
    for (; z < to[2]; z++) {
        NAME(slab, FORM)(next, now, speed, g, from, to, z, 1);
    }
}

#undef FORM
#undef TARGET
#undef VECTOR
#undef WIDTH
#undef PLANES
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
#undef ROW
#undef NAME
#undef NAME_
