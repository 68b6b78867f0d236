/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * A fixed number of places in which a thread's creator leaves what the thread needs at its start. Neither allocates nor
 * waits: it runs in programs of others. A place's first member is `uint32_t held`, 0 while it is vacant; it is held from
 * pthread_create to the first instructions of the thread.
 */
#ifndef FIRSTTOUCH_STARTS_H
#define FIRSTTOUCH_STARTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Takes a vacant one of `count` places of `size` bytes, beginning at another one each time; NULL when all are held. */
static inline void *ft_take_place(void *places, size_t size, uint32_t count, uint32_t *next) {
    uint32_t from = __atomic_fetch_add(next, 1, __ATOMIC_RELAXED);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t *held = (uint32_t *)(void *)((char *)places + (size_t)((from + i) % count) * size);
        uint32_t vacant = 0;
        if (__atomic_compare_exchange_n(held, &vacant, 1, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) {
            return held;
        }
    }
    return NULL;
}

static inline void ft_give_back_place(uint32_t *held) {
    __atomic_store_n(held, 0, __ATOMIC_RELEASE);
}

#endif
