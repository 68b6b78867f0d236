/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * The acoustic wave equation in three dimensions by finite differences: 16th order in space, second in time, single
 * precision. A point's next value is 2 now - previous + speed * laplacian(now), where previous and next are one array:
 * 16 bytes a point at least (previous, now and speed read, next written) and 61 operations.
 *
 * The grid of n1 x n2 x n3 points, n1 the fastest, has a border of 8 points on each side that keeps its values. Blocks of
 * n1_block x n2_block x n3_block points are assigned to the threads; a block is computed slab by slab, each of DEPTH planes. In
 * a block of few rows that are not too long, the slabs with the neighbours of its points fit the second-level cache, and rows
 * beside the block are still in the last-level cache from the block before.
 *
 * The memory layout is bricks: a vector's width of n1, ROWS of n2, DEPTH of n3, in the order of the grid. The neighbours of a
 * brick's points lie in nine bricks (eleven of the narrowest), each at most half a page of contiguous memory; in a layout by rows
 * and planes they would lie in 40 pages. Each loaded vector serves several points, and all offsets within bricks are constants.
 */
#include "kernel.h"

#include <math.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>

#define HALF 8
#define ROWS 4
#define DEPTH 8
#define LINES (ROWS * DEPTH)        /* vectors in a brick */
#define LINE(z, r) ((z)*ROWS + (r)) /* the vector of row r and plane z among them */
#define WIDEST_BLOCK 272
#define BLOCKS_A_THREAD 4
#define INNER_AT 16 /* floats of a row before its first inner point: a whole number of vectors of any form */
/* Offset in floats between the starts of the fields in their pages. With equal starts, a store to one field and a load from
 * another would have equal low address bits (4 KiB aliasing), and their lines would share cache sets. */
#define APART ((size_t)304)
#define TOLERANCE 1e-4
/* Up to these limits (floats of a field, floats times steps) all is recomputed in double precision; above, a sample is. */
#define CHECKED_WHOLE 4000000
#define STEPS_CHECKED_WHOLE 40000000

/* Taylor coefficients of the second derivative, order 16 (Fornberg, Mathematics of Computation 51, 1988). */
static const double exact[HALF + 1] = {-1077749.0 / 352800, 16.0 / 9,    -14.0 / 45,    112.0 / 1485, -7.0 / 396,
                                       112.0 / 32175,       -2.0 / 3861, 16.0 / 315315, -1.0 / 411840};
static float coefficients[HALF + 1];

struct grid {
    size_t n[3];
    size_t width;    /* floats in a vector of the form that computes: a power of two */
    ptrdiff_t group; /* floats from a group of ROWS rows to the next */
    ptrdiff_t slab;  /* and from a slab of DEPTH planes */
    size_t floats;   /* in one field */
};

static size_t cell(const struct grid *g, size_t x, size_t y, size_t z) {
    const size_t at = x + INNER_AT - HALF, lane = at & (g->width - 1);
    return z / DEPTH * (size_t)g->slab + y / ROWS * (size_t)g->group + (at - lane) * LINES +
           LINE(z % DEPTH, y % ROWS) * g->width + lane;
}

typedef void block_function(float *next, const float *now, const float *speed, const struct grid *g,
                            const size_t from[3], const size_t to[3], const size_t then[3]);

/* Four floats; the compiler chooses the registers. */
typedef float four __attribute__((vector_size(16)));

static inline four load_four(const float *at) {
    four value;
    memcpy(&value, at, sizeof value);
    return value;
}

static inline void store_lanes_four(float *at, four value, size_t first, size_t last) {
    float lanes[4];
    memcpy(lanes, &value, sizeof lanes);
    memcpy(at + first, lanes + first, (last - first) * sizeof *lanes);
}

#define FORM portable
#define TARGET
#define VECTOR four
#define WIDTH 4
#define ACROSS 2
#define LOAD load_four
#define STORE(p, v) store_lanes_four(p, v, 0, 4)
#define STORE_LANES store_lanes_four
#define SPLAT(s) ((four){(s), (s), (s), (s)})
#define ADD(a, b) ((a) + (b))
#define SUB(a, b) ((a) - (b))
#define MUL(a, b) ((a) * (b))
#define FMA(a, b, c) ((a) * (b) + (c))
/* Copies the row around p to contiguous memory. */
#define AROUND(p)                                                                              \
    float middle_of_row[5 * WIDTH];                                                            \
    for (ptrdiff_t v = 0; v < 5; v++) {                                                        \
        memcpy(middle_of_row + v * WIDTH, (p) + (v - 2) * WIDTH * LINES, WIDTH * sizeof *(p)); \
    }
