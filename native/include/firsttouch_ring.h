/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * The record format between the agent (inside the profiled program) and firsttouch (outside).
 *
 * One shared-memory file (a memfd of firsttouch, opened by the agent through /proc/PID/fd/N):
 *
 *   offset 0      struct ft_ring_header (one page)
 *   offset 4096   capacity slots of 64 bytes
 *
 * A record is one or more consecutive slots. A producer reserves slots by a compare-and-swap on `head` (slot
 * numbers grow without bound; slot i is at i % capacity), fills the payload, and publishes each slot by storing its
 * sequence number (slot number + 1, truncated to 32 bits) with release order. The only consumer reads in slot order and
 * advances `tail`. When head - tail + needed > capacity, the producer counts the record in `lost` and continues: it never waits.
 *
 * Order: an allocation is reserved after the allocator returned, a release before the allocator is called, so slot
 * order is the order of ownership of an address. Times are CLOCK_MONOTONIC nanoseconds taken on ENTRY to the call, so
 * that pages touched inside the allocator (calloc, realloc) belong to the object.
 *
 * crates/capture/src/agent/ring.rs mirrors this file; a test compares sizes and offsets.
 */
#ifndef FIRSTTOUCH_RING_H
#define FIRSTTOUCH_RING_H

#include <stddef.h>
#include <stdint.h>

#define FT_RING_MAGIC 0x31474e4952544646ull /* "FFTRING1" little endian */
#define FT_RING_VERSION 1u
#define FT_SLOT_BYTES 64u
#define FT_STACK_MAX 32u           /* deepest call stack recorded */
#define FT_IPS_PER_SLOT 7u         /* return addresses in a continuation slot */
#define FT_TEXT_PER_SLOT 56u       /* bytes of text in one */
#define FT_SAMPLE_REGISTERS 16u    /* words of FT_REC_SAMPLE before those of the stack */
#define FT_SAMPLE_STACK_POINTER 4u /* its place among the registers of a sample */
#define FT_SAMPLE_STACK 48u        /* most words of the stack: the red zone, and 256 bytes above the stack pointer */
#define FT_SHIFT_MOST_US 2000u
#define FT_RING_CHILDREN 14u
#define FT_RING_DOUBTFUL 256u
#define FT_PYTHON_TEXT_MAX 6888u /* longest text of FT_REC_PYTHON: 123 slots */

struct ft_ring_header {
    uint64_t magic;
    uint32_t version;
    uint32_t capacity;              /* slots, a power of two */
    uint64_t min_size;              /* bytes: smaller allocations are not recorded */
    uint32_t root_pid;              /* the process firsttouch started, as the target sees itself (getpid()) */
    uint32_t flags;                 /* FT_FLAG_... */
    _Alignas(64) uint64_t head;     /* producers */
    uint64_t lost;                  /* records dropped because the ring was full */
    _Alignas(64) uint64_t tail;     /* the consumer */
    _Alignas(64) uint32_t attached; /* number of process images (constructor runs) that attached */
    uint32_t closed;                /* set by firsttouch when it stops reading: the agent goes silent */
    uint32_t silent;                /* set by agents: why a process is not or no longer recorded; FT_SILENT_... */
    uint32_t sample_us;             /* FT_FLAG_SAMPLE: CPU time of a thread between two of its samples */
    uint64_t unsampled_threads;     /* threads that got no timer */
    uint64_t skipped_samples;       /* samples that fell into the agent's own recording, or found the ring full */
    uint32_t
        first_sample_us; /* a thread's first sample comes at a random time up to this, so that short threads count in full */
    uint32_t wakes;      /* a futex (shared): the agent adds 1 and wakes firsttouch */
    uint64_t wake_size;  /* set by firsttouch: the next allocation of at least this size wakes it, once; 0: none does */
    uint32_t small_mean; /* blocks below min_size: one sample for so many bytes that a thread allocates; 0: none */
    uint32_t trap_handler_replaced; /* FT_FLAG_GUARD_TRAPS: the program handles SIGTRAP itself */
    uint64_t causeless_traps;       /* debug exceptions without a cause that were held back */
    uint32_t
        shift_us; /* set by firsttouch: the next thread that is sampled sleeps for so long, at most FT_SHIFT_MOST_US,
                          and sets it to 0. Its next tick then comes earlier in its CPU time */
    uint32_t forking;                 /* forks that began in processes with the agent */
    uint32_t forked;                  /* children that these made: each enters itself, a little later */
    uint32_t child[FT_RING_CHILDREN]; /* the last of them, as the target sees them */
    uint32_t has_aborted;             /* FT_FLAG_RANK: a process called MPI_Abort */
    int32_t abort_status;             /* with this status; written before has_aborted */
    /* 1 + the number of a slot at [number % FT_RING_DOUBTFUL]: a jump out of a signal handler left its thread between the
     * attempt to reserve it and the answer. It may be another thread's, which publishes it soon: the reader waits, but not for long. */
    uint64_t doubtful[FT_RING_DOUBTFUL];
};

