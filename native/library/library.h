/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * The parts of libfirsttouch, and what each promises to the others.
 *
 *   policy.c     the seam: every system call about nodes, policies and CPUs
 *   nodes.c      the nodes and CPUs of this process; reads /sys below a root
 *   team.c       on which node each thread of a team runs
 *   partition.c  pure arithmetic: bytes -> pages -> nodes
 *   layout.c     a partition as few policies: at most FTL_MAX_PIECES mappings a block
 *   huge.c       where huge pages help, and where they spoil borders
 *   place.c      sets policies, moves pages, populates
 *   alloc.c      blocks of memory            registry.c   which blocks there are
 *   replicate.c  copies on nodes             parallel.c   threads of the library's own
 *   verify.c     where pages are             report.c     the same in words
 *   doubt.c      what a call could not do
 *
 * Internal names begin with ftl_. The agent and the plan library have internal names with ft_: never link them together.
 */
#ifndef FIRSTTOUCH_LIBRARY_H
#define FIRSTTOUCH_LIBRARY_H

/* Before any header of libc: mremap, madvise, sched_getcpu. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#define FT_NO_INLINE
#include "firsttouch.h"

#include <limits.h>

#define FTL_MAX_NODES 1024
#define FTL_MAX_CPUS 8192
#define FTL_MAX_TEAMS 64
#define FTL_MAX_PARTS ((size_t)1 << 20)
#define FTL_MAX_PIECES 256 /* mappings that one block may be split into */
#define FTL_WORD_BITS (CHAR_BIT * sizeof(unsigned long))

typedef struct ftl_node_set {
    unsigned long words[FTL_MAX_NODES / FTL_WORD_BITS];
} ftl_node_set;

typedef struct ftl_cpu_set {
    unsigned long words[FTL_MAX_CPUS / FTL_WORD_BITS];
} ftl_cpu_set;

static inline void ftl_set(unsigned long *words, size_t bit) {
    words[bit / FTL_WORD_BITS] |= 1ul << (bit % FTL_WORD_BITS);
}
static inline bool ftl_is_set(const unsigned long *words, size_t bit) {
    return (words[bit / FTL_WORD_BITS] >> (bit % FTL_WORD_BITS) & 1) != 0;
}

/* ---- policy.c: the seam. Each function returns 0 or -1 with errno. ---- */

enum ftl_mode { FTL_DEFAULT, FTL_PREFERRED, FTL_INTERLEAVE };

/* Sets the policy of whole pages. Moves nothing. */
int ftl_set_range_policy(uintptr_t from, uintptr_t to, enum ftl_mode mode, const ftl_node_set *nodes);

/* The policy of the calling thread, for saving and restoring. */
typedef struct ftl_thread_policy {
    int mode;
    ftl_node_set nodes;
} ftl_thread_policy;
int ftl_get_thread_policy(ftl_thread_policy *policy);
int ftl_restore_thread_policy(const ftl_thread_policy *policy);
int ftl_set_thread_policy(enum ftl_mode mode, const ftl_node_set *nodes);

/* The node of each page, or a negative errno: -ENOENT and -EFAULT where no page is present. */
int ftl_query_pages(void **pages, int *nodes, size_t count);
/* Moves each page to nodes[i]. Returns 0 even if single pages stayed: ask again by ftl_query_pages. */
int ftl_move_pages(void **pages, const int *nodes, int *status, size_t count);

/* What this process may use. The CPUs are a guess, more than it may use, if an OpenMP runtime has pinned the threads and does not say
 * what it knows. May start an OpenMP runtime: not under ftl_lock. */
int ftl_allowed_nodes(ftl_node_set *nodes);
int ftl_allowed_cpus(ftl_cpu_set *cpus, bool *is_guess);
int ftl_pin_thread(const ftl_cpu_set *cpus);
/* The CPU of the calling thread, or -1. */
int ftl_current_cpu(void);
/* Below which folder /sys and /proc are: "" outside of tests. */
const char *ftl_system_root(void);
/* Splits the huge page that this page is part of, if there is one and the kernel can (since Linux 5.4). */
void ftl_split_huge(uintptr_t page);
/* Populates whole pages for writing. EINVAL: the range is not writable, or the kernel is older than Linux 5.14: see
 * ftl_knows_populate. EFAULT: behind the end of a file. */
int ftl_populate(uintptr_t from, uintptr_t to);
bool ftl_knows_populate(void);
/* Whether all pages of the range are mapped. */
bool ftl_is_mapped(uintptr_t from, uintptr_t to);
/* Whether they are mapped for writing: reads /proc/self/maps. False if that is not known. */
bool ftl_is_writable(uintptr_t from, uintptr_t to);
size_t ftl_page_bytes(void);

/* ---- nodes.c ---- */

