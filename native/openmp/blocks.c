/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * Gives blocks their policy, and takes it back before the runtime releases them: memory that is handed out again must not keep it.
 */
#include "openmp.h"
#include "../library/include/firsttouch.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <unistd.h>

/* Smaller blocks are left where they are: a policy splits the mapping that they lie in. */
#define LEAST_BYTES FT_SMALL_BYTES
#define BLOCKS 4096u /* live ones that were placed, a power of two; more are left to the runtime */
#define NODES 64u

static struct {
    uintptr_t address; /* 0: free */
    size_t bytes;
} blocks[BLOCKS];
static size_t live;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static bool keep(uintptr_t address, size_t bytes) {
    bool is_kept = false;
    pthread_mutex_lock(&lock);
    for (size_t i = 0; i < BLOCKS && !is_kept; i++) {
        size_t at = (address / 4096 + i) & (BLOCKS - 1);
        if (blocks[at].address == 0 || blocks[at].address == address) {
            live += blocks[at].address == 0;
            blocks[at].address = address;
            blocks[at].bytes = bytes;
            is_kept = true;
        }
    }
    __atomic_store_n(&live, live, __ATOMIC_RELEASE);
    pthread_mutex_unlock(&lock);
    return is_kept;
}

/* The bytes of the block, which is forgotten; 0 if it was not placed. Blocks are not always where their address points, so all are
 * compared. */
static size_t forget(uintptr_t address) {
    size_t bytes = 0;
    pthread_mutex_lock(&lock);
    for (size_t i = 0; i < BLOCKS && bytes == 0; i++) {
        size_t at = (address / 4096 + i) & (BLOCKS - 1);
        if (blocks[at].address == address) {
            bytes = blocks[at].bytes;
            blocks[at].address = 0;
            __atomic_store_n(&live, live - 1, __ATOMIC_RELEASE);
        }
    }
    pthread_mutex_unlock(&lock);
    return bytes;
}

static ft_partition partition_of(enum how how) {
    switch (how) {
    case HOW_BLOCKED: {
        int nodes[NODES];
        size_t count = ft_nodes(nodes, NODES);
        return ft_over_nodes(ft_blocked(count != 0 ? count : 1));
    }
    case HOW_NEAREST: {
        unsigned cpu, node = 0;
        return getcpu(&cpu, &node) == 0 ? ft_bind((int)node) : ft_local();
    }
    default:
        return ft_interleaved();
    }
}

void ft_block_made(void *block, size_t bytes, enum how how) {
    if (block == NULL || how == HOW_NOT) {
        return;
    }
    if (bytes < LEAST_BYTES) {
        ft_count_small();
        return;
    }
    int saved_errno = errno;
    int node;
    if (ft_nodes(&node, 1) < 2) {
        ft_count_alone();
    } else if (!keep((uintptr_t)block, bytes)) {
        ft_count_surplus();
    } else {
        ft_partition partition = partition_of(how);
        if (ft_place(block, bytes, &partition, FT_STRICT) >= 0) {
            ft_count_placed(how, bytes);
        } else {
            ft_count_refused(errno);
        }
    }
    errno = saved_errno;
}

void ft_block_ends(void *block) {
    if (block == NULL || __atomic_load_n(&live, __ATOMIC_ACQUIRE) == 0) {
        return;
    }
    int saved_errno = errno;
    size_t bytes = forget((uintptr_t)block);
    if (bytes != 0) {
        ft_partition partition = ft_local();
        (void)ft_place(block, bytes, &partition, FT_KEEP_PRESENT);
    }
    errno = saved_errno;
}