#define BESIDE(k) (load_four(middle_of_row + 2 * WIDTH - (k)) + load_four(middle_of_row + 2 * WIDTH + (k)))
#include "iso3dfd_rows.h"

#if defined(__x86_64__)
#include <immintrin.h>

FT_TARGET_AVX2 static inline void store_lanes_avx2(float *at, __m256 value, size_t first, size_t last) {
    float lanes[8];
    _mm256_storeu_ps(lanes, value);
    memcpy(at + first, lanes + first, (last - first) * sizeof *lanes);
}

#define FORM avx2
#define TARGET FT_TARGET_AVX2
#define VECTOR __m256
#define WIDTH 8
#define ACROSS 2
#define LOAD _mm256_loadu_ps
#define STORE _mm256_storeu_ps
#define STORE_LANES store_lanes_avx2
#define SPLAT _mm256_set1_ps
#define ADD _mm256_add_ps
#define SUB _mm256_sub_ps
#define MUL _mm256_mul_ps
#define FMA _mm256_fmadd_ps
/* The vectors k to the left and right are cut out of pairs: first by 16 bytes across the halves, then within them. */
#define AROUND(p)                                                                               \
    const __m256i left = _mm256_loadu_si256((const __m256i *)(const void *)((p)-8 * LINES));    \
    const __m256i here = _mm256_loadu_si256((const __m256i *)(const void *)(p));                \
    const __m256i right = _mm256_loadu_si256((const __m256i *)(const void *)((p) + 8 * LINES)); \
    const __m256i left_here = _mm256_permute2x128_si256(left, here, 0x21);                      \
    const __m256i here_right = _mm256_permute2x128_si256(here, right, 0x21);
#define CUT(low, high, floats) _mm256_castsi256_ps(_mm256_alignr_epi8(high, low, 4 * (floats)))
#define BESIDE(k)                                                                                         \
    _mm256_add_ps((k) <= 4 ? CUT(left_here, here, (4 - (k)) & 15) : CUT(left, left_here, (8 - (k)) & 15), \
                  (k) < 4 ? CUT(here, here_right, (k)&7) : CUT(here_right, right, ((k)-4) & 7))
#include "iso3dfd_rows.h"

#define FORM avx512
#define TARGET FT_TARGET_AVX512
#define VECTOR __m512
#define WIDTH 16
#define ACROSS 4
#define LOAD _mm512_loadu_ps
#define STORE _mm512_storeu_ps
#define STORE_LANES(p, v, first, last) _mm512_mask_storeu_ps(p, (__mmask16)((1u << (last)) - (1u << (first))), v)
#define SPLAT _mm512_set1_ps
#define ADD _mm512_add_ps
#define SUB _mm512_sub_ps
#define MUL _mm512_mul_ps
#define FMA _mm512_fmadd_ps
/* Three loads instead of sixteen: the other vectors are cut out of pairs of these. */
#define AROUND(p)                                            \
    const __m512i left = _mm512_loadu_si512((p)-16 * LINES); \
    const __m512i here = _mm512_loadu_si512(p);              \
    const __m512i right = _mm512_loadu_si512((p) + 16 * LINES);
#define BESIDE(k)                                                                 \
    _mm512_add_ps(_mm512_castsi512_ps(_mm512_alignr_epi32(here, left, 16 - (k))), \
                  _mm512_castsi512_ps(_mm512_alignr_epi32(right, here, k)))
#include "iso3dfd_rows.h"

static block_function *const functions[3] = {block_portable, block_avx2, block_avx512};
static const size_t widths[3] = {4, 8, 16};
#else
static block_function *const functions[3] = {block_portable, block_portable, block_portable};
static const size_t widths[3] = {4, 4, 4};
#endif

/* Blocks in the order of the scheduled loop: n1 runs fastest. */
struct blocks {
    size_t size[3];
    size_t count[3];
    size_t all;
};

