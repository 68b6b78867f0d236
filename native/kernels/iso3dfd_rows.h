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

/* `rows` rows from (next, now, speed) on, `count` points each. `rows` is a constant, at most ROWS. */
TARGET __attribute__((always_inline)) static inline void
NAME(rows, FORM)(float *restrict next, const float *restrict now, const float *restrict speed, const struct grid *g,
                 size_t count, const ptrdiff_t rows) {
    const ptrdiff_t row = g->row, plane = g->plane;
    VECTOR c[HALF + 1];
    for (int k = 0; k <= HALF; k++) {
        c[k] = SPLAT(coefficients[k]);
    }
    for (size_t x = 0; x < count; x += WIDTH) {
        const float *at = now + x;
        VECTOR sums[ROWS];
        for (ptrdiff_t r = 0; r < rows; r++) {
            sums[r] = MUL(c[0], LOAD(at + r * row));
        }
#pragma GCC unroll 8
        for (int k = 1; k <= HALF; k++) {
#pragma GCC unroll 4
            for (ptrdiff_t r = 0; r < rows; r++) {
                sums[r] = FMA(c[k], ADD(LOAD(at + (r - k) * row), LOAD(at + (r + k) * row)), sums[r]);
            }
        }
#pragma GCC unroll 4
        for (ptrdiff_t r = 0; r < rows; r++) {
            const float *p = at + r * row;
            const size_t offset = x + (size_t)(r * row);
            /* The next plane: the rows that enter at its far side, and those beside this block, which only it reads. */
            __builtin_prefetch(p + plane * (HALF + 1), 0, 2);
            __builtin_prefetch(p + plane - HALF * row, 0, 2);
            __builtin_prefetch(p + plane + HALF * row, 0, 2);
            __builtin_prefetch(next + offset + plane, 1, 2);
            __builtin_prefetch(speed + offset + plane, 0, 2);
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
            VECTOR sum = sums[r];
#pragma GCC unroll 8
            for (int k = 1; k <= HALF; k++) {
                sum = FMA(c[k], ADD(LOAD(p - k * plane), LOAD(p + k * plane)), sum);
            }
            sum = ADD(sum, along);
            const VECTOR middle = LOAD(p);
            const VECTOR twice = ADD(middle, middle);
            const VECTOR result = FMA(LOAD(speed + offset), sum, SUB(twice, LOAD(next + offset)));
            STORE_FIRST(next + offset, result, count - x);
        }
    }
}

TARGET static void NAME(block, FORM)(float *next, const float *now, const float *speed, const struct grid *g,
                                     const size_t from[3], const size_t to[3]) {
    for (size_t z = from[2]; z < to[2]; z++) {
        size_t y = from[1];
        for (; y + ROWS <= to[1]; y += ROWS) {
            const size_t o = place(g, from[0], y, z);
            NAME(rows, FORM)(next + o, now + o, speed + o, g, to[0] - from[0], ROWS);
        }
        for (; y < to[1]; y++) {
            const size_t o = place(g, from[0], y, z);
            NAME(rows, FORM)(next + o, now + o, speed + o, g, to[0] - from[0], 1);
        }
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
