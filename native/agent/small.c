/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * A sample of the blocks below the threshold, as heap profilers take it: each byte that a thread allocates is equally likely to
 * be sampled, and a block is recorded if one of its bytes is. The gaps between sampled bytes are exponentially distributed, so
 * a new draw after each sample, and at the start of a thread, keeps the sample unbiased: a block of s bytes is recorded with
 * probability 1 - exp(-s / mean).
 *
 * A block that is not sampled costs a subtraction and a comparison. A thread that records more than 1,024 blocks a second doubles
 * its mean, and one that records fewer than 256 halves it again. (Each record carries its mean, and which byte is sampled next
 * does not depend on it, so the sample stays unbiased.)
 */
#include "agent.h"

#define SAMPLES_AT_A_MEAN 512u
#define SHORT_NS 500000000u          /* in less time, the mean doubles */
#define LONG_NS 2000000000u          /* in more time, it halves */
#define MEAN_MAX (1u << 26)          /* bytes */
#define ASK_AGAIN 4096u              /* bytes, while the agent is silent */
#define LN_2 45426u                  /* in units of 2^-16 */
#define NOT_SAMPLED (UINT64_MAX / 4) /* bytes: no thread allocates that many */

/* xorshift64* (Vigna 2016) */
static uint64_t random_word(void) {
    uint64_t x = ft_thread.small_random;
    x ^= x >> 12;
    x ^= x << 25;
    x ^= x >> 27;
    ft_thread.small_random = x;
    return x * 0x2545f4914f6cdd1dull;
}

/* -log2((x + 1/2) / 2^64) for a random word, in units of 2^-16. The significand is squared: each time that it reaches 2 gives a
 * binary digit. Integers only: the program may watch the exceptions of its floating point. */
static uint64_t minus_log2(uint64_t x) {
    x |= 1;
    int zeros = __builtin_clzll(x);
    uint64_t significand = x << zeros >> 32; /* in [1, 2), in units of 2^-31 */
    uint64_t fraction = 0;
    for (int digit = 0; digit < 16; digit++) {
        significand = significand * significand >> 31;
        fraction <<= 1;
        if (significand >> 32 != 0) {
            significand >>= 1;
            fraction |= 1;
        }
    }
    return ((uint64_t)(zeros + 1) << 16) - fraction;
}

/* Bytes to the next sampled one: exponentially distributed. (The product is below 2^64 for a mean of 2^26.) */
static uint64_t draw(uint32_t mean) {
    return mean * minus_log2(random_word()) * LN_2 >> 32;
}

static void begin_thread(uint32_t mean, uint64_t now) {
    uint64_t seed = now ^ (uint64_t)(uintptr_t)&ft_thread;
    ft_thread.small_random = (seed * 0x9e3779b97f4a7c15ull) | 1;
    ft_thread.small_mean = mean;
    ft_thread.small_since = now;
    random_word();
}

/* Adapts the mean to how long the last samples took. */
static void adapt(uint32_t mean, uint64_t now) {
    uint64_t took = now - ft_thread.small_since;
    if (took < SHORT_NS && mean < MEAN_MAX) {
        ft_thread.small_mean = 2 * mean;
    } else if (took > LONG_NS && mean > ft_agent.ring->small_mean) {
        ft_thread.small_mean = mean / 2;
    }
    ft_thread.small_since = now;
    ft_thread.small_recorded = 0;
}

void ft_small_allocated(const struct ft_record *record, struct ft_caller caller) {
    if (ft_silent()) {
        ft_thread.small_left = ASK_AGAIN;
        return;
    }
    uint32_t mean = ft_thread.small_mean;
    if (ft_agent.ring->small_mean == 0) {
        ft_thread.small_left = NOT_SAMPLED;
        return;
    }
    if (mean == 0) {
        begin_thread(ft_agent.ring->small_mean, record->time_ns);
    } else {
        struct ft_record small = *record;
        small.type = FT_REC_SMALL;
        small.aux = mean;
        ft_record_with_stack(&small, caller);
        if (++ft_thread.small_recorded >= SAMPLES_AT_A_MEAN) {
            adapt(mean, record->time_ns);
        }
    }
    ft_thread.small_left = draw(ft_thread.small_mean);
}
