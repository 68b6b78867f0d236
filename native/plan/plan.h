/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * Internals of the plan library, which `firsttouch run --plan` preloads: it gives memory the
 * policy that the plan has for the site that allocates it. Contents, addresses and alignment are the same as without it.
 * It allocates nothing, takes no lock of its own, and keeps errno.
 *
 * Build (gcc or clang; the static unwinder as in the agent, native/agent/agent.h):
 *
 *   cc -std=c11 -O2 -g -fPIC -shared -fvisibility=hidden -ftls-model=initial-exec -Wall -Wextra -Werror -I../include
 *      -o libfirsttouch_plan.so *.c -static-libgcc -Wl,--exclude-libs,ALL -Wl,-z,now -Wl,-z,relro -Wl,-z,initfirst
 *      -Wl,-soname,libfirsttouch_plan.so
 *
 * FIRSTTOUCH_PLAN=PATH names the table (firsttouch_plan.h). It stays in the environment, so that the memory of
 * programs that a script starts is placed as well. With a table that is missing or invalid the library does nothing.
 */
#ifndef FIRSTTOUCH_PLAN_INTERNALS_H
#define FIRSTTOUCH_PLAN_INTERNALS_H

#define FT_INTERPOSED(X) FT_MEMORY_FUNCTIONS(X) FT_SANDBOX_FUNCTIONS(X)
#include "../preload/interpose.h"

#include "firsttouch_plan.h"

#define FT_ENTRIES_MAX 1024u

#pragma GCC visibility push(hidden)

/* The table, mapped by the constructor and read-only from then on but for its counters. header is NULL without one: then
 * ft_min_size is SIZE_MAX, and no function below is called. */
struct ft_plan {
    struct ft_plan_header *header;
    const struct ft_plan_module *modules;
    struct ft_plan_entry *entries;
    const struct ft_plan_frame *frames;
    const struct ft_plan_range *ranges;
    const struct ft_plan_part *parts;
    size_t page_bytes;
};
extern struct ft_plan ft_plan;

/* Allocations of at least this size are compared with the plan. SIZE_MAX: none is. Read and written with atomics. */
extern size_t ft_min_size;

/* What all functions below keep to, unless their comment says otherwise:
 *   - ft_plan.header is not NULL.
 *   - They allocate nothing, take no lock, and may run in a signal handler, but not twice on one thread: the hooks guard
 *     that (`busy` in hooks.c).
 *   - They may change errno; the hooks restore it. */

/* modules.c */
/* The index of the plan's module that has `address` in its code, or UINT32_MAX. Sets `offset`, into the file, if found. */
uint32_t ft_module_of(uintptr_t address, uint64_t *offset);
/* Scans the loaded libraries if one has been loaded since the last scan. Takes the loader's lock, so it does nothing in
 * a forked child, where the lock may be held for ever. A thread that finds a scan in progress does not wait for it. */
void ft_modules_refresh(void);
/* The same, if `caller_ip` may lie in a library loaded since. */
void ft_modules_refresh_for(uintptr_t caller_ip);
/* The same, at most once a tick of the coarse clock: a module may have moved. */
void ft_modules_refresh_periodically(void);
/* The loader's count of loaded libraries at the last scan, if that scan found every module of the plan; else 0. */
unsigned long long ft_complete_loads(void);
/* Where the module has a given ELF address in memory; 0 if it is not loaded. */
uintptr_t ft_module_address(uint32_t module, uint64_t elf_address);
/* Does `address` lie in the profiler's agent? Its hooks stand between the program and this library. */
bool ft_is_agent(uintptr_t address);

/* match.c */
/* The entry for an allocation, or NULL. `caller_ip` is the return address of the interposed call that is running: the stack
 * is unwound from there. Counts the allocation; `index` is its index among those of the entry. */
struct ft_plan_entry *ft_match(uintptr_t caller_ip, uint64_t *index);

/* place.c: [address, address + size) is mapped and belongs to the program. Its contents stay as they are. */
/* Counts one allocation for `entry` and places it. */
void ft_place(struct ft_plan_entry *entry, uintptr_t address, size_t size, uint64_t index);
/* The same without counting. */
void ft_apply(const struct ft_plan_entry *entry, uintptr_t address, size_t size, uint64_t index);
/* Places the plan's static arrays whose modules are loaded, each once. */
void ft_place_statics(void);

/* mappings.c */
/* ft_place for a mapping of its own, which is remembered because the program may trim it. */
void ft_place_mapping(struct ft_plan_entry *entry, uintptr_t address, size_t size, uint64_t index);
/* Call after the program has unmapped the range. If it was one end of a remembered mapping, the rest is placed anew. */
void ft_mapping_trimmed(uintptr_t from, size_t size);
/* Call after other memory has been mapped over the range. */
void ft_mapping_gone(uintptr_t from, size_t size);
/* Has any mapping been remembered? */
extern bool ft_has_mappings;

/* policy.c: [from, to) is whole pages, and may be empty. `nodes` has FT_NODE_WORDS words. A policy that the kernel refuses
 * is counted in the header. */
/* Reads the kernel's limit on mappings. */
void ft_policy_prepare(void);
/* Takes `wanted` mappings from the budget; false if it does not have them. */
bool ft_mappings_fit(double wanted);
void ft_set_policy(uintptr_t from, uintptr_t to, uint32_t mode, const uint64_t *nodes);
void ft_interleave(uintptr_t from, uintptr_t to, const uint64_t *nodes);
void ft_prefer(uintptr_t from, uintptr_t to, uint32_t node);
/* Does `page` have exactly this policy? */
bool ft_has_policy(uintptr_t page, uint32_t mode, const uint64_t *nodes);
bool ft_prefers(uintptr_t page, uint32_t node);

/* attach.c: these keep errno. */
/* Reports and deletes the table if this process is the one that `run` started. Works once; async-signal-safe; callable
 * without a plan. */
void ft_end(void);
/* Call before the program enters a sandbox. Reports now; nothing more is done in this process or in programs it executes.
 * Callable without a plan. */
void ft_enter_sandbox(void);

/* report.c */
/* Notes which file standard error is. Call before the program runs. */
void ft_report_prepare(void);
/* Writes one line to standard error, if that is still the same file and takes it without blocking. Async-signal-safe. */
/* `is_left`: processes that this one left behind still run. */
void ft_report(bool is_left);

/* Do processes of the plan still run, now that the first one ends? */
bool ft_leaves_processes(void);

#pragma GCC visibility pop

#endif
