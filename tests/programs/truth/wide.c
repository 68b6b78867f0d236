// SPDX-License-Identifier: Apache-2.0 OR MIT
// corpus: build = gcc -O2 -g -Wall -Wextra -fno-tree-vectorize -fopenmp {src} -o {out}
// corpus: run = {out} --threads 8 --seconds 10 --mib 64 --init serial
//
// Two arrays of the same size, used in blocks: a is read in loads of 32 bytes, b in loads of 8, both once a sweep. In
// words both are accessed equally often; in instructions b is accessed four times as often. Exits 77 without AVX2.

#include "team.h"
#include <immintrin.h>

static struct options options;
static size_t words;
static double *a, *b;
static bool wrong;

KERNEL __attribute__((target("avx2"))) double sum_wide_and_narrow(const double *wide, const double *narrow,
                                                                  struct range mine) {
    __m256d sums = _mm256_setzero_pd();
    double sum = 0.0;
    for (size_t i = mine.begin; i < mine.end; i += 4) {
        sums = _mm256_add_pd(sums, _mm256_load_pd(wide + i));
        sum += narrow[i];
        sum += narrow[i + 1];
        sum += narrow[i + 2];
        sum += narrow[i + 3];
    }
    const __m128d pair = _mm_add_pd(_mm256_castpd256_pd128(sums), _mm256_extractf128_pd(sums, 1));
    return sum + _mm_cvtsd_f64(_mm_add_sd(pair, _mm_unpackhi_pd(pair, pair)));
}

static void sweep(int thread) {
    const struct range mine = block_of(words, thread, options.threads);
    if (sum_wide_and_narrow(a, b, mine) != 3.0 * (double)(mine.end - mine.begin)) {
#pragma omp atomic write
        wrong = true;
    }
}

int main(int argc, char **argv) {
    options = options_from(argc, argv);
    if (!__builtin_cpu_supports("avx2")) {
        fprintf(stderr, "this processor has no AVX2\n");
        return 77;
    }
    words = words_of(&options, 2);
    a = aligned_alloc(PAGE, words * sizeof *a);
    b = aligned_alloc(PAGE, words * sizeof *b);
    struct object truth_a = object_of("a", a, words);
    struct object truth_b = object_of("b", b, words);
    initialise(&truth_a, a, 1.0, &options, block_of);
    initialise(&truth_b, b, 2.0, &options, block_of);

    const uint64_t sweeps = run_sweeps(&options, UINT64_MAX, sweep);

    for (int t = 0; t < options.threads; t++) {
        const struct range mine = block_of(words, t, options.threads);
        count(&truth_a, t, options.threads, mine, sweeps);
        count(&truth_b, t, options.threads, mine, sweeps);
    }
    print_truth(&options, (struct object *[]){&truth_a, &truth_b}, 2);
    return finish(!wrong);
}
