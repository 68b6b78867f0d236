/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * Teams: on which node each thread runs, and so which node owns each part of a partition.
 *
 * A team that nobody joined is assumed to be spread over the CPUs of this process in the order of their nodes. That is
 * OMP_PROC_BIND=close for a thread on each CPU, and OMP_PROC_BIND=spread for fewer.
 */
#include "library.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define NOT_JOINED (-1)

typedef struct team {
    size_t threads; /* 0: nobody joined */
    size_t joined;
    int16_t *node; /* NOT_JOINED, or a node's number */
} team;

static team teams[FTL_MAX_TEAMS]; /* under ftl_lock */

static int assumed_node(const ftl_nodes *nodes, size_t thread, size_t threads) {
    /* Without overflow: there are at most 2^20 threads and 2^13 CPUs. */
    return nodes->cpus[thread % threads * nodes->cpu_count / threads].node;
}

int ft_team_join(int number, size_t thread, size_t threads) {
    if (number < 0 || number >= FTL_MAX_TEAMS || threads == 0 || threads > FTL_MAX_PARTS || thread >= threads) {
        errno = EINVAL;
        return -1;
    }
    const ftl_nodes *nodes = ftl_nodes_get();
    int16_t node = (int16_t)ftl_current_node(nodes);
    ftl_lock();
    team *joined = &teams[number];
    if (joined->threads != threads) {
        int16_t *table = malloc(threads * sizeof *table);
        if (table == NULL) {
            ftl_unlock();
            errno = ENOMEM;
            return -1;
        }
        for (size_t i = 0; i < threads; i++) {
            table[i] = NOT_JOINED;
        }
        free(joined->node);
        *joined = (team){threads, 0, table};
    }
    joined->joined += joined->node[thread] == NOT_JOINED;
    joined->node[thread] = node;
    ftl_unlock();
    return 0;
}

size_t ft_team_size(int number) {
    if (number < 0 || number >= FTL_MAX_TEAMS) {
        return 0;
    }
    ftl_lock();
    size_t threads = teams[number].threads;
    ftl_unlock();
    return threads != 0 ? threads : ftl_nodes_get()->cpu_count;
}

int ft_team_node(int number, size_t thread) {
    const ftl_nodes *nodes = ftl_nodes_get();
    if (number < 0 || number >= FTL_MAX_TEAMS) {
        errno = EINVAL;
        return -1;
    }
    int node = NOT_JOINED;
    ftl_lock();
    size_t threads = teams[number].threads;
    if (threads != 0) {
        node = teams[number].node[thread % threads];
    }
    ftl_unlock();
    return node != NOT_JOINED ? node : assumed_node(nodes, thread, threads != 0 ? threads : nodes->cpu_count);
}

/* A copy of the team's table, so that joins during a call do not matter. */
static int copy_table(int number, const ftl_nodes *nodes, ftl_owners *owners, size_t *joined) {
    ftl_lock();
    const team *of = &teams[number];
    *joined = of->joined;
    owners->table_count = of->threads;
    if (of->threads != 0) {
        owners->taken = malloc(of->threads * sizeof *owners->taken);
        if (owners->taken == NULL) {
            ftl_unlock();
            errno = ENOMEM;
            return -1;
        }
        memcpy(owners->taken, of->node, of->threads * sizeof *owners->taken);
    }
    ftl_unlock();
    for (size_t i = 0; i < owners->table_count; i++) {
        if (owners->taken[i] == NOT_JOINED) {
            owners->taken[i] = (int16_t)assumed_node(nodes, i, owners->table_count);
        }
    }
    owners->table = owners->taken;
    return 0;
}

int ftl_owners_of(const ft_partition *partition, const ftl_nodes *nodes, ftl_owners *owners) {
    *owners = (ftl_owners){.parts = partition->parts, .nodes = nodes};
    if (!ftl_has_owners(partition) || partition->kind == FT_BIND) {
        return 0;
    }
    if (partition->unit == FT_NODES) {
        owners->by_node = true;
        owners->parts = partition->parts != 0 ? partition->parts : nodes->count;
        return 0;
    }
    size_t joined = 0;
    if (copy_table(partition->team, nodes, owners, &joined) != 0) {
        return -1;
    }
    size_t threads = owners->table_count;
    if (owners->parts == 0) {
        owners->parts = threads != 0 ? threads : nodes->cpu_count;
    }
    if (nodes->count == 1) {
        return 0;
    }
    if (threads == 0) {
        ftl_doubt(
            "memory is divided for team %d, which no thread has joined: its threads are assumed to run in blocks on "
            "the nodes, "
            "in the order of the nodes' CPUs%s: pin the threads, and call ft_team_join in each of them",
            partition->team,
            nodes->is_guess
                ? " (of the whole cpuset: the environment binds OpenMP's threads, and the mask that the process was "
                  "started with is not known)"
                : "");
    } else if (owners->parts != threads) {
        ftl_doubt("the partition has %zu parts and team %d has %zu threads: part i was given to thread i modulo %zu: "
                  "join the "
                  "team again with %zu threads, or make as many parts as threads",
                  owners->parts, partition->team, threads, threads, owners->parts);
    } else if (joined != threads) {
        ftl_doubt(
            "%zu of the %zu threads of team %d have joined: the others are assumed to run in blocks on the nodes: call "
            "ft_team_join in each thread",
            joined, threads, partition->team);
    }
    return 0;
}

void ftl_owners_release(ftl_owners *owners) {
    free(owners->taken);
    owners->taken = NULL;
}

int ftl_owner(const ftl_owners *owners, size_t part) {
    const ftl_nodes *nodes = owners->nodes;
    if (owners->by_node) {
        return nodes->number[part % nodes->count];
    }
    return owners->table_count != 0 ? owners->table[part % owners->table_count]
                                    : assumed_node(nodes, part, owners->parts);
}
