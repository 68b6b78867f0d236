/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * Internals of the library that `firsttouch run --openmp-allocators` preloads: it makes the partition trait of OpenMP's allocators
 * (omp_atk_partition: nearest, blocked, interleaved; OpenMP 5.2, 6.2) work where the runtime ignores it. The runtime allocates
 * as before; the library then gives the pages of the block their policy. Contents, addresses and alignment are the runtime's.
 *
 * Build: with the sources of native/library that place memory (crates/native/build.rs), and exports.map, so that only the runtime's
 * functions are exported.
 */
#ifndef FIRSTTOUCH_OPENMP_INTERNALS_H
#define FIRSTTOUCH_OPENMP_INTERNALS_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* As omp.h of libgomp and libomp has them; tests/programs/openmp compares. */
enum { ATK_PARTITION = 8, ATV_ENVIRONMENT = 15, ATV_NEAREST = 16, ATV_BLOCKED = 17, ATV_INTERLEAVED = 18 };

struct trait {
    int key;
    uintptr_t value;
};

enum how { HOW_NOT = 0, HOW_NEAREST, HOW_BLOCKED, HOW_INTERLEAVED, HOWS };

/* allocators.c: what the allocators of the program ask for. Any thread may call these. */
void ft_allocator_made(uintptr_t allocator, int count, const struct trait *traits);
void ft_allocator_destroyed(uintptr_t allocator);
/* `default_allocator` is called if `allocator` is omp_null_allocator; NULL if the runtime has no such function. */
enum how ft_allocator_how(uintptr_t allocator, uintptr_t (*default_allocator)(void));

/* blocks.c: the memory that the program got. Keeps errno. */
void ft_block_made(void *block, size_t bytes, enum how how);
/* Before the runtime releases it: the memory gets the default policy back. */
void ft_block_ends(void *block);

/* report.c: counts by kind, and one line at the end of the process. */
void ft_count_placed(enum how how, size_t bytes);
void ft_count_small(void);
void ft_count_refused(int error);
void ft_count_alone(void);   /* the process may use one node only */
void ft_count_surplus(void); /* too many blocks live at once */
void ft_count_unknown(void); /* too many allocators at once */

#endif
