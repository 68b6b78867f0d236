/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * The nodes and CPUs that this process may use, from the kernel and from /sys. What cannot be read leaves one node, number 0.
 */
#include "library.h"

#include <ctype.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Reads a small file below root. Returns false if that failed. */
static bool read_text(const char *root, const char *path, char *text, size_t capacity) {
    char full[512];
    if ((size_t)snprintf(full, sizeof full, "%s%s", root, path) >= sizeof full) {
        return false;
    }
    int file = open(full, O_RDONLY | O_CLOEXEC);
    if (file < 0) {
        return false;
    }
    size_t length = 0;
    ssize_t got;
    while (length + 1 < capacity && (got = read(file, text + length, capacity - 1 - length)) > 0) {
        length += (size_t)got;
    }
    close(file);
    text[length] = '\0';
    return length > 0;
}

/* Parses "0-3,8,10-11"; numbers from `limit` on are left out. Returns false for anything else. */
static bool parse_list(const char *text, unsigned long *words, size_t limit) {
    while (isdigit((unsigned char)*text)) {
        char *end;
        unsigned long from = strtoul(text, &end, 10), to = from;
        if (*end == '-' && isdigit((unsigned char)end[1])) {
            to = strtoul(end + 1, &end, 10);
        }
        for (unsigned long i = from; i <= to && i < limit; i++) {
            ftl_set(words, i);
        }
        text = *end == ',' ? end + 1 : end;
    }
    return *text == '\0' || *text == '\n';
}

static bool read_list(const char *root, const char *path, unsigned long *words, size_t limit) {
    char text[4096];
    return read_text(root, path, text, sizeof text) && parse_list(text, words, limit);
}

/* Mems_allowed_list of /proc/self/status: for containers that forbid get_mempolicy. */
static bool read_allowed(const char *root, ftl_node_set *allowed) {
    static const char key[] = "Mems_allowed_list:";
    char text[8192];
    if (!read_text(root, "/proc/self/status", text, sizeof text)) {
        return false;
    }
    const char *line = strstr(text, key);
    if (line == NULL) {
        return false;
    }
    line += sizeof key - 1;
    line += strspn(line, " \t");
    ftl_node_set found = {{0}};
    if (!isdigit((unsigned char)*line) || !parse_list(line, found.words, FTL_MAX_NODES)) {
        return false;
    }
    *allowed = found;
    return true;
}

/* The distances from `node` to the online nodes, in their order. */
static void read_nearest(const char *root, int node, const ftl_node_set *online, ftl_nodes *nodes) {
    char path[80], text[8192];
    snprintf(path, sizeof path, "/sys/devices/system/node/node%d/distance", node);
    nodes->nearest[node] = nodes->number[0];
    if (ftl_node_index(nodes, node) != SIZE_MAX) {
        nodes->nearest[node] = (int16_t)node;
        return;
    }
    if (!read_text(root, path, text, sizeof text)) {
        return;
    }
    const char *at = text;
    unsigned long best = ULONG_MAX;
    for (int other = 0; other < FTL_MAX_NODES; other++) {
        if (!ftl_is_set(online->words, (size_t)other)) {
            continue;
        }
        char *end;
        unsigned long distance = strtoul(at, &end, 10);
        if (end == at) {
            return;
        }
        at = end;
        if (distance < best && ftl_node_index(nodes, other) != SIZE_MAX) {
            best = distance;
            nodes->nearest[node] = (int16_t)other;
        }
    }
}

static int by_node(const void *left, const void *right) {
    const ftl_cpu *a = left, *b = right;
    return a->node != b->node ? a->node - b->node : a->cpu - b->cpu;
}

