/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * Policies for whole pages inside a block. Each part has a preferred node: when that is full, the kernel takes another, and
 * the program runs on. Pages that are there already, as in memory that was used before, are moved.
 */
#include "plan.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/mempolicy.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define NODE_BITS (16u * 64u)

/* Each border between policies splits a mapping, and a process may have so many only. What the program needs itself comes
 * first: we stop at half. */
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

void ft_place_prepare(void) {
    uint64_t most = number_in("/proc/sys/vm/max_map_count", false);
    if (most != 0) {
        mappings_max = most;
    }
}

/* Room for so many more mappings? */
static bool has_room(int64_t wanted) {
    if (__atomic_sub_fetch(&mappings_left, wanted, __ATOMIC_RELAXED) >= 0) {
        return true;
    }
    /* Counting is dear: not for every allocation of a program that has many. */
    static uint32_t skipped;
    if (__atomic_load_n(&ft_plan.header->is_stopped, __ATOMIC_RELAXED) != 0 &&
        __atomic_fetch_add(&skipped, 1, __ATOMIC_RELAXED) % 4096 != 0) {
        return false;
    }
    int64_t left = (int64_t)(mappings_max / 2) - (int64_t)number_in("/proc/self/maps", true);
    __atomic_store_n(&mappings_left, left - wanted, __ATOMIC_RELAXED);
    if (left >= wanted) {
        return true;
    }
    __atomic_store_n(&ft_plan.header->is_stopped, 1, __ATOMIC_RELAXED);
    return false;
}

/* Does the page have this policy? */
static bool has_policy(uintptr_t at, uint32_t mode, const uint64_t *nodes) {
    int found = -1;
    uint64_t mask[16] = {0};
    return syscall(SYS_get_mempolicy, &found, mask, (unsigned long)NODE_BITS, at, MPOL_F_ADDR) == 0 &&
           found == (int)mode && memcmp(mask, nodes, sizeof mask) == 0;
}

static bool prefers(uintptr_t at, uint32_t node) {
    uint64_t nodes[16] = {0};
    nodes[node / 64 % 16] = 1ull << (node % 64);
    return has_policy(at, MPOL_PREFERRED, nodes);
}

static void set_policy(uintptr_t from, uintptr_t to, uint32_t mode, const uint64_t *nodes) {
    if (from >= to) {
        return;
    }
    if (syscall(SYS_mbind, from, to - from, (long)mode, nodes, (unsigned long)NODE_BITS + 1, MPOL_MF_MOVE) == 0) {
        return;
    }
    /* A kernel older than the policy: all pages in turn is what is left of it. */
    if (errno == EINVAL && mode == 6 &&
        syscall(SYS_mbind, from, to - from, (long)MPOL_INTERLEAVE, nodes, (unsigned long)NODE_BITS + 1, MPOL_MF_MOVE) ==
            0) {
        return;
    }
    __atomic_store_n(&ft_plan.header->refused_errno, (uint32_t)errno, __ATOMIC_RELAXED);
    __atomic_fetch_add(&ft_plan.header->refused, 1, __ATOMIC_RELAXED);
}

static void prefer(uintptr_t from, uintptr_t to, uint32_t node) {
    uint64_t nodes[16] = {0};
    nodes[node / 64 % 16] = 1ull << (node % 64);
    set_policy(from, to, MPOL_PREFERRED, nodes);
}

struct block {
    uintptr_t address;
    uintptr_t first; /* whole pages */
    uintptr_t last;
    double before; /* bytes of the divided whole that lie before the block */
    double whole;
};

/* The page border nearest to a position in the whole. */
static uintptr_t border(const struct block *block, double position) {
    double within = position - block->before;
    if (within <= 0) {
        return block->first;
    }
    if (within >= (double)(block->last - block->address)) {
        return block->last;
    }
    uintptr_t page = ft_plan.page_bytes;
    uintptr_t at = (block->address + (uintptr_t)within + page / 2) & ~(page - 1);
    return at < block->first ? block->first : at > block->last ? block->last : at;
}