#define FT_PRESENT_ALL 10000u /* all pages of a shared mapping were present */

#define FT_FLAG_FOLLOW 1u /* record in children too */
#define FT_FLAG_TICKS 2u  /* the kernel's clock runs by the time-stamp counter: times may be derived from it */

#define FT_FLAG_SAMPLE 4u /* take samples of the registers (FT_REC_SAMPLE) */

#define FT_FLAG_GUARD_TRAPS 8u /* a virtual machine: hold back debug exceptions without a cause (trap.c) */

#define FT_FLAG_RANK 16u /* a rank of an MPI job: note a call of MPI_Abort (abort.c) */

#define FT_SILENT_SANDBOX 1u /* it entered a sandbox (seccomp, PR_SET_TSC), where our system calls could kill it */
#define FT_SILENT_ADDRESS_SPACE 2u /* a limit on its address space is too tight for the ring */

enum ft_record_type {
    FT_REC_NONE = 0,
    FT_REC_ATTACH = 1, /* an image loaded the agent; address = 0 */
    FT_REC_ALLOC = 2,  /* address, size, kind, stack_id, python_id */
    FT_REC_FREE = 3,   /* address; size = 0 */
    FT_REC_MAP = 4,    /* mmap: address, size, kind, stack_id, python_id, aux = prot | (present << 8) | (flags << 32).
                          present: of a shared mapping, what was present before: 0 if not known, else 1 + up to FT_PRESENT_ALL */
    FT_REC_UNMAP = 5,  /* munmap: address, size (page aligned part) */
    FT_REC_STACK = 6,  /* stack_id defined: depth frames in continuation slots */
    FT_REC_THREAD =
        7, /* a thread starts: tid = the new thread, aux = tid of its creator, stack_id = start routine address */
    FT_REC_PARALLEL_BEGIN = 8, /* OMPT: address = code pointer, aux = parallel id, size = requested team size */
    FT_REC_PARALLEL_END = 9,   /* OMPT: address = code pointer, aux = parallel id */
    FT_REC_IMPLICIT_TASK =
        10, /* OMPT: begin of an implicit task: aux = parallel id, size = team size, address = thread number */
    FT_REC_ADVISE_FREE = 11, /* madvise DONTNEED/FREE/REMOVE or a re-mapping that drops pages: address, size */
    /* python_id defined: size bytes of text in continuation slots (struct ft_record_text). kind = 1: an id of samples, 0: of the other records. */
    FT_REC_PYTHON = 12,
    FT_REC_SAMPLE = 13,   /* the thread's registers: address = instruction pointer, size = CPU time of the thread in ns,
                           aux = CPU | (page faults of the thread << 32), python_id, stack_id = address of the first word of stack, depth = words in continuation slots (struct
                           ft_record_frames): the general registers in the processor's numbering, then words of the stack */
    FT_REC_NO_TIMER = 14, /* the thread got no timer: its registers are sampled from outside, if at all */
    FT_REC_SMALL =
        15, /* a sampled block below min_size: as FT_REC_ALLOC, aux = mean bytes between two samples. Its release
                             is not recorded */
    FT_REC_POPULATE = 16,   /* a call in which the kernel touched a range for the thread: address, size, kind, stack_id,
                             python_id. Of mlockall, aux = 1: mappings that follow are touched too (MCL_FUTURE), 0: they
                             are not; and size = 0 unless it touched what was mapped. (Of MAP_POPULATE, FT_REC_MAP tells.) */
    FT_REC_THREAD_END = 17, /* a thread with a timer ends before its process: size = its CPU time in ns */
};

