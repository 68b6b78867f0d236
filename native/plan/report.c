/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * Reports how the plan was applied: one line on standard error at the end of the program that `run` started.
 */
#include "plan.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static struct stat standard_error;
static bool has_standard_error;

void ft_report_prepare(void) {
    has_standard_error = fstat(STDERR_FILENO, &standard_error) == 0;
}

/* The program may have opened a file of its own as descriptor 2. */
static bool is_still_standard_error(void) {
    struct stat now;
    return has_standard_error && fstat(STDERR_FILENO, &now) == 0 && now.st_dev == standard_error.st_dev &&
           now.st_ino == standard_error.st_ino;
}

struct text {
    char bytes[4096];
    size_t used;
};

static void add(struct text *text, const char *words) {
    size_t length = strlen(words);
    if (length < sizeof text->bytes - text->used) {
        memcpy(text->bytes + text->used, words, length);
        text->used += length;
    }
}

static void add_number(struct text *text, uint64_t number) {
    char digits[24];
    size_t at = sizeof digits - 1;
    digits[at] = '\0';
    do {
        digits[--at] = (char)('0' + number % 10);
        number /= 10;
    } while (number != 0);
    add(text, digits + at);
}

/* Adds the names of the entries without an allocation: those whose code is missing from the files, or those whose code is
 * not. */
static uint32_t add_names(struct text *text, const char *heading, bool is_missing) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < ft_plan.header->entries; i++) {
        const struct ft_plan_entry *entry = &ft_plan.entries[i];
        if (entry->matched == 0 && ((entry->flags & FT_PLAN_MISSING) != 0) == is_missing) {
            add(text, count++ == 0 ? heading : ", ");
            add(text, entry->name);
        }
    }
    return count;
}

/* The write must not change how the program ends. Signals that it may raise (SIGPIPE: the reader is gone; SIGXFSZ: the file is
 * at its size limit; SIGTTOU: a background process writes to the terminal) are blocked and consumed. It does not wait for a
 * full pipe. */
static void write_line(const struct text *text) {
    struct pollfd error = {.fd = STDERR_FILENO, .events = POLLOUT};
    if (poll(&error, 1, 0) != 1 || (error.revents & POLLOUT) == 0) {
        return;
    }
    static const int numbers[] = {SIGPIPE, SIGXFSZ, SIGTTOU};
    sigset_t raised, mask_before, pending, pending_before;
    sigemptyset(&raised);
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        sigaddset(&raised, numbers[i]);
    }
    if (sigpending(&pending_before) != 0 || pthread_sigmask(SIG_BLOCK, &raised, &mask_before) != 0) {
        return;
    }
    (void)!write(STDERR_FILENO, text->bytes, text->used);
    if (sigpending(&pending) == 0) {
        for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
            if (sigismember(&pending, numbers[i]) == 1 && sigismember(&pending_before, numbers[i]) == 0) {
                sigset_t one;
                struct timespec now = {0, 0};
                sigemptyset(&one);
                sigaddset(&one, numbers[i]);
                (void)sigtimedwait(&one, NULL, &now);
            }
        }
    }
    (void)pthread_sigmask(SIG_SETMASK, &mask_before, NULL);
}

/* Zombies have ended. */
static bool runs(uint32_t pid) {
    struct text path = {.used = 0};
    add(&path, "/proc/");
    add_number(&path, pid);
    add(&path, "/stat");
    path.bytes[path.used] = '\0';
    int file = open(path.bytes, O_RDONLY | O_CLOEXEC);
    if (file < 0) {
        return false;
    }
    char stat[512];
    ssize_t bytes = read(file, stat, sizeof stat - 1);
    close(file);
    stat[bytes > 0 ? bytes : 0] = '\0';
    const char *name_end = strrchr(stat, ')');
    return name_end != NULL && name_end[1] == ' ' && name_end[2] != 'Z' && name_end[2] != 'X';
}

bool ft_leaves_processes(void) {
    const struct ft_plan_header *header = ft_plan.header;
    for (uint32_t i = 0; i < FT_PLAN_CHILDREN; i++) {
        uint32_t pid = __atomic_load_n(&header->child[i], __ATOMIC_RELAXED);
        if (pid != 0 && pid != header->root && runs(pid)) {
            return true;
        }
    }
    /* A child that was just made may not have entered itself yet. */
    return __atomic_load_n(&header->forking, __ATOMIC_RELAXED) > __atomic_load_n(&header->forked, __ATOMIC_RELAXED);
}

void ft_report(bool is_left) {
    const struct ft_plan_header *header = ft_plan.header;
    if (!is_still_standard_error() || header->entries == 0) {
        return;
    }
    uint32_t matched = 0;
    uint64_t allocations = 0;
    for (uint32_t i = 0; i < header->entries; i++) {
        matched += ft_plan.entries[i].matched != 0;
        allocations += ft_plan.entries[i].matched;
    }
    struct text text = {.used = 0};
    add(&text, "firsttouch: plan: ");
    add_number(&text, matched);
    add(&text, " of ");
    add_number(&text, header->entries);
    add(&text, header->entries == 1 ? " site matched " : " sites matched ");
    add_number(&text, allocations);
    add(&text, allocations == 1 ? " allocation" : " allocations");
    if (!is_left) {
        add_names(&text, "; never seen: ", false);
    } else if (add_names(&text, "; not seen until the first process ended: ", false) > 0) {
        add(&text, " (processes that it left behind still run)");
    }
    add_names(&text, "; not in this program: ", true);
    if (header->refused != 0) {
        add(&text, "; the kernel refused ");
        add_number(&text, header->refused);
        add(&text, header->refused == 1 ? " policy (" : " policies (");
        const char *why = strerrorname_np((int)header->refused_errno);
        add(&text, why != NULL ? why : "?");
        add(&text, ")");
    }
    if (header->is_stopped) {
        add(&text, "; some memory was interleaved or left: the program has nearly as many mappings as vm.max_map_count "
                   "allows");
    }
    add(&text, "\n");
    write_line(&text);
}