/* The points of block `index`: the inner points, or with `bordered` the border too. */
static void bounds(const struct grid *g, const struct blocks *b, size_t index, bool bordered, size_t from[3],
                   size_t to[3]) {
    for (int d = 0; d < 3; d++) {
        const size_t block = index % b->count[d];
        index /= b->count[d];
        from[d] = HALF + block * b->size[d];
        to[d] = from[d] + b->size[d] < g->n[d] - HALF ? from[d] + b->size[d] : g->n[d] - HALF;
        if (bordered && block == 0) {
            from[d] = 0;
        }
        if (bordered && block == b->count[d] - 1) {
            to[d] = g->n[d];
        }
    }
}

/* The default block size along a dimension. Measured on Zen 4: parts of n1 whose rows, with the slabs around a block of 8
 * rows, take some 700 KiB of a 1 MiB second-level cache; so many planes that rows beside the block are reused. */
static size_t usual_block(int dimension, size_t inner) {
    static const size_t rows_and_planes[3] = {0, 8, 128};
    if (dimension > 0) {
        return rows_and_planes[dimension];
    }
    const size_t parts = (inner + WIDEST_BLOCK - 1) / WIDEST_BLOCK;
    return ((inner + parts - 1) / parts + 15) / 16 * 16;
}

static struct blocks divide(const struct ft_kernel_options *o, int threads) {
    struct blocks b = {.all = 1};
    for (int d = 0; d < 3; d++) {
        const size_t inner = o->size[d] - 2 * HALF;
        const size_t wanted = o->block[d] ? o->block[d] : usual_block(d, inner);
        b.size[d] = wanted < inner ? wanted : inner;
        b.count[d] = (inner + b.size[d] - 1) / b.size[d];
        /* Halve the planes, in whole slabs, until all threads have some blocks. */
        while (d == 2 && o->block[d] == 0 && b.size[d] >= 2 * DEPTH &&
               b.all * b.count[d] < BLOCKS_A_THREAD * (size_t)threads) {
            b.size[d] = b.size[d] / 2 / DEPTH * DEPTH;
            b.count[d] = (inner + b.size[d] - 1) / b.size[d];
        }
        b.all *= b.count[d];
    }
    return b;
}

/* Vectors and bricks are aligned, because the first inner point of each row, column and plane is. A row ends with the vectors
 * to the right of its last inner point. The numbers of bricks in a group of rows and in a slab are odd: otherwise bricks that
 * are neighbours along n2 and n3 would fall on the same cache sets. */
static struct grid lay_out(const struct ft_kernel_options *o, size_t width) {
    struct grid g = {.n = {o->size[0], o->size[1], o->size[2]}, .width = width};
    const size_t last = (INNER_AT - 2 * HALF + g.n[0] - 1) / width;
    const size_t row = (last + 1 + (width < HALF ? HALF / width : 1)) | 1;
    const size_t bricks = (g.n[1] + ROWS - 1) / ROWS * row | 1;
    g.group = (ptrdiff_t)(row * width * LINES);
    g.slab = (ptrdiff_t)(bricks * width * LINES);
    g.floats = (g.n[2] + DEPTH - 1) / DEPTH * (size_t)g.slab;
    return g;
}

/* A smooth bump plus a rough term, so that every neighbour affects the result. */
static double start_value(const struct grid *g, size_t x, size_t y, size_t z, int when) {
    const double a = (double)x / (double)g->n[0], b = (double)y / (double)g->n[1], c = (double)z / (double)g->n[2];
    const double rough = (double)((x * 7 + y * 13 + z * 29) % 31) / 31.0;
    return a * (1 - a) + b * (1 - b) * 2 + c * (1 - c) * 3 + 0.2 * rough + 0.01 * when;
}

static double speed_at(size_t x, size_t y, size_t z) {
    return 0.05 + 0.04 * (double)((x + 3 * y + 5 * z) % 16) / 16.0;
}

