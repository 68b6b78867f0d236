/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * Threads of the library's own, for programs without a team at hand. Each is pinned to the CPUs of a node, takes that node's memory
 * policy (so that pages come from there even if the node has no CPU), and blocks all signals: handlers of the program do not run in
 * it. They end before the call returns.
 */
#include "library.h"

#include <errno.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Less than this is not worth a thread more. */
#define MIN_SHARE ((size_t)1 << 20)
#define STACK_BYTES ((size_t)256 * 1024)

typedef struct job {
    const ftl_nodes *nodes;
    const ft_partition *partition;
    const ftl_owners *owners;
    uintptr_t address;
    size_t bytes;
    bool in_turn; /* pages in turn over the nodes, whoever writes them */
    ftl_work_fn *work;
    const void *argument;
} job;

typedef struct worker {
    const job *job;
    pthread_t thread;
    bool is_thread;
    int node;
    size_t from, to; /* of the node's own bytes, counted from 0; without a partition: arguments of `work` */
    size_t reached;  /* the node's bytes before this piece */
    int pin_error, policy_error;
} worker;

static bool work_on_piece(void *to_what, uintptr_t from, uintptr_t to, int node, const ftl_sharers *sharers) {
    (void)sharers;
    worker *w = to_what;
    const job *j = w->job;
    if (node != w->node) {
        return true;
    }
    size_t begin = from > j->address ? from - j->address : 0;
    size_t end = to - j->address < j->bytes ? to - j->address : j->bytes;
    size_t reached = w->reached;
    w->reached += end - begin;
    size_t first = w->from > reached ? w->from - reached : 0;
    size_t last = w->to - reached < end - begin ? w->to - reached : end - begin;
    if (first < last) {
        j->work(j->argument, begin + first, begin + last);
    }
    return w->reached < w->to;
}

static void run(worker *w) {
    const job *j = w->job;
    if (j->partition == NULL) {
        j->work(j->argument, w->from, w->to);
    } else {
        ftl_for_pieces(j->partition, j->owners, j->address, j->bytes, ftl_page_bytes(), work_on_piece, w);
    }
}

static void take_policy(worker *w) {
    const ftl_nodes *nodes = w->job->nodes;
    ftl_node_set set = {{0}};
    if (nodes->count == 1 || ftl_node_index(nodes, w->node) == SIZE_MAX) {
        return;
    }
    for (size_t i = 0; i < nodes->count; i++) {
        if (w->job->in_turn || nodes->number[i] == w->node) {
            ftl_set(set.words, (size_t)nodes->number[i]);
        }
    }
    if (ftl_set_thread_policy(w->job->in_turn ? FTL_INTERLEAVE : FTL_PREFERRED, &set) != 0) {
        w->policy_error = errno;
    }
}

static void *run_pinned(void *argument) {
    worker *w = argument;
    const ftl_nodes *nodes = w->job->nodes;
    ftl_cpu_set cpus = {{0}};
    bool any = false;
    for (size_t i = 0; i < nodes->cpu_count; i++) {
        if (nodes->cpus[i].node == w->node) {
            ftl_set(cpus.words, (size_t)nodes->cpus[i].cpu);
            any = true;
        }
    }
    if (any && ftl_pin_thread(&cpus) != 0) {
        w->pin_error = errno;
    }
    if (!any) {
        w->pin_error = ENODEV; /* the policy must do */
    }
    take_policy(w);
    run(w);
    return NULL;
}

/* In the calling thread, which gets its own policy back. */
static void run_here(worker *w) {
    ftl_thread_policy before;
    bool is_known = w->job->nodes->count > 1 && ftl_get_thread_policy(&before) == 0;
    if (is_known) {
        take_policy(w);
    } else if (w->job->nodes->count > 1) {
        w->pin_error = w->policy_error = errno;
    }
    run(w);
    if (is_known) {
        ftl_restore_thread_policy(&before);
    }
}

