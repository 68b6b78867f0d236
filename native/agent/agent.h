/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * Internals of the agent: a library that is preloaded into the profiled program, forwards every call it interposes,
 * and writes fixed-size records (firsttouch_ring.h). It must never change what the program does.
 *
 * Build (gcc or clang; static libgcc gives the unwinder without a dependency on libgcc_s):
 *
 *   cc -std=c11 -O2 -g -fPIC -shared -fvisibility=hidden -ftls-model=initial-exec -fasynchronous-unwind-tables
 *      -fno-strict-aliasing -Wall -Wextra -Werror -I../include -o libfirsttouch_agent.so *.c
 *      -static-libgcc -Wl,--exclude-libs,ALL -Wl,-z,now -Wl,-z,relro -Wl,-z,initfirst -Wl,-soname,libfirsttouch_agent.so
 *
 *   --exclude-libs,ALL  keeps the static unwinder's _Unwind_* out of the dynamic symbols: a preloaded library that
 *                       exported them would replace the unwinder of every C++ program.
 *   -z now              no lazy binding, so that no hook enters the dynamic loader's resolver.
 *   -z initfirst        our constructor before those of other libraries: their allocations are seen, and a program
 *                       they start does not inherit our variables.
 *   -O2                 the hooks rely on sibling calls: the slow part of a hook must find the caller's stack, and
 *                       the start of a thread must not leave a frame of ours behind.
 *
 * Words used here:
 *   gate    the smallest size recorded, minus one; SIZE_MAX while the agent is silent
 *   caller  the return address of the interposed call, the stack pointer after it returns, and the frame pointer
 *   native  the stack the thread was started on, as opposed to an alternate signal stack or a coroutine's
 */
#ifndef FIRSTTOUCH_AGENT_H
#define FIRSTTOUCH_AGENT_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <time.h>

#include "firsttouch_ring.h"

/* sandbox.c reads `syscall` at the beginning of ft_real. */
#define FT_INTERPOSED(X) FT_SANDBOX_FUNCTIONS(X) FT_MEMORY_FUNCTIONS(X) FT_START_FUNCTIONS(X)
#include "../preload/interpose.h"

/* Declared hidden, so that even an extern object is reached without the global offset table. */
#pragma GCC visibility push(hidden)

/* Set once by the constructor. */
struct ft_agent {
    struct ft_ring_header *ring; /* NULL: not attached */
    unsigned char *slots;
    uint64_t capacity;
    uint64_t min_size;
    uint32_t root_pid;
    bool follow;
    bool has_ticks;                 /* times may be derived from the time-stamp counter */
    bool wiped_on_fork;             /* the kernel clears ft_wiped in children */
    bool runs_python;               /* the program is, or is linked with, a Python whose stacks can be read */
    bool can_carry;                 /* our path is absolute: an exec can load us again */
    bool sandboxed;                 /* sandbox.c */
    const char *is_single_threaded; /* the C library's word on it (glibc 2.32 and later), or NULL */
    size_t page_bytes;
    char path[4096];       /* of this library */
    char environment[256]; /* FIRSTTOUCH_AGENT=... */
};
extern struct ft_agent ft_agent;

/* What a forked child must not inherit lies in pages of its own, which the kernel zeroes in the child
 * (MADV_WIPEONFORK), whichever way it was forked. Zero therefore means silent. */
#if defined(__x86_64__)
#define FT_PAGE_MAX 4096
#else
#define FT_PAGE_MAX 65536
#endif
#define FT_EARLY_BYTES 16384u
#define FT_KNOWN_STACKS 16384u /* power of two */
#define FT_CACHED_STACKS 1024u /* power of two */
#define FT_KNOWN_PYTHON 4096u
#define FT_PYTHON_PAGES 512u

struct ft_word {
    uintptr_t address;
    uintptr_t value;
};

#define FT_CACHED_WORDS (2 * FT_STACK_MAX)

struct ft_cached_stack {
    uint32_t sequence; /* odd while it is written */
    uint32_t count;
    uintptr_t ip; /* the caller; with the frame pointer only where the frames depend on it, else 0 */
    uintptr_t stack_pointer;
    uintptr_t frame_pointer;
    uint64_t stack_id;
    struct ft_word words[FT_CACHED_WORDS];
};

struct ft_wiped {
    _Alignas(FT_PAGE_MAX) size_t min_size; /* 0 = silent. Whole pages, or the kernel would wipe a neighbour. */
    uint32_t pid;
    _Alignas(64) uint64_t known[FT_KNOWN_STACKS]; /* stack ids whose frames are in the ring */
    _Alignas(64) struct ft_cached_stack cached[FT_CACHED_STACKS];
    uint64_t python_known[FT_KNOWN_PYTHON]; /* python ids whose text is in the ring */
    uint64_t python_pages[FT_PYTHON_PAGES]; /* pages that could be read */
};
_Static_assert(sizeof(struct ft_wiped) % FT_PAGE_MAX == 0, "whole pages");
extern struct ft_wiped ft_wiped;

