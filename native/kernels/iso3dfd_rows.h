/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * The innermost part of iso3dfd for one vector length; iso3dfd.c includes it once for each form, with
 *
 *   FORM        suffix of the names            TARGET     attributes that allow the instructions
 *   VECTOR      the type, WIDTH floats         LOAD, STORE_FIRST(at, value, count), SPLAT, ADD, SUB, MUL, FMA (a * b + c)
 *   AROUND(p)   statements that declare what   BESIDE(k)  the sum of the vectors k to the left and to the right of p,
 *               BESIDE needs                              from what AROUND declared
 *
 * ROWS rows are done together, so that a row of the plane is loaded once for all of them. Loads reach up to WIDTH floats
 * beyond the end of a row: the arrays have room.
 */

#define NAME_(what, form) what##_##form
#define NAME(what, form) NAME_(what, form)

/* `rows` rows of `planes` planes from (next, now, speed) on, `count` points each. Both are constants, at most ROWS and PLANES. */
TARGET __attribute__((always_inline)) static inline void
NAME(rows, FORM)(float *restrict next, const float *restrict now, const float *restrict speed, const struct grid *g,
                 size_t count, const ptrdiff_t rows, const ptrdiff_t planes) {
    const ptrdiff_t row = g->row, plane = g->plane;
    VECTOR c[HALF + 1];
    for (int k = 0; k <= HALF; k++) {
        c[k] = SPLAT(coefficients[k]);
    }
    for (size_t x = 0; x < count; x += WIDTH) {
        const float *at = now + x;
        VECTOR sums[PLANES][ROWS];
        /* Across planes: what two of them share is loaded once. */
#pragma GCC unroll 4
        for (ptrdiff_t r = 0; r < rows; r++) {
            VECTOR column[2 * HALF + PLANES];
#pragma GCC unroll 20
            for (ptrdiff_t k = 0; k < 2 * HALF + planes; k++) {
                column[k] = LOAD(at + r * row + (k - HALF) * plane);
            }
#pragma GCC unroll 4
            for (ptrdiff_t z = 0; z < planes; z++) {
                VECTOR sum = MUL(c[0], column[HALF + z]);
#pragma GCC unroll 8
                for (int k = 1; k <= HALF; k++) {
                    sum = FMA(c[k], ADD(column[HALF + z - k], column[HALF + z + k]), sum);
                }
                sums[z][r] = sum;
            }
        }
#pragma GCC unroll 4
        for (ptrdiff_t z = 0; z < planes; z++) {
            const float *in = at + z * plane;
#pragma GCC unroll 8
            for (int k = 1; k <= HALF; k++) {
#pragma GCC unroll 4
                for (ptrdiff_t r = 0; r < rows; r++) {
                    sums[z][r] = FMA(c[k], ADD(LOAD(in + (r - k) * row), LOAD(in + (r + k) * row)), sums[z][r]);
                }
            }
#pragma GCC unroll 4
            for (ptrdiff_t r = 0; r < rows; r++) {
                const float *p = in + r * row;
                const size_t offset = x + (size_t)(z * plane + r * row);
                /* The next planes: the rows that enter at their far side, and those beside this block, which only they read. */
                __builtin_prefetch(p + plane * (HALF + planes), 0, 2);
                __builtin_prefetch(p + plane * planes - HALF * row, 0, 2);
                __builtin_prefetch(p + plane * planes + HALF * row, 0, 2);
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
                STORE_FIRST(next + offset, result, count - x);
            }
        }
    }
}

/* All rows from (from[0], from[1], z) to to[1], of `planes` planes. */
TARGET __attribute__((always_inline)) static inline void NAME(slab, FORM)(float *next, const float *now,
                                                                          const float *speed, const struct grid *g,
                                                                          const size_t from[3], const size_t to[3],
                                                                          size_t z, const ptrdiff_t planes) {
    size_t y = from[1];
    for (; y + ROWS <= to[1]; y += ROWS) {
        const size_t o = place(g, from[0], y, z);
        NAME(rows, FORM)(next + o, now + o, speed + o, g, to[0] - from[0], ROWS, planes);
    }
    for (; y < to[1]; y++) {
        const size_t o = place(g, from[0], y, z);
        NAME(rows, FORM)(next + o, now + o, speed + o, g, to[0] - from[0], 1, planes);
    }
}

TARGET static void NAME(block, FORM)(float *next, const float *now, const float *speed, const struct grid *g,
                                     const size_t from[3], const size_t to[3]) {
    size_t z = from[2];
    for (; z + PLANES <= to[2]; z += PLANES) {
        NAME(slab, FORM)(next, now, speed, g, from, to, z, PLANES);
    }
    for (; z < to[2]; z++) {
        NAME(slab, FORM)(next, now, speed, g, from, to, z, 1);
    }
}

#undef FORM
#undef TARGET
#undef VECTOR
#undef WIDTH
#undef LOAD
#undef STORE_FIRST
#undef SPLAT
#undef ADD
#undef SUB
#undef MUL
#undef FMA
#undef AROUND
#undef BESIDE
#undef NAME
#undef NAME_