static int add_tls(struct dl_phdr_info *object, size_t size, void *bytes) {
    (void)size;
    for (size_t i = 0; i < object->dlpi_phnum; i++) {
        if (object->dlpi_phdr[i].p_type == PT_TLS) {
            *(size_t *)bytes += object->dlpi_phdr[i].p_memsz + object->dlpi_phdr[i].p_align;
        }
    }
    return 0;
}

/* glibc takes the thread-local variables of all libraries from the stack. */
static size_t stack_bytes(void) {
    long least = sysconf(_SC_THREAD_STACK_MIN);
    size_t bytes = STACK_BYTES + (least > 0 ? (size_t)least : 0), page = ftl_page_bytes();
    dl_iterate_phdr(add_tls, &bytes);
    return (bytes + page - 1) / page * page;
}

static void run_all(worker *workers, size_t count, const char *action) {
    sigset_t all, before;
    pthread_attr_t attributes;
    int error = 0, placed_error = 0;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, stack_bytes());
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    bool here = count == 1 && workers[0].job->nodes->count == 1;
    for (size_t i = 0; i < count && !here && error == 0; i++) {
        error = pthread_create(&workers[i].thread, &attributes, run_pinned, &workers[i]);
        workers[i].is_thread = error == 0;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    size_t without = 0;
    for (size_t i = 0; i < count; i++) {
        if (!workers[i].is_thread) {
            run_here(&workers[i]);
            without++;
        }
    }
    for (size_t i = 0; i < count; i++) {
        if (workers[i].is_thread) {
            pthread_join(workers[i].thread, NULL);
        }
        /* Either one puts the pages on the node. */
        if (workers[i].pin_error != 0 && workers[i].policy_error != 0) {
            placed_error = workers[i].policy_error;
        }
    }
    if (error != 0) {
        ftl_doubt("%s: %zu of %zu threads could not be created: %s: the calling thread did their part: %s", action,
                  without, count, strerror(error),
                  error == EINVAL
                      ? "their stacks are too small for the thread-local variables of the program: make these "
                        "smaller"
                      : "raise RLIMIT_NPROC, pids.max, or the limit of memory (ulimit -v)");
    }
    if (placed_error != 0) {
        ftl_doubt("%s: some threads ran on any node: neither sched_setaffinity nor set_mempolicy was possible: %s: %s",
                  action, strerror(placed_error), ftl_advice(placed_error));
    }
}

static bool count_bytes(void *to_what, uintptr_t from, uintptr_t to, int node, const ftl_sharers *sharers) {
    (void)sharers;
    size_t *bytes = to_what;
    bytes[node] += to - from; /* whole pages: a little more than the range has */
    return true;
}

static size_t cpus_of(const ftl_nodes *nodes, int node) {
    size_t count = 0;
    for (size_t i = 0; i < nodes->cpu_count; i++) {
        count += nodes->cpus[i].node == node;
    }
    return count == 0 ? 1 : count;
}

static size_t threads_for(const ftl_nodes *nodes, int node, size_t bytes) {
    size_t cpus = cpus_of(nodes, node), worth = bytes / MIN_SHARE + 1;
    return bytes == 0 ? 0 : cpus < worth ? cpus : worth;
}

static int run_job(const job *j, const char *action) {
    size_t bytes[FTL_MAX_NODES] = {0};
    size_t count = 0, next = 0;
    ftl_for_pieces(j->partition, j->owners, j->address, j->bytes, ftl_page_bytes(), count_bytes, bytes);
    for (int node = 0; node < FTL_MAX_NODES; node++) {
        count += threads_for(j->nodes, node, bytes[node]);
    }
    worker *workers = calloc(count, sizeof *workers);
    if (workers == NULL) {
        errno = ENOMEM;
        return -1;
    }
    for (int node = 0; node < FTL_MAX_NODES; node++) {
        size_t threads = threads_for(j->nodes, node, bytes[node]);
        for (size_t i = 0; i < threads; i++) {
            size_t share = bytes[node] / threads;
            workers[next++] = (worker){
                .job = j, .node = node, .from = share * i, .to = i + 1 == threads ? SIZE_MAX : share * (i + 1)};
        }
    }
    run_all(workers, count, action);
    free(workers);
    return 0;
}

