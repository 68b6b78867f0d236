/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * Reports at the end of a process what was placed: one line on standard error, if its program used the trait.
 */
#include "openmp.h"
#include "../preload/last_words.h"

#include <errno.h>
#include <string.h>

static uint64_t placed[HOWS], placed_bytes[HOWS], small_blocks, refused, alone, surplus, unknown;
static int refused_errno;

static void count(uint64_t *counter, uint64_t by) {
    __atomic_fetch_add(counter, by, __ATOMIC_RELAXED);
}

void ft_count_placed(enum how how, size_t bytes) {
    count(&placed[how], 1);
    count(&placed_bytes[how], bytes);
}

void ft_count_small(void) {
    count(&small_blocks, 1);
}

void ft_count_alone(void) {
    count(&alone, 1);
}

void ft_count_surplus(void) {
    count(&surplus, 1);
}

void ft_count_unknown(void) {
    count(&unknown, 1);
}

void ft_count_refused(int error) {
    count(&refused, 1);
    __atomic_store_n(&refused_errno, error, __ATOMIC_RELAXED);
}

static void add_blocks(struct ft_text *text, uint64_t number) {
    ft_add_number(text, number);
    ft_add(text, number == 1 ? " block" : " blocks");
}

static uint32_t parts_said;

static void begin_part(struct ft_text *text) {
    ft_add(text, parts_said++ == 0 ? "" : "; ");
}

/* A forked child says what it did itself. */
static void forget(void) {
    memset(placed, 0, sizeof placed);
    memset(placed_bytes, 0, sizeof placed_bytes);
    small_blocks = refused = alone = surplus = unknown = 0;
}

__attribute__((constructor)) static void begin(void) {
    ft_words_prepare();
    (void)pthread_atfork(NULL, NULL, forget);
}

__attribute__((destructor)) static void end(void) {
    static const char *const names[HOWS] = {"", "nearest", "blocked", "interleaved"};
    int saved_errno = errno;
    struct ft_text text = {.used = 0};
    ft_add(&text, "firsttouch: OpenMP allocators: ");
    for (int how = HOW_NEAREST; how < HOWS; how++) {
        if (placed[how] != 0) {
            begin_part(&text);
            add_blocks(&text, placed[how]);
            ft_add(&text, " (");
            bool is_large = placed_bytes[how] >= (uint64_t)1 << 20;
            ft_add_number(&text, placed_bytes[how] >> (is_large ? 20 : 10));
            ft_add(&text, is_large ? " MiB) placed " : " KiB) placed ");
            ft_add(&text, names[how]);
        }
    }
    if (small_blocks != 0) {
        begin_part(&text);
        add_blocks(&text, small_blocks);
        ft_add(&text, " below 64 KiB left to the runtime");
    }
    if (alone != 0) {
        begin_part(&text);
        add_blocks(&text, alone);
        ft_add(&text, " not placed: this process may use one node only");
    }
    if (surplus != 0) {
        begin_part(&text);
        add_blocks(&text, surplus);
        ft_add(&text, " not placed: more than 4,096 at once");
    }
    if (unknown != 0) {
        begin_part(&text);
        ft_add_number(&text, unknown);
        ft_add(&text, unknown == 1 ? " allocator" : " allocators");
        ft_add(&text, " left to the runtime: more than 256 with the trait at once");
    }
    if (refused != 0) {
        begin_part(&text);
        ft_add(&text, "the kernel refused the policy of ");
        add_blocks(&text, refused);
        const char *why = strerrorname_np(refused_errno);
        ft_add(&text, " (");
        ft_add(&text, why != NULL ? why : "?");
        ft_add(&text, refused_errno == EPERM ? ": a container needs CAP_SYS_NICE for mbind)" : ")");
    }
    ft_add(&text, "\n");
    if (parts_said != 0 && ft_is_still_standard_error()) {
        ft_write_line(&text);
    }
    errno = saved_errno;
}
