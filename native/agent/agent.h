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
 *   -z initfirst        runs our constructor before those of other libraries: their allocations are recorded, and programs
 *                       that they start do not inherit our variables.
 *   -O2                 the hooks rely on sibling calls: the slow part of a hook must find the caller's stack, and
 *                       the start of a thread must leave none of our frames on the stack.
 *
 * Terms:
 *   threshold  the smallest recorded size minus one; SIZE_MAX while the agent is silent (min_size.h)
 *   silent     forwards calls and does nothing else
 *   caller     the return address of the interposed call, the stack pointer after it returns, and the frame pointer
 *   native     the stack the thread was started on, as opposed to an alternate signal stack or a coroutine's
 */
#ifndef FIRSTTOUCH_AGENT_H
#define FIRSTTOUCH_AGENT_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <time.h>

#include "firsttouch_ring.h"

/* sandbox.c reads `syscall` at the beginning of ft_real. */
#if defined(__x86_64__)
#define FT_INTERPOSED(X)    \
    FT_SANDBOX_FUNCTIONS(X) \
    FT_SIGNAL_FUNCTIONS(X)  \
    FT_MEMORY_FUNCTIONS(X) FT_SEGMENT_FUNCTIONS(X) FT_LOCK_FUNCTIONS(X) FT_START_FUNCTIONS(X)
#else
#define FT_INTERPOSED(X)    \
    FT_SANDBOX_FUNCTIONS(X) \
    FT_MEMORY_FUNCTIONS(X) FT_SEGMENT_FUNCTIONS(X) FT_LOCK_FUNCTIONS(X) FT_START_FUNCTIONS(X)
#endif
#include "../preload/interpose.h"

/* Declared hidden, so that even an extern object is reached without the global offset table. */
#pragma GCC visibility push(hidden)

/* Written by the constructor, before there are other threads; constant from then on, but for `sandboxed`. */
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
    bool can_propagate;             /* our path is absolute: an exec can load this library again */
    bool sandboxed;                 /* sandbox.c; atomic */
    const char *is_single_threaded; /* the C library's __libc_single_threaded (glibc 2.32 and later), or NULL */
    size_t page_bytes;
    char path[4096];       /* of this library */
    char environment[256]; /* FIRSTTOUCH_AGENT=... */
};
extern struct ft_agent ft_agent;

/* Data that a forked child must not inherit lie in pages that the kernel zeroes in the child (MADV_WIPEONFORK), by whichever
 * call it was forked. Zero therefore means silent. */
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
#define FT_SAMPLED_PYTHON 4096u /* power of two */

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
    _Alignas(FT_PAGE_MAX) size_t min_size; /* 0: silent */
    uint32_t pid;
    _Alignas(64) uint64_t known[FT_KNOWN_STACKS]; /* stack ids whose frames are in the ring */
    _Alignas(64) struct ft_cached_stack cached[FT_CACHED_STACKS];
    uint64_t python_known[FT_KNOWN_PYTHON];         /* python ids whose text is in the ring */
    uint64_t python_pages[FT_PYTHON_PAGES];         /* pages that could be read */
    uint64_t python_sampled[2 * FT_SAMPLED_PYTHON]; /* pairs {hash of the frames' memory ^ id, id} */
};
_Static_assert(sizeof(struct ft_wiped) % FT_PAGE_MAX == 0, "whole pages: the kernel would wipe the data beside it");
extern struct ft_wiped ft_wiped;

#define FT_ATTEMPT (1u << 31)

