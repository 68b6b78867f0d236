/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * Finds the entry of an allocation by its call stack. The return address of the call alone rules out most allocations: it lies
 * in none of the plan's modules, or at no call site of the plan. Only for the unplanned is the stack unwound.
 */
#include "plan.h"
#include "../preload/unwind.h"

/* The number of allocations of each entry's site in this process. */
static uint64_t matches[FT_ENTRIES_MAX];

static bool is_at(const struct ft_plan_frame *frame, uintptr_t ip) {
    uint64_t offset;
    uint32_t module = ft_module_of(ip - 1, &offset);
    if (module != frame->module) {
        return false;
    }
    if (frame->is_any) {
        return true;
    }
    for (uint32_t i = 0; i < frame->ranges; i++) {
        const struct ft_plan_range *range = &ft_plan.ranges[frame->first_range + i];
        if (offset >= range->from && offset < range->to) {
            return true;
        }
    }
    return false;
}

static bool is_candidate(const struct ft_plan_entry *entry, uintptr_t ip) {
    return entry->frames != 0 && is_at(&ft_plan.frames[entry->first_frame], ip);
}

/* Do the entry's frames match the stack from `depth` on? */
static bool matches_stack(const struct ft_plan_entry *entry, const struct ft_unwound *unwound, uint32_t depth) {
    const struct ft_plan_frame *frames = &ft_plan.frames[entry->first_frame];
    for (uint32_t i = 0; i < entry->frames; i++) {
        if (depth == unwound->depth || !is_at(&frames[i], unwound->ips[depth])) {
            return false;
        }
        depth++;
        if (!frames[i].is_any) {
            continue;
        }
        while (depth < unwound->depth && is_at(&frames[i], unwound->ips[depth]) &&
               !(i + 1 < entry->frames && is_at(&frames[i + 1], unwound->ips[depth]))) {
            depth++;
        }
    }
    return true;
}

static FT_NOINLINE struct ft_plan_entry *match_stack(uintptr_t caller_ip, uint64_t *index) {
    struct ft_unwound unwound;
    ft_unwind_from(caller_ip, &unwound);
    uint32_t own = 0;
    while (own < unwound.depth && ft_is_agent(unwound.ips[own] - 1)) {
        own++;
    }
    if (own == unwound.depth) {
        return NULL;
    }
    struct ft_plan_entry *found = NULL;
    uint32_t most = 0;
    for (uint32_t i = 0; i < ft_plan.header->entries; i++) {
        struct ft_plan_entry *entry = &ft_plan.entries[i];
        if (!is_candidate(entry, unwound.ips[own]) || !matches_stack(entry, &unwound, own)) {
            continue;
        }
        uint64_t number = __atomic_fetch_add(&matches[i], 1, __ATOMIC_RELAXED);
        bool is_planned = entry->every == 0 ? number == entry->first : number % entry->every == entry->first;
        if (is_planned && entry->frames > most) {
            found = entry;
            most = entry->frames;
            *index = entry->every == 0 ? 0 : number / entry->every;
        }
    }
    if (found == NULL) {
        ft_modules_refresh_periodically();
    }
    return found;
}

struct ft_plan_entry *ft_match(uintptr_t caller_ip, uint64_t *index) {
    /* A cache of this thread's calls that match no entry, valid for one count of loaded libraries. */
    static _Thread_local struct {
        uintptr_t ip;
        unsigned long long loads;
    } unplanned[8] __attribute__((tls_model("initial-exec")));
    const size_t slot = caller_ip / 4 % (sizeof unplanned / sizeof *unplanned);
    const unsigned long long loads = ft_complete_loads();
    if (loads != 0 && unplanned[slot].ip == caller_ip && unplanned[slot].loads == loads) {
        return NULL;
    }
    ft_modules_refresh_for(caller_ip);
    if (ft_is_agent(caller_ip - 1)) {
        return match_stack(caller_ip, index);
    }
    for (uint32_t i = 0; i < ft_plan.header->entries; i++) {
        if (is_candidate(&ft_plan.entries[i], caller_ip)) {
            return match_stack(caller_ip, index);
        }
    }
    unplanned[slot].ip = caller_ip;
    unplanned[slot].loads = loads; /* as counted before the search, which does not cover libraries loaded during it */
    return NULL;
}
