/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * Time for records. A thread reads CLOCK_MONOTONIC and the time-stamp counter together, and for the next millisecond
 * derives time from the counter (ft_now). The rate comes from two such pairs, so it follows the kernel's corrections. A pair
 * is uncertain by the duration of one clock_gettime: some 50 ns in a millisecond.
 */
#include "agent.h"

#define RATE_BITS 32
#define SPAN_NS 1000000u       /* a pair is valid this long; two pairs at least this far apart give a rate */
#define LONGEST_NS 1000000000u /* between pairs farther apart the counter may have been stopped or moved */
#define LONGEST_TICKS (UINT64_C(1) << 34)
#define READ_TICKS 400u /* a reading that took longer was interrupted */

static uint64_t read_monotonic(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

#if defined(__x86_64__)

/* Takes a pair of readings as the new base. */
static void rebase(uint64_t ticks, uint64_t now) {
    uint64_t ticks_passed = ticks - ft_thread.clock_ticks;
    uint64_t ns_passed = now - ft_thread.clock_ns;
    uint64_t rate = ft_thread.clock_rate;
    if (ft_thread.clock_ns != 0 && ns_passed < SPAN_NS && rate == 0) {
        return; /* too close together for a rate: wait */
    }
    if (ft_thread.clock_ns != 0 && ns_passed < LONGEST_NS && ticks_passed < LONGEST_TICKS && ns_passed >= SPAN_NS) {
        rate = (ns_passed << RATE_BITS) / ticks_passed;
    }
    ft_thread.clock_ticks = ticks;
    ft_thread.clock_ns = now;
    ft_thread.clock_rate = rate;
    /* If a signal handler has run in between, the base is its own, and ours is only partly written. */
    if (rate != 0 && ft_thread.clock_ticks == ticks) {
        ft_thread.clock_span = ((uint64_t)SPAN_NS << RATE_BITS) / rate;
    }
}

uint64_t ft_read_clock(void) {
    if (!ft_agent.has_ticks) {
        return read_monotonic();
    }
    uint64_t before = __builtin_ia32_rdtsc();
    uint64_t now = read_monotonic();
    uint64_t after = __builtin_ia32_rdtsc();
    /* The derived time may be slightly ahead: a thread's time must not go back. */
    uint64_t since = before - ft_thread.clock_ticks;
    if (ft_thread.clock_span != 0 && since < 2 * ft_thread.clock_span) {
        uint64_t derived = ft_thread.clock_ns + (since * ft_thread.clock_rate >> RATE_BITS);
        now = derived > now ? derived : now;
    }
    ft_thread.clock_span = 0;
    if (after - before < READ_TICKS) {
        rebase(before + (after - before) / 2, now);
    }
    return now;
}

#else

uint64_t ft_read_clock(void) {
    return read_monotonic();
}

#endif