typedef struct ftl_cpu {
    int16_t cpu;
    int16_t node; /* where its memory should come from: the nearest node with memory that this process may use */
} ftl_cpu;

typedef struct ftl_nodes {
    size_t count;                      /* nodes with memory that this process may use, at least 1 */
    int16_t number[FTL_MAX_NODES];     /* in ascending order */
    int16_t nearest[FTL_MAX_NODES];    /* of any node: the nearest of these */
    size_t machine_count;              /* nodes with memory that the machine has */
    size_t cpu_count;                  /* CPUs that this process may use, at least 1 */
    bool is_guess;                     /* these are those of the cpuset, and this process may use some of them only */
    ftl_cpu cpus[FTL_MAX_CPUS];        /* by node, then by number */
    int16_t node_of_cpu[FTL_MAX_CPUS]; /* of any CPU: as ftl_cpu.node */
    size_t huge_bytes;                 /* of a transparent huge page; 0 if the kernel has none */
} ftl_nodes;

/* Read once, at the first call, and kept. */
const ftl_nodes *ftl_nodes_get(void);
/* Reads them below `root`; `allowed` and `cpus` say what this process may use, NULL: everything. */
void ftl_nodes_read(const char *root, const ftl_node_set *allowed, const ftl_cpu_set *cpus, ftl_nodes *nodes);
/* The index of a node in `number`, or SIZE_MAX. */
size_t ftl_node_index(const ftl_nodes *nodes, int number);
/* The node of the CPU that the calling thread runs on, or of one like it. */
int ftl_current_node(const ftl_nodes *nodes);

/* ---- registry.c: blocks, and the lock of everything that is shared ---- */

void ftl_lock(void);
void ftl_unlock(void);

typedef struct ftl_block {
    void *pointer;
    size_t bytes;  /* as asked for */
    size_t mapped; /* whole pages */
    unsigned flags;
    ft_partition partition; /* its arrays are copies of the block's own */
    size_t copies;          /* FT_REPLICATED: at least 1 */
    const char *action;     /* what its doubts are about, while it is made */
    void **copy;            /* copy[0] == pointer; copy[i] is on number[i] */
} ftl_block;

/* Takes `block`, which malloc gave. Returns false if there is no memory for it. */
bool ftl_register(ftl_block *block);
/* Removes it and gives it to the caller, or NULL. */
ftl_block *ftl_unregister(const void *pointer);
/* The same, and keeps its place, so that ftl_put_back cannot fail: the block may have another address then. */
ftl_block *ftl_take_out(const void *pointer);
void ftl_put_back(ftl_block *block);
/* Copies what is known of a block. The pointers in it hold until the block is freed. */
bool ftl_find(const void *pointer, ftl_block *block);
void ftl_block_delete(ftl_block *block);

/* ---- team.c ---- */

/* Owner of each part of a partition, as nodes. */
typedef struct ftl_owners {
    size_t parts;
    const ftl_nodes *nodes;
    const int16_t *table; /* of `table_count` entries, node of part i modulo table_count; NULL: by CPU or node number */
    size_t table_count;
    bool by_node;
    int16_t *taken; /* the memory of `table`, to be released */
} ftl_owners;

/* Resolves part -> node. Returns -1 with errno = ENOMEM. Release it by ftl_owners_release. */
int ftl_owners_of(const ft_partition *partition, const ftl_nodes *nodes, ftl_owners *owners);
void ftl_owners_release(ftl_owners *owners);
int ftl_owner(const ftl_owners *owners, size_t part);

/* ---- partition.c: pure ---- */

/* 0, or EINVAL. */
int ftl_check(const ft_partition *partition);
int ftl_check_kind(const ft_partition *partition);
/* Whether the partition says for each byte which node it belongs to: not local, interleaved, replicated. */
bool ftl_has_owners(const ft_partition *partition);

/* The nodes that own bytes of a page, and how many bytes. */
#define FTL_MAX_SHARERS 64
typedef struct ftl_sharers {
    size_t count;
    int node[FTL_MAX_SHARERS];
    size_t bytes[FTL_MAX_SHARERS];
} ftl_sharers;

/* Receives pages [from, to), as addresses. `sharers` is NULL if all bytes belong to `node`, or lists the nodes of a single shared
 * page, of which `node` has most. Returns false to stop. */
typedef bool ftl_piece_fn(void *to_what, uintptr_t from, uintptr_t to, int node, const ftl_sharers *sharers);

/* Calls `piece` for the pages of [address, address + bytes) in ascending order: a page goes to the node that owns most of its bytes
 * (the first of several). The partition must have owners. */
void ftl_for_pieces(const ft_partition *partition, const ftl_owners *owners, uintptr_t address, size_t bytes,
                    size_t page, ftl_piece_fn *piece, void *to_what);

