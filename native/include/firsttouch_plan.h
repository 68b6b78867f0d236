/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * The plan as `firsttouch run --plan` hands it to the library in the program: a file that it maps, shared by all processes
 * of the run. crates/placement/src/plan/table.rs writes it, field by field; both change together.
 *
 * After the header come the modules, entries, frames, ranges and parts, one array after another. Counters are the only
 * fields that are written later.
 */
#ifndef FIRSTTOUCH_PLAN_H
#define FIRSTTOUCH_PLAN_H

#include <stdint.h>

#define FT_PLAN_ENV "FIRSTTOUCH_PLAN"
#define FT_PLAN_MAGIC 0x314e414c50544654ull
#define FT_PLAN_VERSION 1u

struct ft_plan_header {
    uint64_t magic;
    uint32_t version;
    uint32_t bytes; /* of the whole file */
    uint32_t root;  /* the process that says at its end what came of the plan */
    uint32_t modules;
    uint32_t entries;
    uint32_t frames;
    uint32_t ranges;
    uint32_t parts;
    uint64_t least_bytes; /* smaller allocations are left alone */
    /* Counters. */
    uint64_t refused; /* policies that the kernel did not take */
    uint32_t refused_errno;
    uint32_t is_stopped; /* too many mappings: no more is placed */
    uint8_t reserved[64];
};
_Static_assert(sizeof(struct ft_plan_header) == 128, "as table.rs writes it");

struct ft_plan_module {
    uint8_t build_id[32];
    uint32_t build_id_bytes; /* 0: told by device and inode */
    uint32_t reserved;
    uint64_t device;
    uint64_t inode;
};
_Static_assert(sizeof(struct ft_plan_module) == 56, "as table.rs writes it");

#define FT_PLAN_SMALL_PAGES 1u
#define FT_PLAN_STATIC 2u
#define FT_PLAN_MISSING 4u /* not in the files that run */

struct ft_plan_entry {
    uint32_t first_frame;
    uint32_t frames;
    uint32_t first; /* the first of the site's allocations that is meant, and after how many again (0: never) */
    uint32_t every;
    uint32_t rows; /* so many allocations make up the whole that is divided */
    uint32_t mode; /* of mbind, for all of it; 0: by parts, and without parts nothing */
    uint32_t first_part;
    uint32_t parts;
    uint32_t flags;
    uint32_t module; /* of a static array: its ELF address and size */
    uint64_t address;
    uint64_t size;
    double period_bytes; /* 0: the parts are of the whole */
    uint64_t nodes[16];
    char name[96];
    uint64_t met; /* counter: allocations that were meant */
    uint64_t reserved;
};
_Static_assert(sizeof(struct ft_plan_entry) == 304, "as table.rs writes it");

struct ft_plan_frame {
    uint32_t module;
    uint32_t is_any; /* any code of the module, in one frame or several */
    uint32_t first_range;
    uint32_t ranges;
};

/* Offsets into the file, of the last byte of the call. */
struct ft_plan_range {
    uint64_t from;
    uint64_t to; /* not in it */
};

struct ft_plan_part {
    double end; /* as a fraction of the period, or of the whole */
    uint32_t node;
    uint32_t reserved;
};

#endif
