/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * What the bundled kernels share. Each kernel is one file: it allocates its arrays, has them touched first as `init` says,
 * times its repetitions, and checks its own answer. crates/native/src/kernels.rs mirrors the structs.
 */
#ifndef FIRSTTOUCH_KERNEL_H
#define FIRSTTOUCH_KERNEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Who touches the arrays first. */
enum ft_init {
    FT_INIT_SERIAL = 0,     /* the main thread: all pages land on its node */
    FT_INIT_PARALLEL = 1,   /* each thread what it will use under schedule(static) */
    FT_INIT_MISMATCHED = 2, /* each thread what the thread half a team away will use */
    FT_INIT_BLOCKED = 3,    /* blocks of 2 MiB by the threads in turn */
};

enum ft_schedule { FT_SCHEDULE_STATIC = 0, FT_SCHEDULE_DYNAMIC = 1, FT_SCHEDULE_GUIDED = 2 };

/* Which instructions the inner loops use. */
enum ft_form { FT_FORM_BEST = 0, FT_FORM_PORTABLE = 1, FT_FORM_AVX2 = 2, FT_FORM_AVX512 = 3 };

struct ft_kernel_options {
    uint64_t size[3];     /* the kernel says what; all >= 1 */
    uint64_t block[3];    /* 0: the kernel's choice */
    uint64_t iterations;  /* in one timed repetition, >= 1 */
    uint64_t repetitions; /* timed, >= 1 */
    uint64_t chunk;       /* of the schedule; 0: its default */
    uint32_t threads;     /* 0: the OpenMP runtime's choice */
    uint32_t init;        /* enum ft_init */
    uint32_t schedule;    /* enum ft_schedule */
    uint32_t form;        /* enum ft_form */
    uint32_t variant;     /* the kernel says of what */
    uint32_t huge_pages;  /* ask for transparent huge pages (madvise) */
};

#define FT_PAGES_SEEN 64

struct ft_kernel_result {
    double worst_error; /* largest relative deviation of the answer */
    uint64_t wrong_at;  /* FT_KERNEL_WRONG: the element of worst_error */
    uint64_t bytes;     /* allocated */
    uint32_t threads;   /* the team that ran */
    uint32_t form;      /* enum ft_form: what ran */
    uint64_t cpus[16];  /* on which its threads ran at the end, a bit each; those from 1024 on are left out */
    int8_t page_nodes[FT_PAGES_SEEN]; /* nodes of pages at equal distances in the main array; -1: not known */
};

_Static_assert(sizeof(struct ft_kernel_options) == 96, "mirrored by crates/native/src/kernels.rs");
_Static_assert(sizeof(struct ft_kernel_result) == 224, "mirrored by crates/native/src/kernels.rs");

enum ft_kernel_status {
    FT_KERNEL_OK = 0,
    FT_KERNEL_OPTIONS = 1, /* an option is out of range, or the arrays do not fit an address space */
    FT_KERNEL_MEMORY = 2,  /* no memory for the arrays */
    FT_KERNEL_WRONG = 3,   /* the answer differs by more than rounding */
    FT_KERNEL_FORM = 4,    /* this CPU lacks the instructions of the form asked for */
};

/* Runs a kernel: `seconds` takes the time of each repetition, divided by its iterations. Returns enum ft_kernel_status;
 * `result` and `seconds` are complete for FT_KERNEL_OK and FT_KERNEL_WRONG. */
typedef int ft_kernel(const struct ft_kernel_options *options, double *seconds, struct ft_kernel_result *result);

ft_kernel ft_dgemv;   /* size: rows, columns; variant: 0 textbook, 1 tuned */
ft_kernel ft_dmvm;    /* size: rows, columns; one iteration is one product, all within one parallel region */
ft_kernel ft_stream;  /* size: elements; variant: enum ft_stream, + FT_STREAM_TEMPORAL */
ft_kernel ft_chase;   /* size: cache lines; one iteration is one load */
ft_kernel ft_iso3dfd; /* size, block: n1 (the fastest), n2, n3; one iteration is one time step */

enum ft_stream { FT_COPY, FT_SCALE, FT_ADD, FT_TRIAD, FT_READ, FT_WRITE, FT_SCHOENAUER };
#define FT_STREAM_TEMPORAL 16u /* stores go through the caches */

/* common.c */
bool ft_options_are_valid(const struct ft_kernel_options *options);
int ft_team_size(const struct ft_kernel_options *options);
/* Makes `schedule(runtime)` the one of the options; FT_INIT_... of the loops that touch is always static. */
void ft_use_schedule(const struct ft_kernel_options *options);
/* Memory nobody has touched, aligned to 2 MiB; NULL if there is none. */
void *ft_allocate(size_t bytes, const struct ft_kernel_options *options);
void ft_release(void *memory, size_t bytes);
/* The part of `count` items that the calling thread touches first, [*first, *last), in its turn `turn`, counted from 0; false
 * when it has none left. Call within a parallel region. `item_bytes` is for FT_INIT_BLOCKED. */
bool ft_part_to_touch(uint32_t init, size_t count, size_t item_bytes, size_t turn, size_t *first, size_t *last);
/* Notes where the team runs and where `memory`'s pages are. */
void ft_observe(struct ft_kernel_result *result, const void *memory, size_t bytes, int threads);
/* The best form this CPU has, or the one asked for; 0 where it lacks that. */
uint32_t ft_choose_form(uint32_t wanted);

/* For functions whose lines a report shows. */
#define FT_NOINLINE __attribute__((noinline))

#if defined(__x86_64__)
#define FT_TARGET_AVX2 __attribute__((target("avx2,fma")))
#define FT_TARGET_AVX512 __attribute__((target("avx512f,avx2,fma")))
#endif

#endif