/* Whether every page is shared in about equal parts: chunks dealt out within each page. */
bool ftl_shares_every_page(const ft_partition *partition, size_t parts, size_t page);
/* Whether pages go in turn over `nodes` in ascending order, beginning with any of them. */
bool ftl_is_page_interleave(const ft_partition *partition, const ftl_owners *owners, size_t page, ftl_node_set *nodes,
                            size_t *count, size_t *first);

/* ---- layout.c ---- */

typedef struct ftl_piece {
    uintptr_t from, to;
    int node;
} ftl_piece;

typedef enum ftl_shape {
    FTL_SHAPE_DEFAULT,    /* no policy */
    FTL_SHAPE_PIECES,     /* each piece prefers a node */
    FTL_SHAPE_INTERLEAVE, /* pages in turn over `nodes` */
    FTL_SHAPE_MANY        /* too many pieces for policies: FTL_SHAPE_INTERLEAVE is the nearest */
} ftl_shape;

typedef struct ftl_layout {
    ftl_shape shape;
    size_t count;
    ftl_piece pieces[FTL_MAX_PIECES];
    bool is_coarser; /* FTL_SHAPE_MANY because of the number of pieces: FT_STRICT fails */
    ftl_node_set nodes;
    size_t modulus,
        remainder; /* FTL_SHAPE_INTERLEAVE: exact if page number % modulus == remainder; 0: at any address */
} ftl_layout;

void ftl_layout_of(const ft_partition *partition, const ftl_owners *owners, uintptr_t address, size_t bytes,
                   size_t page, ftl_layout *layout);

/* ---- huge.c ---- */

/* FT_HUGE_PAGES, FT_SMALL_PAGES or neither, for whole pages. Returns 0, or -1 with errno and a doubt. */
int ftl_advise_huge(uintptr_t from, uintptr_t to, unsigned flags, const char *action);
/* Whether huge pages in turn over the nodes are about even. */
bool ftl_is_even_in_huge_pages(const ftl_nodes *nodes, size_t bytes);
/* Bytes that go to one node in turn, of interleaved memory: large blocks keep their huge pages, and these go in turn. */
size_t ftl_turn_bytes(const ftl_nodes *nodes, size_t bytes);
/* The flags, with small pages where huge ones would cover several targets. */
unsigned ftl_page_flags(const ftl_layout *layout, const ftl_nodes *nodes, size_t bytes, unsigned flags);
/* Small pages around the borders of a range that threads of several nodes are about to touch. */
void ftl_small_pages_at_borders(const ft_partition *partition, const ftl_owners *owners, uintptr_t address,
                                size_t bytes);

/* ---- place.c ---- */

/* A flag of ftl_place_pages: the caller populates each page on its node afterwards, whatever policies can keep. */
#define FTL_POPULATES (1u << 16)

/* Sets the policies of a layout on whole pages. Returns 0, or -1 with errno, and then a doubt is said for `action`. */
int ftl_apply(const ftl_layout *layout, const ftl_nodes *nodes, uintptr_t from, uintptr_t to, const char *action);
/* Says what the shape of the layout could not keep. */
void ftl_doubt_layout(const ftl_layout *layout, const char *action);
/* As ft_place, for whole pages of [address, address + bytes), with its arguments checked. */
ptrdiff_t ftl_place_pages(uintptr_t address, size_t bytes, const ft_partition *partition, unsigned flags,
                          const char *action);

/* ---- replicate.c ---- */

int ftl_map_copies(ftl_block *block, const ftl_nodes *nodes);

/* ---- alloc.c ---- */

void *ftl_map(size_t bytes, size_t alignment, size_t modulus, size_t remainder, size_t page);

/* ---- parallel.c ---- */

/* Work for the bytes [from, to) of a range, by a thread on the node that owns them. */
typedef void ftl_work_fn(const void *argument, size_t from, size_t to);
int ftl_work_parallel(uintptr_t address, size_t bytes, const ft_partition *partition, ftl_work_fn *work,
                      const void *argument, const char *action);
/* One call for each node: work(argument, i, i + 1) on number[i], for i from `first`. */
void ftl_work_on_nodes(const ftl_nodes *nodes, size_t first, ftl_work_fn *work, const void *argument,
                       const char *action);

/* ---- doubt.c ---- */

void ftl_doubt(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* The same for a text that lives for ever: cheap. */
void ftl_doubt_text(const char *text);
/* What to do about a refusal by the kernel. */
const char *ftl_advice(int error);

#define FTL_ONE_NODE                                                                                               \
    ": memory was not divided, because this process may use one node only: on a machine with several, look for a " \
    "cpuset or a memory policy (numactl, a batch system, a container) that hides the others"

#endif
