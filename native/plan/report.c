/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * Reports how the plan was applied: one line on standard error at the end of the program that `run` started.
 */
#include "plan.h"
#include "../preload/last_words.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

void ft_report_prepare(void) {
    ft_words_prepare();
}

/* Adds the names of the entries without an allocation: those whose code is missing from the files, or those whose code is
 * not. */
static uint32_t add_names(struct ft_text *text, const char *heading, bool is_missing) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < ft_plan.header->entries; i++) {
        const struct ft_plan_entry *entry = &ft_plan.entries[i];
        if (entry->matched == 0 && ((entry->flags & FT_PLAN_MISSING) != 0) == is_missing) {
            ft_add(text, count++ == 0 ? heading : ", ");
            ft_add(text, entry->name);
        }
    }
    return count;
}

/* Zombies have ended. */
static bool runs(uint32_t pid) {
    struct ft_text path = {.used = 0};
    ft_add(&path, "/proc/");
    ft_add_number(&path, pid);
    ft_add(&path, "/stat");
    path.bytes[path.used] = '\0';
    int file = open(path.bytes, O_RDONLY | O_CLOEXEC);
    if (file < 0) {
        return false;
    }
    char stat[512];
    ssize_t bytes = read(file, stat, sizeof stat - 1);
    close(file);
    stat[bytes > 0 ? bytes : 0] = '\0';
    const char *name_end = strrchr(stat, ')');
    return name_end != NULL && name_end[1] == ' ' && name_end[2] != 'Z' && name_end[2] != 'X';
}

bool ft_leaves_processes(void) {
    const struct ft_plan_header *header = ft_plan.header;
    for (uint32_t i = 0; i < FT_PLAN_CHILDREN; i++) {
        uint32_t pid = __atomic_load_n(&header->child[i], __ATOMIC_RELAXED);
        if (pid != 0 && pid != header->root && runs(pid)) {
            return true;
        }
    }
    /* A child that was just made may not have entered itself yet. */
    return __atomic_load_n(&header->forking, __ATOMIC_RELAXED) > __atomic_load_n(&header->forked, __ATOMIC_RELAXED);
}

void ft_report(bool is_left) {
    const struct ft_plan_header *header = ft_plan.header;
    if (!ft_is_still_standard_error() || header->entries == 0) {
        return;
    }
    uint32_t matched = 0;
    uint64_t allocations = 0;
    for (uint32_t i = 0; i < header->entries; i++) {
        matched += ft_plan.entries[i].matched != 0;
        allocations += ft_plan.entries[i].matched;
    }
    struct ft_text text = {.used = 0};
    ft_add(&text, "firsttouch: plan: ");
    ft_add_number(&text, matched);
    ft_add(&text, " of ");
    ft_add_number(&text, header->entries);
    ft_add(&text, header->entries == 1 ? " site matched " : " sites matched ");
    ft_add_number(&text, allocations);
    ft_add(&text, allocations == 1 ? " allocation" : " allocations");
    if (!is_left) {
        add_names(&text, "; never seen: ", false);
    } else if (add_names(&text, "; not seen until the first process ended: ", false) > 0) {
        ft_add(&text, " (processes that it left behind still run)");
    }
    add_names(&text, "; not in this program: ", true);
    if (header->refused != 0) {
        ft_add(&text, "; the kernel refused ");
        ft_add_number(&text, header->refused);
        ft_add(&text, header->refused == 1 ? " policy (" : " policies (");
        const char *why = strerrorname_np((int)header->refused_errno);
        ft_add(&text, why != NULL ? why : "?");
        ft_add(&text, ")");
    }
    if (header->is_stopped) {
        ft_add(&text,
               "; some memory was interleaved or left: the program has nearly as many mappings as vm.max_map_count "
               "allows");
    }
    ft_add(&text, "\n");
    ft_write_line(&text);
}
