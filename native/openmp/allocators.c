/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * The allocators that the program has made with a partition trait, by their handles, and the default allocator that OMP_ALLOCATOR
 * describes.
 */
#include "openmp.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define ALLOCATORS 256 /* the program's that have the trait, at once; more are left to the runtime */

static struct {
    uintptr_t handle; /* 0: free */
    enum how how;
} allocators[ALLOCATORS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static bool is_empty = true; /* read without the lock: most programs have none */

static void set(uintptr_t handle, enum how how) {
    pthread_mutex_lock(&lock);
    size_t vacant = ALLOCATORS;
    for (size_t i = ALLOCATORS; i-- > 0;) {
        if (allocators[i].handle == handle) {
            allocators[i].handle = 0;
        }
        if (allocators[i].handle == 0) {
            vacant = i;
        }
    }
    if (how != HOW_NOT && vacant == ALLOCATORS) {
        ft_count_unknown();
    } else if (how != HOW_NOT) {
        allocators[vacant].handle = handle;
        allocators[vacant].how = how;
        __atomic_store_n(&is_empty, false, __ATOMIC_RELEASE);
    }
    pthread_mutex_unlock(&lock);
}

static enum how get(uintptr_t handle) {
    if (__atomic_load_n(&is_empty, __ATOMIC_ACQUIRE)) {
        return HOW_NOT;
    }
    enum how how = HOW_NOT;
    pthread_mutex_lock(&lock);
    for (size_t i = 0; i < ALLOCATORS; i++) {
        if (allocators[i].handle == handle) {
            how = allocators[i].how;
        }
    }
    pthread_mutex_unlock(&lock);
    return how;
}

static enum how how_of(uintptr_t value) {
    switch (value) {
    case ATV_NEAREST:
        return HOW_NEAREST;
    case ATV_BLOCKED:
        return HOW_BLOCKED;
    case ATV_INTERLEAVED:
        return HOW_INTERLEAVED;
    default:
        return HOW_NOT;
    }
}

void ft_allocator_made(uintptr_t allocator, int count, const struct trait *traits) {
    enum how how = HOW_NOT;
    for (int i = 0; traits != NULL && i < count; i++) {
        if (traits[i].key == ATK_PARTITION) {
            how = how_of(traits[i].value); /* the last one counts */
        }
    }
    /* A handle may be that of an allocator which was destroyed. */
    if (allocator != 0 && (how != HOW_NOT || get(allocator) != HOW_NOT)) {
        set(allocator, how);
    }
}

void ft_allocator_destroyed(uintptr_t allocator) {
    if (get(allocator) != HOW_NOT) {
        set(allocator, HOW_NOT);
    }
}

/* OMP_ALLOCATOR = omp_default_mem_space:alignment=64,partition=interleaved (OpenMP 5.2, 21.5.1). */
static enum how described(void) {
    static const struct {
        const char *name;
        enum how how;
    } names[] = {{"nearest", HOW_NEAREST}, {"blocked", HOW_BLOCKED}, {"interleaved", HOW_INTERLEAVED}};
    const char *text = getenv("OMP_ALLOCATOR");
    const char *value = text != NULL ? strcasestr(text, "partition") : NULL;
    if (value == NULL) {
        return HOW_NOT;
    }
    value += sizeof "partition" - 1;
    value += strspn(value, " \t");
    if (*value++ != '=') {
        return HOW_NOT;
    }
    value += strspn(value, " \t");
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strncasecmp(value, names[i].name, strlen(names[i].name)) == 0) {
            return names[i].how;
        }
    }
    return HOW_NOT;
}

static pthread_once_t once = PTHREAD_ONCE_INIT;
static uintptr_t first_default; /* the default allocator before the program could set another one */
static uintptr_t (*default_allocator_now)(void);

static void learn_default(void) {
    enum how how = described();
    if (how != HOW_NOT && default_allocator_now != NULL) {
        first_default = default_allocator_now();
        set(first_default, how);
    }
}

enum how ft_allocator_how(uintptr_t allocator, uintptr_t (*default_allocator)(void)) {
    __atomic_store_n(&default_allocator_now, default_allocator, __ATOMIC_RELAXED);
    pthread_once(&once, learn_default);
    if (allocator == 0 && !__atomic_load_n(&is_empty, __ATOMIC_ACQUIRE) && default_allocator != NULL) {
        allocator = default_allocator();
    }
    return allocator != 0 ? get(allocator) : HOW_NOT;
}