/* Kept small: glibc takes static TLS from every thread's stack. Signal handlers of the thread read and write it too. */
struct ft_thread {
    volatile uintptr_t recording;  /* the mark: stack pointer of the hook that is recording, or 0 */
    volatile uint64_t reserved;    /* first of the slots that are reserved and not published yet */
    volatile uint32_t unpublished; /* the number of them; with FT_ATTEMPT, perhaps they were not reserved */
    uint32_t tid;
    uintptr_t native_low; /* bounds that certainly lie in the native stack; both 0: unknown */
    uintptr_t native_top;
    bool resolving;
    /* clock.c: a reading of both clocks, the rate in 2^-32 ns a tick, and the ticks for which they are valid; 0: invalid. */
    volatile uint64_t clock_ticks;
    volatile uint64_t clock_ns;
    volatile uint64_t clock_rate;
    volatile uint64_t clock_span;
    struct ft_timer *timer; /* sample.c: of this thread, or NULL */
    uint64_t python_after;  /* python_stack.c: the stack is read at samples from FIRST_READS_NS before then on */
    /* small.c */
    uint64_t small_left;     /* bytes until the next sample; negative as a signed number: it is due */
    uint64_t small_random;   /* state of the generator; 0 before the first allocation */
    uint32_t small_mean;     /* bytes between two samples, on average */
    uint32_t small_recorded; /* samples since then */
    uint64_t small_since;    /* when the mean was last adapted */
};
extern _Thread_local struct ft_thread ft_thread __attribute__((tls_model("initial-exec")));

static inline bool ft_on_native_stack(uintptr_t address) {
    return address - ft_thread.native_low < ft_thread.native_top - ft_thread.native_low;
}

#include "min_size.h"

/* clock.c */
/* CLOCK_MONOTONIC, ns; takes new readings for ft_now. Not to be called under a sandbox: see sandbox.c. */
uint64_t ft_read_clock(void);

/* The same time, derived from the time-stamp counter where the kernel's clock runs by it and ft_read_clock has read both less
 * than a millisecond ago. (Through the vDSO the clock costs 23 ns on the development machine, most of it spent waiting for
 * earlier instructions.) */
static inline uint64_t ft_now(void) {
#if defined(__x86_64__)
    uint64_t base = ft_thread.clock_ticks;
    uint64_t since = __builtin_ia32_rdtsc() - base;
    uint64_t now = ft_thread.clock_ns + (since * ft_thread.clock_rate >> 32);
    /* A signal handler that ran in between may have set another base. */
    if (ft_likely(since < ft_thread.clock_span && ft_thread.clock_ticks == base)) {
        return now;
    }
#endif
    return ft_read_clock();
}

/* What all functions below keep to, unless their comment says otherwise:
 *   - They allocate nothing, take no lock (but for the unwinder's own, before glibc 2.35), never wait, and keep errno.
 *   - They are reentrant: a signal handler may interrupt any of them and call any of them.
 * "Attached" as a pre-condition means that ft_agent.ring is not NULL, which a hook knows from ft_silent(). */

/* populate.c */
/* Records that the kernel touched the range for the calling thread (FT_REC_POPULATE). Pre-conditions: attached;
 * `caller` is of the interposed function that is running. */
void ft_populated(uint8_t kind, const void *address, size_t size, uint64_t future, uint64_t time_ns,
                  struct ft_caller caller);

/* present.c */
/* The field `present` of FT_REC_MAP, of a mapping that was just made, in its place. Looks at 2,048 pages at most. */
uint64_t ft_present(const void *mapped, size_t size);

/* resolve.c */
/* malloc_usable_size for a live block or NULL; returns 0 until attached, and SIZE_MAX for a block of unknown size that
 * ft_mark_block has marked. */
extern size_t (*ft_usable_size)(void *);
/* Sets it. Pre-condition: ft_resolve has run. Takes the loader's lock: for the constructor only. */
void ft_resolve_usable_size(void);
/* Call for each recorded block, before it is returned to the program. */
void ft_mark_block(const void *block);
extern unsigned char ft_early[FT_EARLY_BYTES]; /* blocks handed out before the allocator is found */
static inline bool ft_is_early_block(const void *block) {
    return (uintptr_t)block - (uintptr_t)ft_early < FT_EARLY_BYTES;
}
/* Pre-condition: ft_is_early_block(block). Copies to a block of the real allocator; the early block is never reused. May
 * change errno, as realloc does. */
void *ft_realloc_early_block(void *block, size_t size);

/* ring.c. Pre-condition of all: attached. */
/* Writes one record. Of `record`, these read type, kind, time_ns, address, size, aux (and ft_record_plain stack_id). A record
 * that finds no room, or whose hook interrupted another recorder of this thread, is counted as lost. */