static FT_NOINLINE void initialise(const struct grid *g, const struct blocks *b, uint32_t init, float *previous,
                                   float *now, float *speed, int threads) {
    const size_t block_bytes = b->size[0] * b->size[1] * b->size[2] * sizeof(float);
#pragma omp parallel num_threads(threads)
    {
        size_t first, last;
        for (size_t turn = 0; ft_part_to_touch(init, b->all, block_bytes, turn, &first, &last); turn++) {
            for (size_t block = first; block < last; block++) {
                size_t from[3], to[3];
                bounds(g, b, block, true, from, to);
                for (size_t z = from[2]; z < to[2]; z++) {
                    for (size_t y = from[1]; y < to[1]; y++) {
                        for (size_t x = from[0]; x < to[0]; x++) {
                            const size_t o = cell(g, x, y, z);
                            previous[o] = (float)start_value(g, x, y, z, 0);
                            now[o] = (float)start_value(g, x, y, z, 1);
                            speed[o] = (float)speed_at(x, y, z);
                        }
                    }
                }
            }
        }
    }
}

static FT_NOINLINE void step(const struct grid *g, const struct blocks *b, block_function *body, float *next,
                             const float *now, const float *speed, int threads) {
    omp_sched_t kind;
    int chunk;
    omp_get_schedule(&kind, &chunk);
    /* The most likely distance from a block to the thread's next one. */
    const bool is_by_one = kind == omp_sched_dynamic ? chunk <= 1 : kind == omp_sched_static && chunk == 1;
    const size_t turn = is_by_one ? (size_t)threads : 1;
#pragma omp parallel for schedule(runtime) num_threads(threads)
    for (size_t block = 0; block < b->all; block++) {
        size_t from[3], to[3], then[3], end[3];
        bounds(g, b, block, false, from, to);
        bounds(g, b, block + turn < b->all ? block + turn : 0, false, then, end);
        body(next, now, speed, g, from, to, then);
    }
}

/* Declares `laplacian`, for one point, in double precision. */
#define LAPLACIAN(field, x, y, z, g)                                                                               \
    double laplacian = 3 * exact[0] * (double)(field)[cell(g, x, y, z)];                                           \
    for (size_t k = 1; k <= HALF; k++) {                                                                           \
        laplacian += exact[k] * ((double)(field)[cell(g, (x)-k, y, z)] + (double)(field)[cell(g, (x) + k, y, z)] + \
                                 (double)(field)[cell(g, x, (y)-k, z)] + (double)(field)[cell(g, x, (y) + k, z)] + \
                                 (double)(field)[cell(g, x, y, (z)-k)] + (double)(field)[cell(g, x, y, (z) + k)]); \
    }

struct deviation {
    double largest; /* of any point */
    double scale;   /* the largest value */
    size_t at;
};

static void compare(struct deviation *d, double computed, double expected, size_t at) {
    const double error = fabs(computed - expected);
    if (!(error <= d->largest)) {
        d->largest = error;
        d->at = at;
    }
    d->scale = fabs(expected) > d->scale ? fabs(expected) : d->scale;
}

/* Repeats all steps in double precision with the plainest loop. False: no memory. */
static bool check_whole(const struct grid *g, uint64_t steps, const float *field, struct deviation *d) {
    double *now = malloc(g->floats * sizeof *now), *other = malloc(g->floats * sizeof *other);
    const bool ok = now != NULL && other != NULL;
    for (size_t z = 0; ok && z < g->n[2]; z++) {
        for (size_t y = 0; y < g->n[1]; y++) {
            for (size_t x = 0; x < g->n[0]; x++) {
                other[cell(g, x, y, z)] = (float)start_value(g, x, y, z, 0);
                now[cell(g, x, y, z)] = (float)start_value(g, x, y, z, 1);
            }
        }
    }
    for (uint64_t s = 0; ok && s < steps; s++) {
        for (size_t z = HALF; z < g->n[2] - HALF; z++) {
            for (size_t y = HALF; y < g->n[1] - HALF; y++) {
                for (size_t x = HALF; x < g->n[0] - HALF; x++) {
                    const size_t o = cell(g, x, y, z);
                    LAPLACIAN(now, x, y, z, g)
                    other[o] = 2 * now[o] - other[o] + (double)(float)speed_at(x, y, z) * laplacian;
                }
            }
        }
        double *swap = now;
        now = other;
        other = swap;
    }
    for (size_t z = 0; ok && z < g->n[2]; z++) {
        for (size_t y = 0; y < g->n[1]; y++) {
            for (size_t x = 0; x < g->n[0]; x++) {
                const size_t o = cell(g, x, y, z);
                compare(d, (double)field[o], now[o], o);
            }
        }
    }
    free(now);
    free(other);
    return ok;
}

