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
#define BLOCKS 8192u           /* slots, a power of two */
#define MOST_LIVE (BLOCKS / 2) /* blocks that are placed at a time; more are left to the runtime */
#define NODES 64u

static struct {
    uintptr_t address; /* 0: free */
    size_t bytes;
} blocks[BLOCKS];
static size_t live;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static size_t home(uintptr_t address) {
    return address / 4096 & (BLOCKS - 1);
}

/* The slot with the block, or the free one where the search for it ends. There is always a free one. */
static size_t slot_of(uintptr_t address) {
    size_t at = home(address);
    while (blocks[at].address != 0 && blocks[at].address != address) {
        at = (at + 1) & (BLOCKS - 1);
    }
    return at;
}

static bool keep(uintptr_t address, size_t bytes) {
    pthread_mutex_lock(&lock);
    size_t at = slot_of(address);
    bool is_new = blocks[at].address == 0, is_kept = !is_new || live < MOST_LIVE;
    if (is_kept) {
        blocks[at].address = address;
        blocks[at].bytes = bytes;
        __atomic_store_n(&live, live + is_new, __ATOMIC_RELEASE);
    }
    pthread_mutex_unlock(&lock);
    return is_kept;
}

/* Moves later blocks of the same run back, so that no search ends too early. */
static void close_gap(size_t gap) {
    for (size_t next = (gap + 1) & (BLOCKS - 1); blocks[next].address != 0; next = (next + 1) & (BLOCKS - 1)) {
        size_t wanted = home(blocks[next].address);
        if (((next - wanted) & (BLOCKS - 1)) >= ((next - gap) & (BLOCKS - 1))) {
            blocks[gap] = blocks[next];
            gap = next;
        }
    }
    blocks[gap].address = 0;
}

/* The bytes of the block, which is forgotten; 0 if it was not placed. */
static size_t forget(uintptr_t address) {
    pthread_mutex_lock(&lock);
    size_t at = slot_of(address), bytes = 0;
    if (blocks[at].address != 0) {
        bytes = blocks[at].bytes;
        close_gap(at);
        __atomic_store_n(&live, live - 1, __ATOMIC_RELEASE);
    }
    pthread_mutex_unlock(&lock);
    return bytes;
}

/* Whether this process may use memory of the node: some nodes have CPUs and no memory, and there the kernel takes the nearest one. */
static bool is_allowed(int node) {
    int nodes[NODES];
    size_t count = ft_nodes(nodes, NODES);
    for (size_t i = 0; i < count && i < NODES; i++) {
        if (nodes[i] == node) {
            return true;
        }
    }
    return count > NODES;
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
        return getcpu(&cpu, &node) == 0 && is_allowed((int)node) ? ft_bind((int)node) : ft_local();
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
