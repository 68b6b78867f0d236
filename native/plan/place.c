/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * Divides a block of memory as its entry says, and sets the policy of the whole pages of each part. Each part has a
 * preferred node: when that is full, the kernel takes another, and the program runs on. Pages that are already present,
 * as in memory that was used before, are moved.
 */
#include "plan.h"

#include <sys/mman.h>

struct block {
    uintptr_t address;
    uintptr_t first; /* whole pages */
    uintptr_t last;
    double before; /* bytes of the divided whole that lie before the block */
    double whole;
};

/* The page border nearest to a position in the divided whole. */
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
    double periods = (double)(block->last - block->address) / period + 1;
    if (entry->parts == 1) {
        ft_prefer(block->first, block->last, parts[0].node);
        return;
    }
    if (!ft_mappings_fit(periods * entry->parts)) {
        /* The division is too fine: interleave over the same nodes. */
        uint64_t nodes[FT_NODE_WORDS] = {0};
        for (uint32_t i = 0; i < entry->parts; i++) {
            nodes[parts[i].node / 64 % FT_NODE_WORDS] |= 1ull << (parts[i].node % 64);
        }
        ft_interleave(block->first, block->last, nodes);
        return;
    }
    uint64_t cycle = (uint64_t)((block->before + (double)(block->first - block->address)) / period);
    uintptr_t from = block->first;
    uintptr_t done = from; /* [done, from) belongs to `node`, and its policy is not set yet */
    uint32_t node = UINT32_MAX;
    while (from < block->last) {
        for (uint32_t i = 0; i < entry->parts && from < block->last; i++) {
            uintptr_t to = border(block, ((double)cycle + parts[i].end) * period);
            if (to <= from) {
                continue;
            }
            if (parts[i].node != node) {
                if (node != UINT32_MAX) {
                    ft_prefer(done, from, node);
                }
                node = parts[i].node;
                done = from;
            }
            from = to;
        }
        cycle++;
    }
    ft_prefer(done, from, node);
}

/* The last placements. An allocator hands out the same block again, and it still has its policy; setting that anew would
 * cost more than everything else here, because the kernel looks for pages to move on every CPU. Entries are written without
 * a lock: a torn one matches no block. */
#define PLACEMENTS 256u
static struct placement {
    uintptr_t address;
    size_t size;
    const struct ft_plan_entry *entry;
    uint64_t row;
} placements[PLACEMENTS];

static bool is_placed(const struct ft_plan_entry *entry, const struct block *block, size_t size, uint64_t row) {
    struct placement *one = &placements[(block->address >> 12 ^ block->address >> 20) % PLACEMENTS];
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
    /* The program may have unmapped it since, and this may be another mapping. */
    uintptr_t last = block->last - ft_plan.page_bytes;
    if (entry->mode != 0) {
        return ft_has_policy(block->first, entry->mode, entry->nodes) && ft_has_policy(last, entry->mode, entry->nodes);
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
        if (entry->parts == 0 || !ft_prefers(ends[end], parts[i].node)) {
            return false;
        }
    }
    return true;
}

void ft_apply(const struct ft_plan_entry *entry, uintptr_t address, size_t size, uint64_t index) {
    uintptr_t page = ft_plan.page_bytes;
    uint64_t row = index % entry->rows;
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
        if (ft_mappings_fit(2)) {
            ft_set_policy(block.first, block.last, entry->mode, entry->nodes);
        }
    } else if (entry->parts != 0) {
        place_parts(entry, &block);
    }
}

void ft_place(struct ft_plan_entry *entry, uintptr_t address, size_t size, uint64_t index) {
    __atomic_fetch_add(&entry->matched, 1, __ATOMIC_RELAXED);
    ft_apply(entry, address, size, index);
}

void ft_place_statics(void) {
    static bool is_done[FT_ENTRIES_MAX];
    static unsigned long long done_for;
    const unsigned long long loads = ft_complete_loads();
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
