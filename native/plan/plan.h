/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * Internals of the plan library, which `firsttouch run --plan` preloads: it gives the memory that planned places in the
 * code allocate the policy that the plan has for them, and does nothing else. Contents, addresses and alignment stay what
 * they are without it. It allocates nothing, takes no lock, and keeps errno.
 *
 * Build (gcc or clang; the static unwinder as in the agent, native/agent/agent.h):
 *
 *   cc -std=c11 -O2 -g -fPIC -shared -fvisibility=hidden -ftls-model=initial-exec -Wall -Wextra -Werror -I../include
 *      -o libfirsttouch_plan.so *.c -static-libgcc -Wl,--exclude-libs,ALL -Wl,-z,now -Wl,-z,relro -Wl,-z,initfirst
 *      -Wl,-soname,libfirsttouch_plan.so
 *
 * FIRSTTOUCH_PLAN=PATH names the table (firsttouch_plan.h). It stays in the environment, so that the programs that a script
 * starts are placed as well. Where anything is amiss with it, the library does nothing.
 */
#ifndef FIRSTTOUCH_PLAN_INTERNALS_H
#define FIRSTTOUCH_PLAN_INTERNALS_H

#define FT_INTERPOSED(X) FT_MEMORY_FUNCTIONS(X) FT_SANDBOX_FUNCTIONS(X)
#include "../preload/interpose.h"

#include "firsttouch_plan.h"

#define FT_ENTRIES_MAX 1024u

#pragma GCC visibility push(hidden)

/* The table, mapped; NULL: there is none, and the gate is closed. */
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

/* Allocations from this size on are looked at. SIZE_MAX: none. */
extern size_t ft_gate;

/* modules.c: which of the plan's modules holds an address? Its offset in the file; UINT32_MAX: none. */
uint32_t ft_module_of(uintptr_t address, uint64_t *offset);
/* Looks at what is loaded. */
void ft_modules_refresh(void);
/* The same, if a call from this address may be of something that was loaded since. */
void ft_modules_refresh_for(uintptr_t caller_ip);
/* A look now and then: a module may be elsewhere than it was. */
void ft_modules_refresh_at_times(void);
/* How many libraries had been loaded at the last look, if all modules of the plan had been among them; else 0. */
unsigned long long ft_settled_loads(void);
/* The address of an ELF address in a module; 0: not loaded. */
uintptr_t ft_module_address(uint32_t module, uint64_t elf_address);

/* Is it code of the profiler's agent, which stands between the program and us? */
bool ft_is_agent(uintptr_t address);

/* match.c: the entry that an allocation is for, by the address its call returns to; NULL: none. `turn` is its place among
 * the allocations of that entry. */
struct ft_plan_entry *ft_match(uintptr_t caller_ip, uint64_t *turn);

/* place.c */
void ft_place(struct ft_plan_entry *entry, uintptr_t address, size_t size, uint64_t turn);
/* The same of a mapping, which the program may trim. */
void ft_place_mapping(struct ft_plan_entry *entry, uintptr_t address, size_t size, uint64_t turn);
/* Memory was given back: where it was an end of a placed mapping, the rest is placed anew. */
void ft_unmapped(uintptr_t from, size_t size);
/* Other memory is there now. */
void ft_forget(uintptr_t from, size_t size);
extern bool ft_has_kept;
void ft_place_prepare(void);
void ft_place_statics(void);

/* attach.c */
void ft_end(void);
/* The program locks itself in: what is to be said is said now, and nothing more is done, here or in what it executes. */
void ft_lock_in(void);

/* report.c */
void ft_report_prepare(void);
void ft_report(void);

#pragma GCC visibility pop

#endif