int ftl_work_parallel(uintptr_t address, size_t bytes, const ft_partition *partition, ftl_work_fn *work,
                      const void *argument, const char *action) {
    const ftl_nodes *nodes = ftl_nodes_get();
    job j = {nodes, partition, NULL, address, bytes, partition->kind == FT_INTERLEAVED, work, argument};
    ftl_owners owners;
    ft_partition by_cpu = ft_blocked(nodes->cpu_count);
    if (ftl_has_owners(partition)) {
        if (ftl_owners_of(partition, nodes, &owners) != 0) {
            return -1;
        }
    } else {
        /* Nobody owns a part: each CPU takes as much. */
        owners = (ftl_owners){.parts = nodes->cpu_count, .nodes = nodes};
        j.partition = &by_cpu;
    }
    j.owners = &owners;
    /* Pages in turn have no borders. */
    bool is_in_turn = partition != NULL && partition->kind == FT_INTERLEAVED;
    ftl_small_pages_at_borders(is_in_turn ? partition : j.partition, &owners, address, bytes);
    int result = run_job(&j, action);
    ftl_owners_release(&owners);
    return result;
}

void ftl_work_on_nodes(const ftl_nodes *nodes, size_t first, ftl_work_fn *work, const void *argument,
                       const char *action) {
    job j = {.nodes = nodes, .work = work, .argument = argument};
    size_t count = nodes->count - first;
    worker *workers = count == 0 ? NULL : calloc(count, sizeof *workers);
    if (workers == NULL) {
        for (size_t i = first; i < nodes->count; i++) {
            work(argument, i, i + 1);
        }
        return;
    }
    for (size_t i = 0; i < count; i++) {
        workers[i] = (worker){.job = &j, .node = nodes->number[first + i], .from = first + i, .to = first + i + 1};
    }
    run_all(workers, count, action);
    free(workers);
}

/* ---- Zeroing and copying ---- */

typedef struct copy {
    unsigned char *to;
    const unsigned char *from;
} copy;

static void zero_bytes(const void *argument, size_t from, size_t to) {
    const copy *c = argument;
    memset(c->to + from, 0, to - from);
}

static void copy_bytes(const void *argument, size_t from, size_t to) {
    const copy *c = argument;
    memcpy(c->to + from, c->from + from, to - from);
}

static bool is_range(const void *pointer, size_t bytes) {
    return bytes <= PTRDIFF_MAX && (bytes == 0 || pointer != NULL) && (uintptr_t)pointer <= UINTPTR_MAX - bytes;
}

static int in_parallel(const copy *c, size_t bytes, const ft_partition *partition, ftl_work_fn *work,
                       const char *action) {
    ft_partition local = ft_local();
    partition = partition == NULL ? &local : partition;
    if (!is_range(c->to, bytes) || partition->kind == FT_REPLICATED || ftl_check(partition) != 0) {
        errno = EINVAL;
        return -1;
    }
    return bytes == 0 ? 0 : ftl_work_parallel((uintptr_t)c->to, bytes, partition, work, c, action);
}

int ft_zero_parallel(void *pointer, size_t bytes, const ft_partition *partition) {
    copy c = {pointer, NULL};
    return in_parallel(&c, bytes, partition, zero_bytes, "ft_zero_parallel");
}

int ft_copy_parallel(void *to, const void *from, size_t bytes, const ft_partition *partition) {
    copy c = {to, from};
    uintptr_t a = (uintptr_t)to, b = (uintptr_t)from;
    if (!is_range(from, bytes) || !is_range(to, bytes) || (bytes > 0 && a < b + bytes && b < a + bytes)) {
        errno = EINVAL;
        return -1;
    }
    return in_parallel(&c, bytes, partition, copy_bytes, "ft_copy_parallel");
}
