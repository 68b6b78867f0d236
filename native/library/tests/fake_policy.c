/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "fake_policy.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define PAGE ((uintptr_t)4096)
#define GROUP (512 * PAGE)
#define MAX_PAGES ((size_t)1 << 16)
#define MAX_POLICIES 8192

const char *fake_root;
int fake_refused;
size_t fake_mbinds;
_Thread_local int fake_cpu;

typedef struct fake_page {
    uintptr_t at;
    int node;
    bool is_huge;
} fake_page;

static struct {
    uintptr_t from, to;
    enum ftl_mode mode;
    ftl_node_set nodes;
} policies[MAX_POLICIES];
static size_t policy_count;
static fake_page pages[MAX_PAGES]; /* at == 0: free */
static size_t page_count;
static _Thread_local ftl_thread_policy own;

void fake_reset(void) {
    policy_count = page_count = fake_mbinds = 0;
    fake_refused = 0;
    memset(pages, 0, sizeof pages);
}

static fake_page *page_at(uintptr_t at) {
    size_t slot = at / PAGE * 40503 % MAX_PAGES;
    while (pages[slot].at != 0 && pages[slot].at != at) {
        slot = (slot + 1) % MAX_PAGES;
    }
    return &pages[slot];
}

int fake_node(const void *at) {
    fake_page *page = page_at((uintptr_t)at / PAGE * PAGE);
    return page->at == 0 ? -1 : page->node;
}

static int node_by(enum ftl_mode mode, const ftl_node_set *nodes, uintptr_t at) {
    int in_set[FTL_MAX_NODES];
    size_t count = 0;
    for (size_t node = 0; mode != FTL_DEFAULT && node < FTL_MAX_NODES; node++) {
        if (ftl_is_set(nodes->words, node)) {
            in_set[count++] = (int)node;
        }
    }
    return count == 0 ? ftl_nodes_get()->node_of_cpu[fake_cpu] : in_set[mode == FTL_INTERLEAVE ? at / PAGE % count : 0];
}

int fake_thread_node(void) {
    return node_by((enum ftl_mode)own.mode, &own.nodes, 0);
}

static int node_for_new(uintptr_t at) {
    for (size_t i = policy_count; i-- > 0;) {
        if (policies[i].from <= at && at < policies[i].to) {
            if (policies[i].mode == FTL_DEFAULT) {
                break;
            }
            return node_by(policies[i].mode, &policies[i].nodes, at);
        }
    }
    return node_by((enum ftl_mode)own.mode, &own.nodes, at);
}

static void touch_page(uintptr_t at, bool is_huge) {
    fake_page *page = page_at(at);
    if (page->at == 0 && page_count < MAX_PAGES / 2) {
        page_count++;
        *page = (fake_page){at, node_for_new(is_huge ? at / GROUP * GROUP : at), is_huge};
    }
}

void fake_touch(const void *from, size_t bytes, bool huge) {
    uintptr_t begin = (uintptr_t)from / PAGE * PAGE, end = (uintptr_t)from + bytes;
    for (uintptr_t at = begin; at < end; at += PAGE) {
        touch_page(at, huge && at / GROUP * GROUP >= begin && at / GROUP * GROUP + GROUP <= end);
    }
}

static int refuse(void) {
    errno = fake_refused;
    return fake_refused != 0 ? -1 : 0;
}

int ftl_set_range_policy(uintptr_t from, uintptr_t to, enum ftl_mode mode, const ftl_node_set *nodes) {
    fake_mbinds++;
    if (refuse() != 0) {
        return -1;
    }
    if (from % PAGE != 0 || to % PAGE != 0 || from >= to || policy_count == MAX_POLICIES) {
        errno = EINVAL;
        return -1;
    }
    policies[policy_count].from = from;
    policies[policy_count].to = to;
    policies[policy_count].mode = mode;
    policies[policy_count++].nodes = mode == FTL_DEFAULT ? (ftl_node_set){{0}} : *nodes;
    return 0;
}

int ftl_get_thread_policy(ftl_thread_policy *policy) {
    *policy = own;
    return refuse();
}

int ftl_restore_thread_policy(const ftl_thread_policy *policy) {
    own = *policy;
    return refuse();
}

int ftl_set_thread_policy(enum ftl_mode mode, const ftl_node_set *nodes) {
    own.mode = (int)mode;
    own.nodes = mode == FTL_DEFAULT ? (ftl_node_set){{0}} : *nodes;
    return refuse();
}

int ftl_query_pages(void **at, int *nodes, size_t count) {
    for (size_t i = 0; i < count; i++) {
        int node = fake_node(at[i]);
        nodes[i] = node < 0 ? -ENOENT : node;
    }
    return refuse();
}

/* A huge page moves as a whole, with the first page that is asked for; the others of one call are busy. */
int ftl_move_pages(void **at, const int *nodes, int *status, size_t count) {
    uintptr_t busy = 0;
    if (refuse() != 0) {
        return -1;
    }
    for (size_t i = 0; i < count; i++) {
        fake_page *page = page_at((uintptr_t)at[i]);
        status[i] = -ENOENT;
        if (page->at == 0 || (page->is_huge && page->at / GROUP == busy)) {
            status[i] = page->at == 0 ? -ENOENT : -EBUSY;
            continue;
        }
        if (!page->is_huge) {
            page->node = status[i] = nodes[i];
            continue;
        }
        busy = page->at / GROUP;
        for (uintptr_t other = busy * GROUP; other < (busy + 1) * GROUP; other += PAGE) {
            page_at(other)->node = nodes[i];
        }
        status[i] = nodes[i];
    }
    return 0;
}

int ftl_allowed_nodes(ftl_node_set *nodes) {
    memset(nodes, 0xff, sizeof *nodes);
    return 0;
}

int ftl_allowed_cpus(ftl_cpu_set *cpus, bool *is_guess) {
    (void)cpus;
    *is_guess = getenv("FAKE_GUESS") != NULL;
    return -1; /* all of the machine */
}

int ftl_pin_thread(const ftl_cpu_set *cpus) {
    for (int cpu = FTL_MAX_CPUS; cpu-- > 0;) {
        if (ftl_is_set(cpus->words, (size_t)cpu)) {
            fake_cpu = cpu;
        }
    }
    return 0;
}

int ftl_current_cpu(void) {
    return fake_cpu;
}

const char *ftl_system_root(void) {
    return fake_root != NULL ? fake_root : getenv("FAKE_ROOT");
}

void ftl_split_huge(uintptr_t at) {
    for (uintptr_t other = at / GROUP * GROUP; other < (at / GROUP + 1) * GROUP; other += PAGE) {
        page_at(other)->is_huge = false;
    }
}

int ftl_populate(uintptr_t from, uintptr_t to) {
    fake_touch((void *)from, to - from, false);
    return 0;
}

bool ftl_knows_populate(void) {
    return true;
}

bool ftl_is_mapped(uintptr_t from, uintptr_t to) {
    (void)from;
    (void)to;
    return true;
}

bool ftl_is_writable(uintptr_t from, uintptr_t to) {
    return ftl_is_mapped(from, to);
}

size_t ftl_page_bytes(void) {
    return PAGE;
}
