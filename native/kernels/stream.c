/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * STREAM's four loops on arrays of doubles, Schoenauer's triad, a loop that only reads and one that only writes:
 *
 *   copy c = a    scale b = s c    add c = a + b    triad a = b + s c    read sum of a    write a = s
 *   schoenauer d = a + b * c
 *
 * Stores bypass the caches (non-temporal), so that the bytes counted are the bytes moved; with FT_STREAM_TEMPORAL they go
 * through the caches, which read each line before it is written.
 */
#include "kernel.h"

#include <math.h>
#include <omp.h>
#include <string.h>

/* Elements in one iteration of the scheduled loop: 32 KiB of each array. */
#define BLOCK 4096
#define SCALAR 3.0

struct arrays {
    double *target;
    const double *left;
    const double *right;
    const double *third;
};

/* Processes `count` elements from `at` on (a multiple of 8). Returns the sum for read, else 0. */
typedef double loop(const struct arrays *arrays, size_t at, size_t count);

static double copy_portable(const struct arrays *x, size_t at, size_t count) {
    for (size_t i = at; i < at + count; i++) {
        x->target[i] = x->left[i];
    }
    return 0;
}

static double scale_portable(const struct arrays *x, size_t at, size_t count) {
    for (size_t i = at; i < at + count; i++) {
        x->target[i] = SCALAR * x->left[i];
    }
    return 0;
}

static double add_portable(const struct arrays *x, size_t at, size_t count) {
    for (size_t i = at; i < at + count; i++) {
        x->target[i] = x->left[i] + x->right[i];
    }
    return 0;
}

static double triad_portable(const struct arrays *x, size_t at, size_t count) {
    for (size_t i = at; i < at + count; i++) {
        x->target[i] = x->left[i] + SCALAR * x->right[i];
    }
    return 0;
}

static double schoenauer_portable(const struct arrays *x, size_t at, size_t count) {
    for (size_t i = at; i < at + count; i++) {
        x->target[i] = x->left[i] + x->right[i] * x->third[i];
    }
    return 0;
}

static double read_portable(const struct arrays *x, size_t at, size_t count) {
    double sums[8] = {0};
    size_t i = at;
    for (; i + 8 <= at + count; i += 8) {
        for (size_t k = 0; k < 8; k++) {
            sums[k] += x->left[i + k];
        }
    }
    for (; i < at + count; i++) {
        sums[0] += x->left[i];
    }
    return ((sums[0] + sums[1]) + (sums[2] + sums[3])) + ((sums[4] + sums[5]) + (sums[6] + sums[7]));
}

static double write_portable(const struct arrays *x, size_t at, size_t count) {
    for (size_t i = at; i < at + count; i++) {
        x->target[i] = SCALAR;
    }
    return 0;
}

#if defined(__x86_64__)
#include <immintrin.h>

/* The six loops for one vector length; `store` is a plain or a streaming one. The last elements, fewer than
 * four vectors, are processed one by one. */
#define LOOP(name, target_, vector, width, load, statement)                                           \
    target_ static double name(const struct arrays *x, size_t at, size_t count) {                     \
        const vector s = SET1(SCALAR);                                                                \
        (void)s;                                                                                      \
        size_t i = at;                                                                                \
        for (; i + 4 * (width) <= at + count; i += 4 * (width)) {                                     \
            statement(i) statement(i + (width)) statement(i + 2 * (width)) statement(i + 3 * (width)) \
        }                                                                                             \
        return load(x, i, at + count - i);                                                            \
    }

#define COPY(i) STORE(x->target + (i), LOAD(x->left + (i)));
#define SCALE(i) STORE(x->target + (i), MUL(s, LOAD(x->left + (i))));
#define ADD(i) STORE(x->target + (i), PLUS(LOAD(x->left + (i)), LOAD(x->right + (i))));
#define TRIAD(i) STORE(x->target + (i), FMA(s, LOAD(x->right + (i)), LOAD(x->left + (i))));
#define SCHOENAUER(i) STORE(x->target + (i), FMA(LOAD(x->right + (i)), LOAD(x->third + (i)), LOAD(x->left + (i))));
#define WRITE(i) STORE(x->target + (i), s);