#define SAMPLE 20000

struct sample {
    size_t points[SAMPLE];
    double expected[SAMPLE];
};

/* Computes a sample of points in double precision, then makes one more step and compares. False: no memory. */
static bool check_sample(const struct grid *g, const struct blocks *b, block_function *body, float *next,
                         const float *now, const float *speed, int threads, struct deviation *d) {
    struct sample *sample = malloc(sizeof *sample);
    if (sample == NULL) {
        return false;
    }
    uint64_t random = 88172645463325252u;
    for (size_t i = 0; i < SAMPLE; i++) {
        size_t x[3];
        for (int k = 0; k < 3; k++) {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            const size_t inner = g->n[k] - 2 * HALF;
            /* The eight corners come first. */
            x[k] = HALF + (i < 8 ? (i >> k & 1) * (inner - 1) : random % inner);
        }
        const size_t o = cell(g, x[0], x[1], x[2]);
        LAPLACIAN(now, x[0], x[1], x[2], g)
        sample->points[i] = o;
        sample->expected[i] = 2 * (double)now[o] - (double)next[o] + (double)speed[o] * laplacian;
    }
    step(g, b, body, next, now, speed, threads);
    for (size_t i = 0; i < SAMPLE; i++) {
        compare(d, (double)next[sample->points[i]], sample->expected[i], sample->points[i]);
    }
    free(sample);
    return true;
}

static bool sizes_are_valid(const struct ft_kernel_options *o) {
    for (int d = 0; d < 3; d++) {
        if (o->size[d] <= 2 * HALF || o->size[d] > INT32_MAX) {
            return false;
        }
    }
    return ft_options_are_valid(o);
}

int ft_iso3dfd(const struct ft_kernel_options *o, double *seconds, struct ft_kernel_result *result) {
    if (!sizes_are_valid(o)) {
        return FT_KERNEL_OPTIONS;
    }
    const uint32_t form = ft_choose_form(o->form);
    if (form == 0) {
        return FT_KERNEL_FORM;
    }
    const struct grid g = lay_out(o, widths[form - 1]);
    const int threads = ft_team_size(o);
    const struct blocks b = divide(o, threads);
    const size_t bytes = (g.floats + 2 * APART) * sizeof(float);
    float *memory[3] = {ft_allocate(bytes, o), ft_allocate(bytes, o), ft_allocate(bytes, o)};
    int status = FT_KERNEL_MEMORY;
    for (int k = 0; k <= HALF; k++) {
        coefficients[k] = (float)(k == 0 ? 3 * exact[0] : exact[k]);
    }
    if (memory[0] != NULL && memory[1] != NULL && memory[2] != NULL) {
        float *next = memory[0], *now = memory[1] + APART, *speed = memory[2] + 2 * APART;
        uint64_t steps = 0;
        initialise(&g, &b, o->init, next, now, speed, threads);
        ft_use_schedule(o);
        for (uint64_t repetition = 0; repetition < o->repetitions; repetition++) {
            const double start = omp_get_wtime();
            for (uint64_t iteration = 0; iteration < o->iterations; iteration++, steps++) {
                step(&g, &b, functions[form - 1], next, now, speed, threads);
                float *swap = next;
                next = now;
                now = swap;
            }
            seconds[repetition] = (omp_get_wtime() - start) / (double)o->iterations;
        }
        ft_observe(result, memory[1], bytes, threads);
        const bool is_small = g.floats <= CHECKED_WHOLE && (double)g.floats * (double)steps <= STEPS_CHECKED_WHOLE;
        struct deviation d = {0};
        const bool is_checked = (is_small && check_whole(&g, steps, now, &d)) ||
                                check_sample(&g, &b, functions[form - 1], next, now, speed, threads, &d);
        result->threads = (uint32_t)threads;
        result->form = form;
        result->bytes = 3 * bytes;
        result->worst_error = d.largest / d.scale;
        result->wrong_at = d.at;
        status = !is_checked ? FT_KERNEL_MEMORY : result->worst_error <= TOLERANCE ? FT_KERNEL_OK : FT_KERNEL_WRONG;
    }
    for (int i = 0; i < 3; i++) {
        ft_release(memory[i], bytes);
    }
    return status;
}
