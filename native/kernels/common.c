/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "kernel.h"

#include <omp.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define HUGE_PAGE ((size_t)2 << 20)

bool ft_options_are_valid(const struct ft_kernel_options *o) {
    const uint64_t most = PTRDIFF_MAX / 64;
    uint64_t elements = 1;
    for (int i = 0; i < 3; i++) {
        if (o->size[i] < 1 || o->size[i] > most / elements) {
            return false;
        }
        elements *= o->size[i];
    }
    return o->iterations >= 1 && o->repetitions >= 1 && o->repetitions <= most && o->threads <= INT32_MAX &&
           o->chunk <= INT32_MAX && o->init <= FT_INIT_BLOCKED && o->schedule <= FT_SCHEDULE_GUIDED &&
           o->form <= FT_FORM_AVX512;
}

int ft_team_size(const struct ft_kernel_options *options) {
    const int wanted = options->threads ? (int)options->threads : omp_get_max_threads();
    int size = 1;
#pragma omp parallel num_threads(wanted)
    {
#pragma omp single
        size = omp_get_num_threads();
    }
    return size;
}

void ft_use_schedule(const struct ft_kernel_options *options) {
    static const omp_sched_t kinds[] = {omp_sched_static, omp_sched_dynamic, omp_sched_guided};
    omp_set_schedule(kinds[options->schedule], (int)options->chunk);
}

void *ft_allocate(size_t bytes, const struct ft_kernel_options *options) {
    const size_t mapped = bytes + HUGE_PAGE;
    char *memory = mmap(NULL, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
        return NULL;
    }
    /* Unmap what lies outside the aligned part. */
    const size_t before = (HUGE_PAGE - (uintptr_t)memory % HUGE_PAGE) % HUGE_PAGE;
    const size_t page = 4096;
    const size_t kept = (bytes + page - 1) / page * page;
    if (before != 0) {
        munmap(memory, before);
    }
    if (mapped - before > kept) {
        munmap(memory + before + kept, mapped - before - kept);
    }
    memory += before;
    /* A kernel without huge pages ignores it. */
    madvise(memory, bytes, options->huge_pages ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
    return memory;
}

void ft_release(void *memory, size_t bytes) {
    if (memory != NULL) {
        munmap(memory, bytes);
    }
}

/* The block of a thread under schedule(static). */
static void static_part(size_t count, size_t threads, size_t thread, size_t *first, size_t *last) {
    const size_t each = count / threads, more = count % threads;
    *first = thread * each + (thread < more ? thread : more);
    *last = *first + each + (thread < more);
}

bool ft_part_to_touch(uint32_t init, size_t count, size_t item_bytes, size_t turn, size_t *first, size_t *last) {
    const size_t threads = (size_t)omp_get_num_threads(), thread = (size_t)omp_get_thread_num();
    if (init == FT_INIT_BLOCKED) {
        const size_t block = item_bytes < HUGE_PAGE ? HUGE_PAGE / item_bytes : 1;
        const size_t start = (turn * threads + thread) * block;
        *first = start;
        *last = start + block < count ? start + block : count;
        return start < count;
    }
    if (init == FT_INIT_SERIAL) {
        *first = 0;
        *last = count;
        return turn == 0 && thread == 0;
    }
    const size_t owner = init == FT_INIT_MISMATCHED ? (thread + (threads + 1) / 2) % threads : thread;
    static_part(count, threads, owner, first, last);
    return turn == 0 && *first < *last;
}

void ft_observe(struct ft_kernel_result *result, const void *memory, size_t bytes, int threads) {
    void *pages[FT_PAGES_SEEN];
    int nodes[FT_PAGES_SEEN];
    for (size_t i = 0; i < FT_PAGES_SEEN; i++) {
        /* The middle of each part. */
        pages[i] = (char *)(uintptr_t)memory + bytes / FT_PAGES_SEEN * i + bytes / FT_PAGES_SEEN / 2;
        nodes[i] = -1;
    }
    /* A query: no target nodes. If it fails, as in containers that forbid the call, the nodes stay unknown. */
    const long error = syscall(SYS_move_pages, 0, (unsigned long)FT_PAGES_SEEN, pages, NULL, nodes, 0);
    for (size_t i = 0; i < FT_PAGES_SEEN; i++) {
        result->page_nodes[i] = (int8_t)(error == 0 && nodes[i] >= 0 && nodes[i] <= INT8_MAX ? nodes[i] : -1);
    }
    for (size_t i = 0; i < sizeof result->cpus / sizeof *result->cpus; i++) {
        result->cpus[i] = 0;
    }
#pragma omp parallel num_threads(threads)
    {
        const int cpu = sched_getcpu();
        if (cpu >= 0 && cpu < 1024) {
#pragma omp atomic
            result->cpus[cpu / 64] |= UINT64_C(1) << (cpu % 64);
        }
    }
}

uint32_t ft_choose_form(uint32_t wanted) {
    uint32_t best = FT_FORM_PORTABLE;
#if defined(__x86_64__)
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
        best = FT_FORM_AVX2;
        if (__builtin_cpu_supports("avx512f")) {
            best = FT_FORM_AVX512;
        }
    }
#endif
    return wanted == FT_FORM_BEST ? best : wanted <= best ? wanted : 0;
}
