/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * A fixed number of slots through which a thread's creator passes data to the new thread. These functions neither allocate
 * nor wait, because they run inside the program. A slot's first member is `uint32_t held`, 0 while the slot is vacant. It
 * is held from pthread_create to the first instructions of the thread.
 */
#ifndef FIRSTTOUCH_THREAD_START_H
#define FIRSTTOUCH_THREAD_START_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Takes a vacant one of `count` slots of `size` bytes, or returns NULL when all are held. The search starts at another slot each
 * time: `next` is the counter for that, shared by all threads. */
static inline void *ft_take_slot(void *slots, size_t size, uint32_t count, uint32_t *next) {
    uint32_t from = __atomic_fetch_add(next, 1, __ATOMIC_RELAXED);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t *held = (uint32_t *)(void *)((char *)slots + (size_t)((from + i) % count) * size);
        uint32_t vacant = 0;
        if (__atomic_compare_exchange_n(held, &vacant, 1, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) {
            return held;
        }
    }
    return NULL;
}

/* Pre-condition: the slot was taken, and its data are copied. */
static inline void ft_release_slot(uint32_t *held) {
    __atomic_store_n(held, 0, __ATOMIC_RELEASE);
}

#endif