/* Small on purpose: glibc takes static TLS out of every thread's stack. */
struct ft_thread {
    volatile uintptr_t recording;  /* stack pointer of the hook that is recording, 0 = none */
    volatile uint64_t reserved;    /* slots reserved and not published yet: the first */
    volatile uint32_t unpublished; /* and how many */
    uint32_t tid;
    uintptr_t native_low; /* native stack, for certain; both 0 = unknown */
    uintptr_t native_top;
    bool resolving;
    /* clock.c: a reading of both clocks, ns a tick (2^-32), and ticks for which they are good; 0 = not good. */
    volatile uint64_t clock_ticks;
    volatile uint64_t clock_ns;
    volatile uint64_t clock_rate;
    volatile uint64_t clock_span;
};
extern _Thread_local struct ft_thread ft_thread __attribute__((tls_model("initial-exec")));

static inline bool ft_on_native_stack(uintptr_t address) {
    return address - ft_thread.native_low < ft_thread.native_top - ft_thread.native_low;
}

/* Sizes above the gate are recorded. One comparison decides it for the hot hooks. */
static inline size_t ft_gate(void) {
    return __atomic_load_n(&ft_wiped.min_size, __ATOMIC_RELAXED) - 1;
}

static inline bool ft_silent(void) {
    return ft_gate() == SIZE_MAX;
}

/* clock.c */
uint64_t ft_read_clock(void);

/* CLOCK_MONOTONIC, ns. Through the vDSO it costs 23 ns on the machine this was written on, most of it spent waiting for
 * the work before it. Where the kernel's clock runs by the time-stamp counter anyway, a thread that asks often gets it
 * from the counter: ft_read_clock has read both less than a millisecond ago. */
static inline uint64_t ft_now(void) {
#if defined(__x86_64__)
    uint64_t base = ft_thread.clock_ticks;
    uint64_t since = __builtin_ia32_rdtsc() - base;
    uint64_t now = ft_thread.clock_ns + (since * ft_thread.clock_rate >> 32);
    /* A signal handler that came between may have taken another base. */
    if (ft_likely(since < ft_thread.clock_span && ft_thread.clock_ticks == base)) {
        return now;
    }
#endif
    return ft_read_clock();
}

/* resolve.c */
extern size_t (*ft_usable_size)(void *); /* of a live block; returns 0 until attached */
void ft_resolve_usable_size(void);
extern unsigned char ft_early[FT_EARLY_BYTES]; /* blocks handed out before the allocator is found */
static inline bool ft_is_early_block(const void *block) {
    return (uintptr_t)block - (uintptr_t)ft_early < FT_EARLY_BYTES;
}
void *ft_realloc_early_block(void *block, size_t size);
void ft_mark_block(const void *block);

/* record.c */
void ft_record_plain(const struct ft_record *record);
void ft_record_with_stack(const struct ft_record *record, struct ft_caller caller);
bool ft_open_record(uint64_t *number);
void ft_close_record(uint64_t number, const struct ft_record *record);
bool ft_stack_has_room(void);
bool ft_write_stack(uint64_t stack_id, const uintptr_t *ips, uint32_t depth);
bool ft_write_python(uint64_t python_id, const char *text, uint32_t bytes);
uint32_t ft_tid(void);

/* stack.c */
uint64_t ft_stack_id(struct ft_caller caller);
void ft_stack_prepare(void);

/* python.c: only where ft_agent.runs_python, but for the first */
void ft_python_prepare(void);
uint64_t ft_python_id(void);
void ft_python_forget_pages(void);

/* lines.c */
struct ft_lines {
    uint64_t wanted; /* the code unit whose line is asked for */
    uint64_t unit;   /* the first code unit not read yet */
    int64_t line;    /* at first that of the code object */
    bool done;
    bool found;
};
size_t ft_lines_read(struct ft_lines *lines, const uint8_t *piece, size_t bytes, bool is_last);

/* thread.c */
void ft_main_thread_stack(const void *above_stack);

/* probe.c */
struct ft_probe {
    uintptr_t page; /* the last one found readable; 0 = none */
};
bool ft_readable(struct ft_probe *probe, const void *from, size_t bytes);
bool ft_readable_string(struct ft_probe *probe, const char *string);

/* image.c: may the program image behind a path (or open file) be given the agent? */
bool ft_image_takes_agent(const char *path);
bool ft_searched_image_takes_agent(const char *file);
bool ft_open_image_takes_agent(int fd);
bool ft_image_at_takes_agent(int directory, const char *path, int flags);

bool ft_is_sanitizer(const char *library);

/* carry.c */
struct ft_carry {
    char *const *environment;
    size_t entries;
    const char *preload; /* the value of LD_PRELOAD, or NULL */
    size_t bytes;        /* of the copy with our variables */
};
const char *ft_own_preload_entry(const char *list);
bool ft_hands_on(void);
bool ft_library_is_within_reach(void);
bool ft_carry_measure(struct ft_carry *carry, char *const environment[]);
bool ft_carry_fits_stack(const struct ft_carry *carry);
char **ft_carry_compose(const struct ft_carry *carry, void *block);

/* sandbox.c */
long ft_syscall_may_lock_in(long number, long a, long b, long c, long d, long e);
/* Has this process locked itself in, so that system calls may kill it? */
static inline bool ft_sandboxed(void) {
    return __atomic_load_n(&ft_agent.sandboxed, __ATOMIC_RELAXED);
}

#pragma GCC visibility pop

#endif
