/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * What the bundled kernels share. Each kernel is one file: it allocates its arrays, touches them first as `init` says, times
 * its repetitions, and checks its own answer. crates/native/src/kernels/raw.rs mirrors the structs.
 */
#ifndef FIRSTTOUCH_KERNEL_H
#define FIRSTTOUCH_KERNEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Who touches the arrays first. */
enum ft_init {
    FT_INIT_SERIAL = 0,     /* the main thread: all pages land on its node */
    FT_INIT_PARALLEL = 1,   /* each thread: what it will use under schedule(static) */
    FT_INIT_MISMATCHED = 2, /* each thread: what the thread half a team away will use */
    FT_INIT_BLOCKED = 3,    /* blocks of 2 MiB, dealt to the threads in turn */
};

enum ft_schedule { FT_SCHEDULE_STATIC = 0, FT_SCHEDULE_DYNAMIC = 1, FT_SCHEDULE_GUIDED = 2 };

/* Which instructions the inner loops use. */
enum ft_form { FT_FORM_BEST = 0, FT_FORM_PORTABLE = 1, FT_FORM_AVX2 = 2, FT_FORM_AVX512 = 3 };

struct ft_kernel_options {
    uint64_t size[3];     /* meaning by kernel, see below; all >= 1 */
    uint64_t block[3];    /* 0: the kernel chooses */
    uint64_t iterations;  /* in one timed repetition, >= 1 */
    uint64_t repetitions; /* timed, >= 1 */
    uint64_t chunk;       /* of the schedule; 0: its default */
    uint32_t threads;     /* 0: the OpenMP runtime chooses */
    uint32_t init;        /* enum ft_init */
    uint32_t schedule;    /* enum ft_schedule */
    uint32_t form;        /* enum ft_form */
    uint32_t variant;     /* meaning by kernel, see below */
    uint32_t huge_pages;  /* ask for transparent huge pages (madvise) */
};

#define FT_PAGES_SEEN 64

struct ft_kernel_result {
    double worst_error;               /* largest relative deviation of the answer */
    uint64_t wrong_at;                /* with FT_KERNEL_WRONG: the element with worst_error */
    uint64_t bytes;                   /* allocated */
    uint32_t threads;                 /* the team that ran */
    uint32_t form;                    /* enum ft_form that ran */
    uint64_t cpus[16];                /* a bit for each CPU below 1024 on which a thread ran at the end */
    int8_t page_nodes[FT_PAGES_SEEN]; /* nodes of pages at equal distances in the main array; -1: unknown */
};

_Static_assert(sizeof(struct ft_kernel_options) == 96, "mirrored by crates/native/src/kernels/raw.rs");
_Static_assert(sizeof(struct ft_kernel_result) == 224, "mirrored by crates/native/src/kernels/raw.rs");

enum ft_kernel_status {
    FT_KERNEL_OK = 0,
    FT_KERNEL_OPTIONS = 1, /* an option is out of range, or the arrays do not fit the address space */
    FT_KERNEL_MEMORY = 2,  /* no memory for the arrays */
    FT_KERNEL_WRONG = 3,   /* the answer differs by more than rounding errors */
    FT_KERNEL_FORM = 4,    /* this CPU lacks the instructions of the form asked for */
};

/* Runs a kernel. `seconds` must have room for each repetition, and gets its time divided by its iterations. Returns an enum
 * ft_kernel_status; `result` and `seconds` are complete with FT_KERNEL_OK and FT_KERNEL_WRONG. */
typedef int ft_kernel(const struct ft_kernel_options *options, double *seconds, struct ft_kernel_result *result);

ft_kernel ft_dgemv;   /* size: rows, columns; variant: 0 textbook, 1 tuned */
ft_kernel ft_dmvm;    /* size: rows, columns; an iteration is one product; one parallel region for all */
ft_kernel ft_stream;  /* size: elements; variant: enum ft_stream, + FT_STREAM_TEMPORAL */
ft_kernel ft_chase;   /* size: cache lines; one iteration is one load */
ft_kernel ft_iso3dfd; /* size, block: n1 (the fastest), n2, n3; one iteration is one time step */

enum ft_stream { FT_COPY, FT_SCALE, FT_ADD, FT_TRIAD, FT_READ, FT_WRITE, FT_SCHOENAUER };
#define FT_STREAM_TEMPORAL 16u /* stores go through the caches */

/* common.c. All but ft_options_are_valid need valid options. */
bool ft_options_are_valid(const struct ft_kernel_options *options);
int ft_team_size(const struct ft_kernel_options *options);
/* Sets what `schedule(runtime)` means. The loops that touch first do not use it. */
void ft_use_schedule(const struct ft_kernel_options *options);
/* Returns untouched memory, aligned to 2 MiB, or NULL. */
void *ft_allocate(size_t bytes, const struct ft_kernel_options *options);
void ft_release(void *memory, size_t bytes);
/* Sets [*first, *last) to the part of `count` items that the calling thread touches first in its turn `turn`, counted from 0;
 * false when none is left. Call within a parallel region. `item_bytes` is used by FT_INIT_BLOCKED. */
bool ft_part_to_touch(uint32_t init, size_t count, size_t item_bytes, size_t turn, size_t *first, size_t *last);
/* Records the CPUs of the team and the nodes of the pages of `memory`. Call outside a parallel region. */
void ft_observe(struct ft_kernel_result *result, const void *memory, size_t bytes, int threads);
/* The best form that this CPU supports, or the wanted one; 0 if the CPU does not support it. */
uint32_t ft_choose_form(uint32_t wanted);

/* For functions whose lines a report shows. */
#define FT_NOINLINE __attribute__((noinline))

#if defined(__x86_64__)
#define FT_TARGET_AVX2 __attribute__((target("avx2,fma")))
#define FT_TARGET_AVX512 __attribute__((target("avx512f,avx2,fma")))
#endif

#endif