#define LOOPS(suffix, target_, vector, width)                                          \
    LOOP(copy_##suffix, target_, vector, width, copy_portable, COPY)                   \
    LOOP(scale_##suffix, target_, vector, width, scale_portable, SCALE)                \
    LOOP(add_##suffix, target_, vector, width, add_portable, ADD)                      \
    LOOP(triad_##suffix, target_, vector, width, triad_portable, TRIAD)                \
    LOOP(schoenauer_##suffix, target_, vector, width, schoenauer_portable, SCHOENAUER) \
    LOOP(write_##suffix, target_, vector, width, write_portable, WRITE)

#define READ(name, target_, vector, width, reduce)                                                 \
    target_ static double name(const struct arrays *x, size_t at, size_t count) {                  \
        vector sums[8] = {SET1(0), SET1(0), SET1(0), SET1(0), SET1(0), SET1(0), SET1(0), SET1(0)}; \
        size_t i = at;                                                                             \
        for (; i + 8 * (width) <= at + count; i += 8 * (width)) {                                  \
            for (size_t k = 0; k < 8; k++) {                                                       \
                sums[k] = PLUS(sums[k], LOAD(x->left + i + k * (width)));                          \
            }                                                                                      \
        }                                                                                          \
        for (size_t k = 1; k < 8; k++) {                                                           \
            sums[0] = PLUS(sums[0], sums[k]);                                                      \
        }                                                                                          \
        double lanes[width];                                                                       \
        memcpy(lanes, &sums[0], sizeof lanes);                                                     \
        double sum = read_portable(x, i, at + count - i);                                          \
        for (size_t k = 0; k < (width); k++) {                                                     \
            sum += lanes[k];                                                                       \
        }                                                                                          \
        return sum;                                                                                \
    }

#define SET1 _mm256_set1_pd
#define LOAD _mm256_loadu_pd
#define MUL _mm256_mul_pd
#define PLUS _mm256_add_pd
#define FMA _mm256_fmadd_pd
#define STORE _mm256_storeu_pd
LOOPS(avx2, FT_TARGET_AVX2, __m256d, 4)
READ(read_avx2, FT_TARGET_AVX2, __m256d, 4, )
#undef STORE
#define STORE _mm256_stream_pd
LOOPS(avx2_streaming, FT_TARGET_AVX2, __m256d, 4)
#undef SET1
#undef LOAD
#undef MUL
#undef PLUS
#undef FMA
#undef STORE

#define SET1 _mm512_set1_pd
#define LOAD _mm512_loadu_pd
#define MUL _mm512_mul_pd
#define PLUS _mm512_add_pd
#define FMA _mm512_fmadd_pd
#define STORE _mm512_storeu_pd
LOOPS(avx512, FT_TARGET_AVX512, __m512d, 8)
READ(read_avx512, FT_TARGET_AVX512, __m512d, 8, )
#undef STORE
#define STORE _mm512_stream_pd
LOOPS(avx512_streaming, FT_TARGET_AVX512, __m512d, 8)

static void settle_streaming_stores(void) {
    _mm_sfence();
}
#else
static void settle_streaming_stores(void) {}
#endif

/* Index: variant, form - 1, are stores non-temporal? */
#define PORTABLE(name) \
    { name##_portable, name##_portable }
#if defined(__x86_64__)
#define FORMS(name)                                             \
    {                                                           \
        PORTABLE(name), {name##_avx2, name##_avx2_streaming}, { \
            name##_avx512, name##_avx512_streaming              \
        }                                                       \
    }
#define FORMS_OF_READ                             \
    {                                             \
        PORTABLE(read), {read_avx2, read_avx2}, { \
            read_avx512, read_avx512              \
        }                                         \
    }
#else
#define FORMS(name) \
    { PORTABLE(name), PORTABLE(name), PORTABLE(name) }
#define FORMS_OF_READ FORMS(read)
#endif
static loop *const loops[7][3][2] = {FORMS(copy),   FORMS(scale), FORMS(add),       FORMS(triad),
                                     FORMS_OF_READ, FORMS(write), FORMS(schoenauer)};

#define ARRAYS 4 /* the target, and up to three inputs; NULL where the loop has none */

/* Touches each array in the order and the parts in which the loops use it. */
static FT_NOINLINE void initialise(const struct ft_kernel_options *o, double *const arrays[ARRAYS], int threads) {
    static const double values[ARRAYS] = {0.5, 1.0, 2.0, 4.0};
    const size_t count = o->size[0];
#pragma omp parallel num_threads(threads)
    {
        size_t first, last;
        for (size_t turn = 0;
             ft_part_to_touch(o->init, (count + BLOCK - 1) / BLOCK, BLOCK * sizeof(double), turn, &first, &last);
             turn++) {
            const size_t end = last * BLOCK < count ? last * BLOCK : count;
            for (size_t array = 0; array < ARRAYS; array++) {
                for (size_t i = first * BLOCK; arrays[array] != NULL && i < end; i++) {
                    arrays[array][i] = values[array];
                }
            }
        }
    }
}

static FT_NOINLINE double sweep(loop *body, const struct arrays *x, size_t count, int threads) {
    double sum = 0;
#pragma omp parallel num_threads(threads) reduction(+ : sum)
    {
#pragma omp for schedule(runtime) nowait
        for (size_t block = 0; block < (count + BLOCK - 1) / BLOCK; block++) {
            const size_t at = block * BLOCK;
            sum += body(x, at, at + BLOCK < count ? BLOCK : count - at);
        }
        settle_streaming_stores();
    }
    return sum;
}

/* All elements are equal, so the exact value of each is known. */
static bool check(const struct ft_kernel_options *o, const double *target, double sum,
                  struct ft_kernel_result *result) {
    static const double expected[7] = {1.0, SCALAR * 1.0, 1.0 + 2.0, 1.0 + SCALAR * 2.0, 0, SCALAR, 1.0 + 2.0 * 4.0};
    const uint32_t variant = o->variant & ~FT_STREAM_TEMPORAL;
    result->worst_error = 0;
    result->wrong_at = 0;
    if (variant == FT_READ) {
        result->worst_error = fabs(sum - (double)o->size[0]) / (double)o->size[0];
        return result->worst_error <= 1e-12;
    }
    for (size_t i = 0; i < o->size[0]; i++) {
        const double error = fabs(target[i] - expected[variant]);
        if (!(error <= result->worst_error)) {
            result->worst_error = error;
            result->wrong_at = i;
        }
    }
    return result->worst_error == 0;
}

int ft_stream(const struct ft_kernel_options *o, double *seconds, struct ft_kernel_result *result) {
    const uint32_t variant = o->variant & ~FT_STREAM_TEMPORAL;
    if (!ft_options_are_valid(o) || variant > FT_SCHOENAUER) {
        return FT_KERNEL_OPTIONS;
    }
    const uint32_t form = ft_choose_form(o->form);
    if (form == 0) {
        return FT_KERNEL_FORM;
    }
    static const size_t inputs[7] = {1, 1, 2, 2, 1, 0, 3};
    const size_t bytes = o->size[0] * sizeof(double);
    double *arrays[ARRAYS] = {NULL};
    bool is_whole = true;
    result->bytes = 0;
    for (size_t array = 0; array < ARRAYS; array++) {
        if (array == 0 ? variant != FT_READ : array <= inputs[variant]) {
            arrays[array] = ft_allocate(bytes, o);
            is_whole = is_whole && arrays[array] != NULL;
            result->bytes += bytes;
        }
    }
    int status = FT_KERNEL_MEMORY;
    if (is_whole) {
        const int threads = ft_team_size(o);
        const struct arrays x = {.target = arrays[0], .left = arrays[1], .right = arrays[2], .third = arrays[3]};
        loop *body = loops[variant][form - 1][(o->variant & FT_STREAM_TEMPORAL) == 0];
        double sum = 0;
        initialise(o, arrays, threads);
        ft_use_schedule(o);
        sweep(body, &x, o->size[0], threads);
        for (uint64_t repetition = 0; repetition < o->repetitions; repetition++) {
            const double start = omp_get_wtime();
            for (uint64_t iteration = 0; iteration < o->iterations; iteration++) {
                sum = sweep(body, &x, o->size[0], threads);
            }
            seconds[repetition] = (omp_get_wtime() - start) / (double)o->iterations;
        }
        result->threads = (uint32_t)threads;
        result->form = form;
        ft_observe(result, arrays[variant == FT_READ ? 1 : 0], bytes, threads);
        status = check(o, arrays[0], sum, result) ? FT_KERNEL_OK : FT_KERNEL_WRONG;
    }
    for (size_t array = 0; array < ARRAYS; array++) {
        ft_release(arrays[array], bytes);
    }
    return status;
}
