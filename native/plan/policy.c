/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * Memory policies by system call (mbind, get_mempolicy), and the budget of mappings that they may use up.
 */
#include "plan.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/mempolicy.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define NODE_BITS (64u * FT_NODE_WORDS)

/* MPOL_WEIGHTED_INTERLEAVE, which older headers lack. */
#define WEIGHTED_INTERLEAVE 6u

/* Each border between policies splits a mapping, and the kernel limits the mappings of a process. The program's own needs
 * come first: the library stops at half of the limit. */
static int64_t mappings_left;
static uint64_t mappings_max = 65530;

static uint64_t number_in(const char *path, bool count_lines) {
    char text[512]; /* on the stack of whoever allocates */
    uint64_t lines = 0, number = 0;
    int file = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t got;
    while (file >= 0 && (got = read(file, text, sizeof text)) > 0) {
        for (ssize_t i = 0; i < got; i++) {
            lines += text[i] == '\n';
            number = text[i] >= '0' && text[i] <= '9' ? number * 10 + (uint64_t)(text[i] - '0') : number;
        }
    }
    if (file >= 0) {
        close(file);
    }
    return count_lines ? lines : number;
}

void ft_policy_prepare(void) {
    uint64_t limit = number_in("/proc/sys/vm/max_map_count", false);
    if (limit != 0) {
        mappings_max = limit;
    }
}

bool ft_mappings_fit(double wanted) {
    if (wanted > (double)mappings_max) {
        return false;
    }
    if (__atomic_sub_fetch(&mappings_left, (int64_t)wanted, __ATOMIC_RELAXED) >= 0) {
        return true;
    }
    /* Counting mappings is slow. Once the library has stopped, do it for 1 allocation in 4096 only. */
    static uint32_t skipped;
    if (__atomic_load_n(&ft_plan.header->is_stopped, __ATOMIC_RELAXED) != 0 &&
        __atomic_fetch_add(&skipped, 1, __ATOMIC_RELAXED) % 4096 != 0) {
        return false;
    }
    int64_t left = (int64_t)(mappings_max / 2) - (int64_t)number_in("/proc/self/maps", true);
    __atomic_store_n(&mappings_left, left - (int64_t)wanted, __ATOMIC_RELAXED);
    if (left >= (int64_t)wanted) {
        return true;
    }
    __atomic_store_n(&ft_plan.header->is_stopped, 1, __ATOMIC_RELAXED);
    return false;
}

bool ft_has_policy(uintptr_t page, uint32_t mode, const uint64_t *nodes) {
    int found = -1;
    uint64_t mask[FT_NODE_WORDS] = {0};
    return syscall(SYS_get_mempolicy, &found, mask, (unsigned long)NODE_BITS, page, MPOL_F_ADDR) == 0 &&
           found == (int)mode && memcmp(mask, nodes, sizeof mask) == 0;
}

static bool bind(uintptr_t from, uintptr_t to, uint32_t mode, const uint64_t *nodes) {
    return syscall(SYS_mbind, from, to - from, (long)mode, nodes, (unsigned long)NODE_BITS + 1, MPOL_MF_MOVE) == 0;
}

void ft_set_policy(uintptr_t from, uintptr_t to, uint32_t mode, const uint64_t *nodes) {
    if (from >= to || bind(from, to, mode, nodes)) {
        return;
    }
    /* A kernel without weighted interleave (before 6.9): interleave without weights. */
    if (errno == EINVAL && mode == WEIGHTED_INTERLEAVE && bind(from, to, MPOL_INTERLEAVE, nodes)) {
        return;
    }
    __atomic_store_n(&ft_plan.header->refused_errno, (uint32_t)errno, __ATOMIC_RELAXED);
    __atomic_fetch_add(&ft_plan.header->refused, 1, __ATOMIC_RELAXED);
}

void ft_interleave(uintptr_t from, uintptr_t to, const uint64_t *nodes) {
    ft_set_policy(from, to, MPOL_INTERLEAVE, nodes);
}

/* The mask of one node. */
struct mask {
    uint64_t words[FT_NODE_WORDS];
};

static struct mask mask_of(uint32_t node) {
    struct mask mask = {{0}};
    mask.words[node / 64 % FT_NODE_WORDS] = 1ull << (node % 64);
    return mask;
}

bool ft_prefers(uintptr_t page, uint32_t node) {
    return ft_has_policy(page, MPOL_PREFERRED, mask_of(node).words);
}

void ft_prefer(uintptr_t from, uintptr_t to, uint32_t node) {
    ft_set_policy(from, to, MPOL_PREFERRED, mask_of(node).words);
}