/* Fills node_of_cpu, and the list of the CPUs that may be used. */
static void read_cpus(const char *root, const ftl_node_set *online, const ftl_cpu_set *cpus, ftl_nodes *nodes) {
    for (size_t cpu = 0; cpu < FTL_MAX_CPUS; cpu++) {
        nodes->node_of_cpu[cpu] = nodes->number[0];
    }
    for (int node = 0; node < FTL_MAX_NODES; node++) {
        if (!ftl_is_set(online->words, (size_t)node)) {
            continue;
        }
        char path[80];
        snprintf(path, sizeof path, "/sys/devices/system/node/node%d/cpulist", node);
        ftl_cpu_set of_node = {{0}};
        if (!read_list(root, path, of_node.words, FTL_MAX_CPUS)) {
            continue;
        }
        for (size_t cpu = 0; cpu < FTL_MAX_CPUS; cpu++) {
            if (ftl_is_set(of_node.words, cpu)) {
                nodes->node_of_cpu[cpu] = nodes->nearest[node];
                if (cpus == NULL) {
                    nodes->cpus[nodes->cpu_count++] = (ftl_cpu){(int16_t)cpu, nodes->nearest[node]};
                }
            }
        }
    }
    for (size_t cpu = 0; cpus != NULL && cpu < FTL_MAX_CPUS; cpu++) {
        if (ftl_is_set(cpus->words, cpu)) {
            nodes->cpus[nodes->cpu_count++] = (ftl_cpu){(int16_t)cpu, nodes->node_of_cpu[cpu]};
        }
    }
    if (nodes->cpu_count == 0) {
        nodes->cpus[nodes->cpu_count++] = (ftl_cpu){0, nodes->node_of_cpu[0]};
    }
    qsort(nodes->cpus, nodes->cpu_count, sizeof nodes->cpus[0], by_node);
}

void ftl_nodes_read(const char *root, const ftl_node_set *allowed, const ftl_cpu_set *cpus, ftl_nodes *nodes) {
    memset(nodes, 0, sizeof *nodes);
    ftl_node_set online = {{0}}, memory = {{0}}, may = {{0}};
    if (!read_list(root, "/sys/devices/system/node/online", online.words, FTL_MAX_NODES)) {
        ftl_set(online.words, 0);
    }
    if (!read_list(root, "/sys/devices/system/node/has_memory", memory.words, FTL_MAX_NODES)) {
        memory = online;
    }
    bool all = false;
    if (allowed != NULL) {
        may = *allowed;
    } else {
        all = !read_allowed(root, &may);
    }
    for (int node = 0; node < FTL_MAX_NODES; node++) {
        bool has_memory = ftl_is_set(memory.words, (size_t)node);
        nodes->machine_count += has_memory;
        if (has_memory && (all || ftl_is_set(may.words, (size_t)node))) {
            nodes->number[nodes->count++] = (int16_t)node;
        }
    }
    if (nodes->count == 0) {
        nodes->number[nodes->count++] = 0;
    }
    if (nodes->machine_count == 0) {
        nodes->machine_count = 1;
    }
    for (int node = 0; node < FTL_MAX_NODES; node++) {
        nodes->nearest[node] = nodes->number[0];
        if (ftl_is_set(online.words, (size_t)node)) {
            read_nearest(root, node, &online, nodes);
        }
    }
    read_cpus(root, &online, cpus, nodes);
    char text[64];
    if (read_text(root, "/sys/kernel/mm/transparent_hugepage/hpage_pmd_size", text, sizeof text)) {
        nodes->huge_bytes = strtoul(text, NULL, 10);
    }
}

const ftl_nodes *ftl_nodes_get(void) {
    static ftl_nodes nodes;
    static atomic_bool is_read;
    if (!atomic_load_explicit(&is_read, memory_order_acquire)) {
        ftl_node_set allowed;
        ftl_cpu_set cpus;
        bool is_guess = false;
        bool knows_nodes = ftl_allowed_nodes(&allowed) == 0;
        bool knows_cpus = ftl_allowed_cpus(&cpus, &is_guess) == 0;
        ftl_lock();
        if (!atomic_load_explicit(&is_read, memory_order_relaxed)) {
            ftl_nodes_read(ftl_system_root(), knows_nodes ? &allowed : NULL, knows_cpus ? &cpus : NULL, &nodes);
            nodes.is_guess = is_guess;
            atomic_store_explicit(&is_read, true, memory_order_release);
        }
        ftl_unlock();
    }
    return &nodes;
}

size_t ftl_node_index(const ftl_nodes *nodes, int number) {
    for (size_t i = 0; i < nodes->count; i++) {
        if (nodes->number[i] == number) {
            return i;
        }
    }
    return SIZE_MAX;
}

int ftl_current_node(const ftl_nodes *nodes) {
    int cpu = ftl_current_cpu();
    return cpu >= 0 && cpu < FTL_MAX_CPUS ? nodes->node_of_cpu[cpu] : nodes->number[0];
}

size_t ft_nodes(int *numbers, size_t capacity) {
    const ftl_nodes *nodes = ftl_nodes_get();
    for (size_t i = 0; numbers != NULL && i < nodes->count && i < capacity; i++) {
        numbers[i] = nodes->number[i];
    }
    return nodes->count;
}
