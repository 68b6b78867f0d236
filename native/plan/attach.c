/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * The constructor maps the table and validates it; the destructor reports.
 */
#include "plan.h"
#include "../preload/hold.h"
#include "../preload/unwind.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

struct ft_plan ft_plan;
size_t ft_min_size = SIZE_MAX;
static char table_path[256];

static bool is_within(uint64_t first, uint64_t count, uint64_t all) {
    return first <= all && count <= all - first;
}

/* Checks every index once, so that no other code has to. */
static bool is_valid(const struct ft_plan *plan) {
    const struct ft_plan_header *header = plan->header;
    for (uint32_t i = 0; i < header->entries; i++) {
        const struct ft_plan_entry *entry = &plan->entries[i];
        if (!is_within(entry->first_frame, entry->frames, header->frames) ||
            !is_within(entry->first_part, entry->parts, header->parts) || entry->rows == 0 ||
            !(entry->period_bytes >= 0 && entry->period_bytes < 1e18) || entry->name[sizeof entry->name - 1] != '\0' ||
            (entry->module >= header->modules && entry->module != 0)) {
            return false;
        }
    }
    for (uint32_t i = 0; i < header->frames; i++) {
        const struct ft_plan_frame *frame = &plan->frames[i];
        if (!is_within(frame->first_range, frame->ranges, header->ranges) ||
            (frame->module >= header->modules && frame->module != UINT32_MAX)) {
            return false;
        }
    }
    return header->entries <= FT_ENTRIES_MAX;
}

static bool lay_out(struct ft_plan *plan, void *table, size_t bytes) {
    struct ft_plan_header *header = table;
    if (bytes < sizeof *header || header->magic != FT_PLAN_MAGIC || header->version != FT_PLAN_VERSION ||
        header->bytes != bytes) {
        return false;
    }
    uint64_t at = sizeof *header;
    uint64_t modules = at;
    uint64_t entries = modules + (uint64_t)header->modules * sizeof *plan->modules;
    uint64_t frames = entries + (uint64_t)header->entries * sizeof *plan->entries;
    uint64_t ranges = frames + (uint64_t)header->frames * sizeof *plan->frames;
    uint64_t parts = ranges + (uint64_t)header->ranges * sizeof *plan->ranges;
    if (parts + (uint64_t)header->parts * sizeof *plan->parts != bytes) {
        return false;
    }
    char *base = table;
    plan->header = header;
    plan->modules = (const void *)(base + modules);
    plan->entries = (void *)(base + entries);
    plan->frames = (const void *)(base + frames);
    plan->ranges = (const void *)(base + ranges);
    plan->parts = (const void *)(base + parts);
    return is_valid(plan);
}

static void attach(const char *path) {
    int file = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    struct stat status;
    if (file < 0) {
        return;
    }
    if (fstat(file, &status) == 0 && S_ISREG(status.st_mode) && status.st_uid == geteuid() && status.st_size > 0) {
        size_t bytes = (size_t)status.st_size;
        ft_hold(file);
        void *table = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
        struct ft_plan plan = {0};
        if (table != MAP_FAILED && lay_out(&plan, table, bytes)) {
            plan.page_bytes = (size_t)sysconf(_SC_PAGESIZE);
            ft_plan = plan;
        } else if (table != MAP_FAILED) {
            munmap(table, bytes);
        }
    }
    close(file);
}

/* getenv finds nothing yet: the C library is not initialised. */
static const char *variable(char **environment) {
    size_t bytes = sizeof FT_PLAN_ENV - 1;
    for (; environment != NULL && *environment != NULL; environment++) {
        if (strncmp(*environment, FT_PLAN_ENV, bytes) == 0 && (*environment)[bytes] == '=') {
            return *environment + bytes + 1;
        }
    }
    return NULL;
}

static void before_fork(void) {
    __atomic_fetch_add(&ft_plan.header->forking, 1, __ATOMIC_RELAXED);
}

static void after_fork_in_child(void) {
    struct ft_plan_header *header = ft_plan.header;
    uint32_t number = __atomic_fetch_add(&header->forked, 1, __ATOMIC_RELAXED);
    __atomic_store_n(&header->child[number % FT_PLAN_CHILDREN], (uint32_t)getpid(), __ATOMIC_RELAXED);
}

/* Runs before main, and before the constructors of other libraries (-z initfirst). */
__attribute__((constructor)) static void construct(int count, char **arguments, char **environment) {
    (void)count, (void)arguments;
    int saved_errno = errno;
    const char *path = variable(environment);
    if (path != NULL && path[0] == '/' && strlen(path) < sizeof table_path) {
        memcpy(table_path, path, strlen(path) + 1);
        Dl_info library;
        if (dladdr(&ft_plan, &library) != 0 && library.dli_fname != NULL) {
            ft_hold_path(library.dli_fname, mmap); /* our own mmap, which places nothing yet */
        }
        attach(path);
    }
    if (ft_plan.header != NULL) {
        ft_report_prepare();
        (void)pthread_atfork(before_fork, NULL, after_fork_in_child);
        ft_unwind_prepare();
        ft_modules_refresh();
        ft_policy_prepare();
        ft_place_statics();
        __atomic_store_n(&ft_min_size, (size_t)ft_plan.header->min_size, __ATOMIC_RELEASE);
    }
    errno = saved_errno;
}

static bool is_sandboxed;

/* Also called by _exit, because some programs (shells) end without running destructors. */
void ft_end(void) {
    static bool is_reported;
    if (ft_plan.header != NULL && !__atomic_load_n(&is_sandboxed, __ATOMIC_RELAXED) &&
        ft_plan.header->root == (uint32_t)getpid() && !__atomic_exchange_n(&is_reported, true, __ATOMIC_RELAXED)) {
        int saved_errno = errno;
        bool is_left = ft_leaves_processes();
        ft_report(is_left);
        if (!is_left) {
            /* A program that such a process starts would not find it. */
            (void)unlink(table_path);
        }
        errno = saved_errno;
    }
}

void ft_enter_sandbox(void) {
    if (ft_plan.header != NULL) {
        ft_end();
        __atomic_store_n(&is_sandboxed, true, __ATOMIC_RELAXED);
        /* The filter stays in force after exec. */
        (void)unsetenv(FT_PLAN_ENV);
    }
}

__attribute__((destructor)) static void end(void) {
    ft_end();
}