void ft_record_plain(const struct ft_record *record);
/* The same with the call stack. Pre-condition: `caller` is of the interposed function that is running. */
void ft_record_with_stack(const struct ft_record *record, struct ft_caller caller);
/* For a call that releases memory but may fail: reserves the slot before it, in the order of ownership. If it returns true,
 * the same function must call ft_close_record, soon and in any case: the reader waits at the slot, and this thread records
 * nothing else meanwhile. */
bool ft_open_record(uint64_t *number);
/* `record` is NULL if the call failed. */
void ft_close_record(uint64_t number, const struct ft_record *record);
/* Has the ring room for the longest stack? Called before unwinding, so that a full ring does not cost the program that time. */
bool ft_stack_has_room(void);
/* Define an id, in slots of their own. False: no room. Pre-condition: called by the recorder that holds this thread's mark.
 * `depth` is 1 to FT_STACK_MAX; `bytes` is 1 to FT_PYTHON_TEXT_MAX. */
bool ft_write_stack(uint64_t stack_id, const uintptr_t *ips, uint32_t depth);
bool ft_write_python(uint64_t python_id, bool of_sample, const char *text, uint32_t bytes);
uint32_t ft_tid(void); /* callable without a ring */

/* Writes a sample: `words` are its registers, then its stack. One that interrupted a recorder of this thread, or finds no room, is
 * counted as skipped. Pre-conditions: called by a signal handler; `count` is at most FT_SAMPLE_REGISTERS + FT_SAMPLE_STACK. */
void ft_record_sample(const struct ft_record *record, const uint64_t *words, uint32_t count);

/* abort.c */
/* In a rank of an MPI job: has calls of MPI_Abort noted. For the constructor. */
void ft_abort_prepare(void);

/* sample.c */
/* Installs the handler, if firsttouch asks for samples. For the constructor. */
void ft_sample_prepare(void);
/* Starts the timer of the calling thread; the thread's end stops it. May be called more than once. */
void ft_sample_thread(void);
/* Call after each pthread_create: the first one of a process replaces the handler. */
void ft_sample_keep_handler(void);
/* In a forked child, which has no timers: starts that of its only thread. */
void ft_sample_after_fork(void);
/* Stops all timers, which a sandbox may turn into the program's end, and starts them again. */
void ft_sample_pause(void);
void ft_sample_resume(void);

/* trap.c */
/* Installs the handler of debug exceptions without a cause, if firsttouch asks for it. For the constructor. */
void ft_trap_prepare(void);
/* Puts the default disposition back. Call before the process enters a sandbox. */
void ft_trap_leave(void);
/* Tells firsttouch if the program has replaced the handler, by a system call of its own. Callable by signal handlers. */
void ft_trap_check(void);

/* small.c: a sample of the blocks below the threshold */
/* Counts a request below the threshold. Is a sample due? Then the hook ends in ft_small_allocated. */
static inline bool ft_small_is_due(size_t size) {
    uint64_t left = ft_thread.small_left - size;
    ft_thread.small_left = left;
    return (int64_t)left < 0;
}
/* Records the block, and draws when the next sample is due. Pre-condition: `caller` is of the interposed function that is
 * running. Callable when the agent is silent. */
void ft_small_allocated(const struct ft_record *record, struct ft_caller caller);

/* stack.c */
/* The id of the caller's stack, whose frames are in the ring; 0 if it is new and the ring has no room for them.
 * Pre-condition: called by the recorder that holds this thread's mark, below the frame of the interposed function. */
uint64_t ft_stack_id(struct ft_caller caller);
/* Call in the constructor: the unwinder's first use takes a lock. */
void ft_stack_prepare(void);

/* python_stack.c */
/* Finds a Python that can be read and sets ft_agent.runs_python. Takes the loader's lock: for the constructor only. */
void ft_python_prepare(void);
/* The id of this thread's Python stack, whose text is in the ring; 0 if the thread does not run Python, or the stack is new
 * and the ring has no room. Pre-conditions: ft_agent.runs_python; called by the recorder that holds this thread's mark. */
