/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * The blocks that ft_alloc mapped, by address: open addressing, at most half full. One lock guards all state of the library that
 * threads share. A fork takes it first, so that the child finds it free and the state whole.
 */
#include "library.h"

#include <pthread.h>
#include <stdlib.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static ftl_block **slots;
static size_t capacity; /* 0, or a power of two */
static size_t used;     /* slots with a block, and slots that are kept for one that was taken out */

void ftl_lock(void) {
    pthread_mutex_lock(&lock);
}

void ftl_unlock(void) {
    pthread_mutex_unlock(&lock);
}

__attribute__((constructor)) static void be_safe_in_forks(void) {
    pthread_atfork(ftl_lock, ftl_unlock, ftl_unlock);
}

/* Addresses of blocks differ in the bits above the page. */
static size_t home(const void *pointer, size_t in_capacity) {
    uint64_t mixed = ((uint64_t)(uintptr_t)pointer >> 12) * 0x9e3779b97f4a7c15u;
    return (size_t)(mixed >> 20) & (in_capacity - 1);
}

/* The slot with the block, or the free slot where the search for it ends. */
static size_t slot_of(ftl_block **in, size_t in_capacity, const void *pointer) {
    size_t slot = home(pointer, in_capacity);
    while (in[slot] != NULL && in[slot]->pointer != pointer) {
        slot = (slot + 1) & (in_capacity - 1);
    }
    return slot;
}

static bool grow(void) {
    size_t more = capacity == 0 ? 64 : capacity * 2;
    ftl_block **table = calloc(more, sizeof *table);
    if (table == NULL) {
        return false;
    }
    for (size_t i = 0; i < capacity; i++) {
        if (slots[i] != NULL) {
            table[slot_of(table, more, slots[i]->pointer)] = slots[i];
        }
    }
    free(slots);
    slots = table;
    capacity = more;
    return true;
}

/* Fills a slot that is counted. */
static void insert(ftl_block *block) {
    slots[slot_of(slots, capacity, block->pointer)] = block;
}

bool ftl_register(ftl_block *block) {
    ftl_lock();
    /* Without memory to grow, fill the table further: a search needs one free slot. */
    bool fits = used * 2 < capacity || grow() || used + 1 < capacity;
    if (fits) {
        insert(block);
        used++;
    }
    ftl_unlock();
    return fits;
}

/* Moves later blocks of the same run back, so that no search ends too early. */
static void close_gap(size_t gap) {
    size_t mask = capacity - 1;
    for (size_t next = (gap + 1) & mask; slots[next] != NULL; next = (next + 1) & mask) {
        size_t wanted = home(slots[next]->pointer, capacity);
        if (((next - wanted) & mask) >= ((next - gap) & mask)) {
            slots[gap] = slots[next];
            gap = next;
        }
    }
    slots[gap] = NULL;
}

static ftl_block *remove_block(const void *pointer) {
    size_t slot = capacity == 0 ? 0 : slot_of(slots, capacity, pointer);
    ftl_block *block = capacity == 0 ? NULL : slots[slot];
    if (block != NULL) {
        close_gap(slot);
    }
    return block;
}

ftl_block *ftl_take_out(const void *pointer) {
    ftl_lock();
    ftl_block *block = remove_block(pointer);
    ftl_unlock();
    return block;
}

void ftl_put_back(ftl_block *block) {
    ftl_lock();
    insert(block);
    ftl_unlock();
}

ftl_block *ftl_unregister(const void *pointer) {
    ftl_lock();
    ftl_block *block = remove_block(pointer);
    used -= block != NULL;
    if (used == 0) {
        free(slots); /* a leak checker finds nothing of ours at the end */
        slots = NULL;
        capacity = 0;
    }
    ftl_unlock();
    return block;
}

bool ftl_find(const void *pointer, ftl_block *found) {
    ftl_lock();
    ftl_block *block = capacity == 0 ? NULL : slots[slot_of(slots, capacity, pointer)];
    if (block != NULL) {
        *found = *block;
    }
    ftl_unlock();
    return block != NULL;
}

void ftl_block_delete(ftl_block *block) {
    if (block != NULL) {
        free((void *)block->partition.bounds);
        free((void *)block->partition.weights);
        free(block->copy);
        free(block);
    }
}
