/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * The mappings that were placed last. Programs map more than they keep, to align it, and unmap the ends: the rest is then
 * divided anew.
 */
#include "plan.h"

/* A thread that finds the list in use goes on without it. */
#define RECENT 64u
static struct recent {
    uintptr_t address; /* 0: vacant */
    size_t size;
    struct ft_plan_entry *entry;
    uint64_t index;
} recent[RECENT];
static uint32_t next;
static uint32_t in_use;
bool ft_has_mappings;

void ft_place_mapping(struct ft_plan_entry *entry, uintptr_t address, size_t size, uint64_t index) {
    ft_place(entry, address, size, index);
    if (__atomic_exchange_n(&in_use, 1, __ATOMIC_ACQUIRE) == 0) {
        recent[next++ % RECENT] = (struct recent){address, size, entry, index};
        __atomic_store_n(&ft_has_mappings, true, __ATOMIC_RELAXED);
        __atomic_store_n(&in_use, 0, __ATOMIC_RELEASE);
    }
}

void ft_mapping_trimmed(uintptr_t from, size_t size) {
    if (__atomic_exchange_n(&in_use, 1, __ATOMIC_ACQUIRE) != 0) {
        return;
    }
    uintptr_t to = (from + size + ft_plan.page_bytes - 1) & ~(ft_plan.page_bytes - 1);
    for (uint32_t i = 0; i < RECENT; i++) {
        struct recent *one = &recent[i];
        uintptr_t end = one->address + one->size;
        if (one->address == 0 || to <= one->address || from >= end) {
            continue;
        }
        bool is_head = from <= one->address && to<end, is_tail = from> one->address && to >= end;
        if (!is_head && !is_tail) {
            one->address = 0;
            continue;
        }
        one->address = is_head ? to : one->address;
        one->size = (is_head ? end : from) - one->address;
        ft_apply(one->entry, one->address, one->size, one->index);
    }
    __atomic_store_n(&in_use, 0, __ATOMIC_RELEASE);
}

void ft_mapping_gone(uintptr_t from, size_t size) {
    if (__atomic_exchange_n(&in_use, 1, __ATOMIC_ACQUIRE) != 0) {
        return;
    }
    for (uint32_t i = 0; i < RECENT; i++) {
        if (from < recent[i].address + recent[i].size && recent[i].address < from + size) {
            recent[i].address = 0;
            recent[i].size = 0;
        }
    }
    __atomic_store_n(&in_use, 0, __ATOMIC_RELEASE);
}
