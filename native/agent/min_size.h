/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * Which allocations are recorded: those of at least `min_size` bytes (`firsttouch profile --min-size`). Of smaller ones
 * a sample is recorded (small.c). Included by agent.h, which declares ft_wiped.
 */
#ifndef FIRSTTOUCH_MIN_SIZE_H
#define FIRSTTOUCH_MIN_SIZE_H

/* The largest size that is not recorded, bytes; SIZE_MAX while the agent is silent. */
static inline size_t ft_threshold(void) {
    return __atomic_load_n(&ft_wiped.min_size, __ATOMIC_RELAXED) - 1;
}

static inline bool ft_silent(void) {
    return ft_threshold() == SIZE_MAX;
}

#endif