static void place_parts(const struct ft_plan_entry *entry, const struct block *block) {
    const struct ft_plan_part *parts = &ft_plan.parts[entry->first_part];
    double period = entry->period_bytes > 0 ? entry->period_bytes : block->whole;
    double turns = (double)(block->last - block->address) / period + 1;
    if (entry->parts == 1) {
        prefer(block->first, block->last, parts[0].node);
        return;
    }
    if (turns * entry->parts > (double)mappings_max || !has_room((int64_t)(turns * entry->parts))) {
        /* Too finely divided: in turn over the same nodes. */
        uint64_t nodes[16] = {0};
        for (uint32_t i = 0; i < entry->parts; i++) {
            nodes[parts[i].node / 64 % 16] |= 1ull << (parts[i].node % 64);
        }
        set_policy(block->first, block->last, MPOL_INTERLEAVE, nodes);
        return;
    }
    uint64_t turn = (uint64_t)((block->before + (double)(block->first - block->address)) / period);
    uintptr_t from = block->first;
    uintptr_t done = from; /* what comes up to `from` is one node's, and not set yet from here on */
    uint32_t node = UINT32_MAX;
    while (from < block->last) {
        for (uint32_t i = 0; i < entry->parts && from < block->last; i++) {
            uintptr_t to = border(block, ((double)turn + parts[i].end) * period);
            if (to <= from) {
                continue;
            }
            if (parts[i].node != node) {
                if (node != UINT32_MAX) {
                    prefer(done, from, node);
                }
                node = parts[i].node;
                done = from;
            }
            from = to;
        }
        turn++;
    }
    prefer(done, from, node);
}

/* What was placed before: an allocator gives the same block again, with its policy, and setting that anew would cost more
 * than all else (the kernel looks for pages to move on every CPU). Torn entries agree with nothing. */
#define BEFORE 256u
static struct before {
    uintptr_t address;
    size_t size;
    const struct ft_plan_entry *entry;
    uint64_t row;
} before[BEFORE];

static bool is_placed(const struct ft_plan_entry *entry, const struct block *block, size_t size, uint64_t row) {
    struct before *one = &before[(block->address >> 12 ^ block->address >> 20) % BEFORE];
    bool is_same = __atomic_load_n(&one->address, __ATOMIC_RELAXED) == block->address &&
                   __atomic_load_n(&one->size, __ATOMIC_RELAXED) == size &&
                   __atomic_load_n(&one->entry, __ATOMIC_RELAXED) == entry &&
                   __atomic_load_n(&one->row, __ATOMIC_RELAXED) == row;
    if (!is_same) {
        __atomic_store_n(&one->address, block->address, __ATOMIC_RELAXED);
        __atomic_store_n(&one->size, size, __ATOMIC_RELAXED);
        __atomic_store_n(&one->entry, entry, __ATOMIC_RELAXED);
        __atomic_store_n(&one->row, row, __ATOMIC_RELAXED);
        return false;
    }
    /* It may have been given back to the kernel meanwhile, and be another mapping. */
    uintptr_t last = block->last - ft_plan.page_bytes;
    if (entry->mode != 0) {
        return has_policy(block->first, entry->mode, entry->nodes) && has_policy(last, entry->mode, entry->nodes);
    }
    const struct ft_plan_part *parts = &ft_plan.parts[entry->first_part];
    double period = entry->period_bytes > 0 ? entry->period_bytes : block->whole;
    uintptr_t ends[2] = {block->first, last};
    for (int end = 0; end < 2; end++) {
        double middle = block->before + (double)(ends[end] - block->address) + (double)ft_plan.page_bytes / 2;
        double within = middle / period - (double)(uint64_t)(middle / period);
        uint32_t i = 0;
        while (i + 1 < entry->parts && parts[i].end <= within) {
            i++;
        }
        if (entry->parts == 0 || !prefers(ends[end], parts[i].node)) {
            return false;
        }
    }
    return true;
}