uint64_t ft_python_id(void);
/* The same for a thread that a signal interrupted at this stack pointer. Also 0 if the handler runs on another stack than the thread's own, or
 * little of that is left. */
uint64_t ft_python_id_of_sample(uintptr_t interrupted);
/* Call before each munmap by the program, if ft_agent.runs_python. */
void ft_python_forget_pages(void);

/* python_line_table.c */
struct ft_python_lines {
    uint64_t wanted; /* the code unit whose line is asked for */
    uint64_t unit;   /* the first code unit not read yet */
    int64_t line;    /* at first that of the code object */
    uint32_t column; /* where the unit's code begins in its line, counted from 1 in bytes; 0: not known */
    bool done;
    bool found;
};
/* Reads the next piece of a line table, whole entries only, and returns how many bytes it used: 0 if the piece holds no
 * whole entry, or the table is invalid. Pre-conditions: !lines->done; `piece` starts where the last one was used up; `bytes` > 0. */
size_t ft_python_lines_read(struct ft_python_lines *lines, const uint8_t *piece, size_t bytes, bool is_last);

/* thread.c */
/* Notes the main thread's native stack. Pre-condition: the main thread calls it, and `above_stack` lies on its stack above
 * all frames, as the environment does. */
void ft_main_thread_stack(const void *above_stack);

/* readable.c */
struct ft_last_readable {
    uintptr_t page; /* the last page found readable, or 0 */
};
/* Is the memory readable? Pre-conditions: 1 <= `bytes` <= 4096; `last` is zero before the first of a series of calls. The
 * answer holds only as long as no other thread unmaps the memory. */
bool ft_readable(struct ft_last_readable *last, const void *from, size_t bytes);
bool ft_readable_string(struct ft_last_readable *last, const char *string);

/* image.c: can a program image take the agent? May change errno. `path` may be any pointer, which the kernel checks; `file`
 * must be readable. */
bool ft_image_takes_agent(const char *path);
bool ft_searched_image_takes_agent(const char *file);                     /* searches PATH as execvp does */
bool ft_open_image_takes_agent(int fd);                                   /* leaves `fd` open */
bool ft_image_at_takes_agent(int directory, const char *path, int flags); /* as execveat */
/* Is it the file name of a sanitizer's runtime? */
bool ft_is_sanitizer(const char *library);

/* exec_environment.c: a copy of an environment with our variables in it. */
struct ft_exec_environment {
    char *const *environment;
    size_t entries;
    const char *preload; /* the value of LD_PRELOAD, or NULL */
    size_t bytes;        /* size of the copy */
};
/* Our entry in a value of LD_PRELOAD, or NULL. Pre-condition: ft_agent.path is set. */
const char *ft_own_preload_entry(const char *list);
/* Are programs that this process executes to load the agent? Asked before the functions below are called. */
bool ft_propagates(void);
/* Will the new image be able to open this library? May change errno. */
bool ft_library_is_accessible(void);
/* Measures the copy. False: use `environment` as it is. `environment` may be any pointer: it is checked before it is read. May
 * change errno. */
bool ft_exec_environment_measure(struct ft_exec_environment *copy, char *const environment[]);
/* Has the current stack room for the copy? */
bool ft_exec_environment_fits_stack(const struct ft_exec_environment *copy);
/* Writes the copy. Pre-conditions: measured, and the environment has not changed since; `block` has copy->bytes bytes,
 * aligned for pointers. The copy points to the strings of the original. */
char **ft_exec_environment_compose(const struct ft_exec_environment *copy, void *block);

/* sandbox.c */
/* syscall() for SYS_seccomp and SYS_prctl. */
long ft_syscall_may_sandbox(long number, long a, long b, long c, long d, long e);
/* populate.c: syscall() for SYS_mlock, SYS_mlock2, SYS_mlockall, SYS_munlockall and SYS_madvise. */
long ft_syscall_may_populate(long number, long a, long b, long c, long d, long e);
/* Is this process in a sandbox, where our system calls may kill it? */
static inline bool ft_sandboxed(void) {
    return __atomic_load_n(&ft_agent.sandboxed, __ATOMIC_RELAXED);
}

#pragma GCC visibility pop

#endif