enum ft_alloc_kind {
    FT_KIND_MALLOC = 1,
    FT_KIND_CALLOC = 2,
    FT_KIND_REALLOC = 3, /* the new block; the old one, if it moved or changed size, was released by a FREE record */
    FT_KIND_ALIGNED = 4, /* posix_memalign, aligned_alloc, memalign, valloc, pvalloc */
    FT_KIND_MMAP = 5,    /* anonymous private or shared */
    FT_KIND_MMAP_FILE = 6,
    FT_KIND_MREMAP = 7,
    FT_KIND_SHMAT = 8, /* a System V segment; its end (shmdt) is a FREE record */
    /* Of FT_REC_POPULATE. */
    FT_KIND_MLOCK = 9,
    FT_KIND_MLOCKALL = 10,
    FT_KIND_MADVISE = 11,
};

/* First slot of every record. */
struct ft_record {
    uint32_t sequence; /* slot number + 1, published last; 0 is never a valid published value for slot 0..2^32-2 */
    uint16_t type;     /* enum ft_record_type */
    uint8_t kind;      /* enum ft_alloc_kind, or 0 */
    uint8_t depth;     /* FT_REC_STACK: number of frames */
    uint32_t pid;
    uint32_t tid;
    uint64_t time_ns; /* CLOCK_MONOTONIC, on entry to the call */
    uint64_t address;
    uint64_t size;     /* bytes */
    uint64_t stack_id; /* hash of the frames' return addresses in this process, 0 = none */
    uint64_t aux;
    uint64_t python_id; /* hash of the Python call stack in this process, 0 = none */
};

/* A following slot of FT_REC_STACK: frames [7 * k, 7 * k + 7) of continuation slot k, caller-most last. */
struct ft_record_frames {
    uint32_t sequence;
    uint32_t pad;
    uint64_t ip[FT_IPS_PER_SLOT]; /* return addresses, absolute; the first is the call into the allocator */
};

/* A following slot of FT_REC_PYTHON: bytes [56 * k, 56 * k + 56) of the text in continuation slot k. For each frame,
 * innermost first, three strings in UTF-8, each ended by a NUL: the file, the function, and the line as a decimal number
 * (0 = unknown), followed by `@`, the number of the instruction, and `:` and the column (from 1), as far as they are known. Long
 * names lack their beginning. */
struct ft_record_text {
    uint32_t sequence;
    uint32_t pad;
    char text[FT_TEXT_PER_SLOT];
};

_Static_assert(offsetof(struct ft_ring_header, wakes) == 228 && offsetof(struct ft_ring_header, wake_size) == 232 &&
                   offsetof(struct ft_ring_header, causeless_traps) == 248 &&
                   offsetof(struct ft_ring_header, child) == 268 &&
                   offsetof(struct ft_ring_header, has_aborted) == 324 &&
                   offsetof(struct ft_ring_header, abort_status) == 328 &&
                   offsetof(struct ft_ring_header, doubtful) == 336 && sizeof(struct ft_ring_header) <= 4096,
               "as in ring.rs");
_Static_assert(sizeof(struct ft_record) == FT_SLOT_BYTES, "one slot");
_Static_assert(sizeof(struct ft_record_frames) == FT_SLOT_BYTES, "one slot");
_Static_assert(sizeof(struct ft_record_text) == FT_SLOT_BYTES, "one slot");

/* The environment variable that names the ring. The agent removes it from `environ` in its constructor, together with its own
 * entry in LD_PRELOAD, and adds both again for images that are to be recorded:
 *   FIRSTTOUCH_AGENT=/proc/<pid>/fd/<n>
 */
#define FT_AGENT_ENV "FIRSTTOUCH_AGENT"

#endif
