/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * Is this allocation planned? Most are not, and the address that the call returns to tells: it lies in none of the plan's
 * modules, or is no call of the plan. Only then is the stack walked.
 */
#include "plan.h"
#include "../preload/unwind.h"

/* Allocations of each entry's site in this process. */
static uint64_t met[FT_ENTRIES_MAX];

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

static bool is_stack(const struct ft_plan_entry *entry, const struct ft_unwound *unwound, uint32_t depth) {
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

static FT_NOINLINE struct ft_plan_entry *match_stack(uintptr_t caller_ip, uint64_t *turn) {
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
        if (!is_candidate(entry, unwound.ips[own]) || !is_stack(entry, &unwound, own)) {
            continue;
        }
        uint64_t number = __atomic_fetch_add(&met[i], 1, __ATOMIC_RELAXED);
        bool is_meant = entry->every == 0 ? number == entry->first : number % entry->every == entry->first;
        if (is_meant && entry->frames > most) {
            found = entry;
            most = entry->frames;
            *turn = entry->every == 0 ? 0 : number / entry->every;
        }
    }
    if (found == NULL) {
        ft_modules_refresh_at_times();
    }
    return found;
}

struct ft_plan_entry *ft_match(uintptr_t caller_ip, uint64_t *turn) {
    /* Calls of this thread that no entry means, as of so many loaded libraries. */
    static _Thread_local struct {
        uintptr_t ip;
        unsigned long long loads;
    } others[8] __attribute__((tls_model("initial-exec")));
    const size_t place = caller_ip / 4 % (sizeof others / sizeof *others);
    const unsigned long long loads = ft_settled_loads();
    if (loads != 0 && others[place].ip == caller_ip && others[place].loads == loads) {
        return NULL;
    }
    ft_modules_refresh_for(caller_ip);
    if (ft_is_agent(caller_ip - 1)) {
        return match_stack(caller_ip, turn);
    }
    for (uint32_t i = 0; i < ft_plan.header->entries; i++) {
        if (is_candidate(&ft_plan.entries[i], caller_ip)) {
            return match_stack(caller_ip, turn);
        }
    }
    others[place].ip = caller_ip;
    others[place].loads = loads; /* of before the search: what was loaded meanwhile is not told by it */
    return NULL;
}