static void place(struct ft_plan_entry *entry, uintptr_t address, size_t size, uint64_t turn) {
    uintptr_t page = ft_plan.page_bytes;
    uint64_t row = turn % entry->rows;
    struct block block = {
        .address = address,
        .first = (address + page - 1) & ~(page - 1),
        .last = (address + size) & ~(page - 1),
        .before = (double)row * (double)size,
        .whole = (double)entry->rows * (double)size,
    };
    if (block.last <= block.first || block.last < address) {
        return;
    }
    if (is_placed(entry, &block, size, row)) {
        return;
    }
    if (entry->flags & FT_PLAN_SMALL_PAGES) {
        (void)madvise((void *)block.first, block.last - block.first, MADV_NOHUGEPAGE);
    }
    if (entry->mode != 0) {
        if (has_room(2)) {
            set_policy(block.first, block.last, entry->mode, entry->nodes);
        }
    } else if (entry->parts != 0) {
        place_parts(entry, &block);
    }
}

void ft_place(struct ft_plan_entry *entry, uintptr_t address, size_t size, uint64_t turn) {
    __atomic_fetch_add(&entry->met, 1, __ATOMIC_RELAXED);
    place(entry, address, size, turn);
}

/* Mappings that were placed last. Programs map more than they keep, to align it, and give back the ends: what is left is then divided
 * anew. Whoever finds the list in use goes on without it. */
#define KEPT 64u
static struct kept {
    uintptr_t address; /* 0: none */
    size_t size;
    struct ft_plan_entry *entry;
    uint64_t turn;
} kept[KEPT];
static uint32_t kept_next;
static uint32_t kept_in_use;
bool ft_has_kept;

void ft_place_mapping(struct ft_plan_entry *entry, uintptr_t address, size_t size, uint64_t turn) {
    ft_place(entry, address, size, turn);
    if (__atomic_exchange_n(&kept_in_use, 1, __ATOMIC_ACQUIRE) == 0) {
        kept[kept_next++ % KEPT] = (struct kept){address, size, entry, turn};
        __atomic_store_n(&ft_has_kept, true, __ATOMIC_RELAXED);
        __atomic_store_n(&kept_in_use, 0, __ATOMIC_RELEASE);
    }
}

void ft_unmapped(uintptr_t from, size_t size) {
    if (__atomic_exchange_n(&kept_in_use, 1, __ATOMIC_ACQUIRE) != 0) {
        return;
    }
    uintptr_t to = (from + size + ft_plan.page_bytes - 1) & ~(ft_plan.page_bytes - 1);
    for (uint32_t i = 0; i < KEPT; i++) {
        struct kept *one = &kept[i];
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
        place(one->entry, one->address, one->size, one->turn);
    }
    __atomic_store_n(&kept_in_use, 0, __ATOMIC_RELEASE);
}

void ft_forget(uintptr_t from, size_t size) {
    if (__atomic_exchange_n(&kept_in_use, 1, __ATOMIC_ACQUIRE) != 0) {
        return;
    }
    for (uint32_t i = 0; i < KEPT; i++) {
        if (from < kept[i].address + kept[i].size && kept[i].address < from + size) {
            kept[i].address = 0;
            kept[i].size = 0;
        }
    }
    __atomic_store_n(&kept_in_use, 0, __ATOMIC_RELEASE);
}

void ft_place_statics(void) {
    static bool is_done[FT_ENTRIES_MAX];
    static unsigned long long done_for;
    const unsigned long long loads = ft_settled_loads();
    if (loads != 0 && done_for == loads) {
        return;
    }
    for (uint32_t i = 0; i < ft_plan.header->entries; i++) {
        struct ft_plan_entry *entry = &ft_plan.entries[i];
        if ((entry->flags & FT_PLAN_STATIC) == 0 || (entry->flags & FT_PLAN_MISSING) != 0 || is_done[i]) {
            continue;
        }
        uintptr_t address = ft_module_address(entry->module, entry->address);
        if (address != 0) {
            is_done[i] = true;
            ft_place(entry, address, entry->size, 0);
        }
    }
    done_for = loads;
}
