/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * The plan as `firsttouch run --plan` passes it to the library in the program: a file that all processes of the run map.
 * crates/plan/src/table.rs writes it, field by field; change both together.
 *
 * After the header come the modules, entries, frames, ranges and parts, one array after another. Only the counters are
 * written after that.
 */
#ifndef FIRSTTOUCH_PLAN_H
#define FIRSTTOUCH_PLAN_H

#include <stdint.h>

#define FT_PLAN_ENV "FIRSTTOUCH_PLAN"
#define FT_PLAN_MAGIC 0x314e414c50544654ull
#define FT_PLAN_VERSION 1u
#define FT_NODE_WORDS 16u /* of a node mask: 1024 nodes */

#define FT_PLAN_CHILDREN 14

struct ft_plan_header {
    uint64_t magic;
    uint32_t version;
    uint32_t bytes; /* of the whole file */
    uint32_t root;  /* the process that reports at its end how the plan was applied */
    uint32_t modules;
    uint32_t entries;
    uint32_t frames;
    uint32_t ranges;
    uint32_t parts;
    uint64_t min_size; /* smaller allocations are left alone */
    /* Counters. */
    uint64_t refused; /* policies that the kernel refused */
    uint32_t refused_errno;
    uint32_t is_stopped;              /* the process has too many mappings: no more are split */
    uint32_t forked;                  /* children that the processes of the plan made */
    uint32_t child[FT_PLAN_CHILDREN]; /* the last of them */
    uint32_t forking;                 /* forks that began: a child enters itself a little later */
};
_Static_assert(sizeof(struct ft_plan_header) == 128, "as table.rs writes it");

struct ft_plan_module {
    uint8_t build_id[32];
    uint32_t build_id_bytes; /* 0: the module is identified by device and inode */
    uint32_t reserved;
    uint64_t device;
    uint64_t inode;
};
_Static_assert(sizeof(struct ft_plan_module) == 56, "as table.rs writes it");

#define FT_PLAN_SMALL_PAGES 1u
#define FT_PLAN_STATIC 2u
#define FT_PLAN_MISSING 4u /* its code or array is not in the files of this run */

struct ft_plan_entry {
    uint32_t first_frame;
    uint32_t frames;
    uint32_t first; /* applies to the site's allocation number `first` (from 0) ... */
    uint32_t every; /* ... and to each `every`-th one after it; 0: to no other */
    uint32_t rows;  /* number of allocations that together make up the range to divide, as the rows of a matrix */
    uint32_t mode;  /* mbind mode for the whole block; 0: divide it by parts (without parts: no policy) */
    uint32_t first_part;
    uint32_t parts;
    uint32_t flags;
    uint32_t module; /* of a static array, with its ELF address and size */
    uint64_t address;
    uint64_t size;
    double period_bytes; /* the parts repeat with this period; 0: they divide the whole */
    uint64_t nodes[FT_NODE_WORDS];
    char name[96];
    uint64_t matched; /* counter: allocations that the entry was applied to */
    uint64_t reserved;
};
_Static_assert(sizeof(struct ft_plan_entry) == 304, "as table.rs writes it");

struct ft_plan_frame {
    uint32_t module;
    uint32_t is_any; /* matches one or several frames, anywhere in the module */
    uint32_t first_range;
    uint32_t ranges;
};

/* File offsets of the last byte of a call instruction: [from, to). */
struct ft_plan_range {
    uint64_t from;
    uint64_t to;
};

struct ft_plan_part {
    double end; /* where the part ends, as a fraction of the period or the whole */
    uint32_t node;
    uint32_t reserved;
};

#endif
