/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * Thread creation. The new thread runs start_recorded, which records it and then jumps to the program's start routine. None of
 * our frames stays on the stack for return, pthread_exit and cancellation to unwind.
 */
#include "agent.h"
#include "../preload/thread_start.h"

#include <sys/resource.h>

/* Passed from creator to thread. When all slots are held, threads start unrecorded. */
#define STARTS 1024u
static struct start {
    uint32_t held;
    uint32_t creator;
    void *(*routine)(void *);
    void *argument;
    size_t stack_bytes;
} starts[STARTS];

struct entry {
    void *(*routine)(void *);
    void *argument;
};

static struct start *take_start(void) {
    static uint32_t next;
    return ft_take_slot(starts, sizeof *starts, STARTS, &next);
}

/* glibc puts a thread's descriptor (pthread_self) and static TLS at the high end of its stack, so the stack reaches
 * from the descriptor's end down by its size. Two pages are left out for alignment: a range that is too small is safe. */
static void note_native_stack(size_t stack_bytes) {
#if defined(__GLIBC__)
    uintptr_t descriptor = (uintptr_t)pthread_self();
    uintptr_t low = descriptor + 8192 - stack_bytes;
    uintptr_t here = (uintptr_t)__builtin_frame_address(0);
    uintptr_t tls = (uintptr_t)&ft_thread;
    uintptr_t top = tls < descriptor ? tls : descriptor;
    if (stack_bytes > 16384 && low < here && here < top) {
        ft_thread.native_low = low;
        ft_thread.native_top = top;
    }
#else
    (void)stack_bytes;
#endif
}

/* Nothing but the stack lies within its size limit: the kernel keeps mappings away from there. */
void ft_main_thread_stack(const void *above_stack) {
    struct rlimit limit;
    uintptr_t bytes = 8u << 20;
    if (getrlimit(RLIMIT_STACK, &limit) == 0 && limit.rlim_cur < ((rlim_t)1 << 30)) {
        bytes = (uintptr_t)limit.rlim_cur;
    }
    uintptr_t top = (uintptr_t)above_stack & ~(uintptr_t)7;
    uintptr_t here = (uintptr_t)__builtin_frame_address(0);
    if (here < top && top - here < bytes) {
        ft_thread.native_low = top - bytes;
        ft_thread.native_top = top;
    }
}

static FT_NOINLINE struct entry begin_thread(struct start *shared) {
    struct start start = *shared;
    ft_release_slot(&shared->held);
    note_native_stack(start.stack_bytes);
    if (!ft_silent()) {
        ft_sample_thread();
        ft_record_plain(&(struct ft_record){
            .type = FT_REC_THREAD, .time_ns = ft_now(), .stack_id = (uintptr_t)start.routine, .aux = start.creator});
    }
    return (struct entry){start.routine, start.argument};
}

static void *start_recorded(void *start) {
    struct entry entry = begin_thread(start);
    return entry.routine(entry.argument);
}

static size_t stack_bytes_of(const pthread_attr_t *attributes) {
    pthread_attr_t defaults;
    size_t bytes = 0;
    if (attributes != NULL) {
        return pthread_attr_getstacksize(attributes, &bytes) == 0 ? bytes : 0;
    }
    if (pthread_attr_init(&defaults) == 0) {
        if (pthread_attr_getstacksize(&defaults, &bytes) != 0) {
            bytes = 0;
        }
        pthread_attr_destroy(&defaults);
    }
    return bytes;
}

FT_EXPORT int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*routine)(void *),
                             void *argument) {
    struct start *start = ft_silent() ? NULL : take_start();
    if (start == NULL) {
        return FT_REAL(pthread_create)(thread, attributes, routine, argument);
    }
    start->creator = ft_tid();
    start->routine = routine;
    start->argument = argument;
    start->stack_bytes = stack_bytes_of(attributes);
    int error = FT_REAL(pthread_create)(thread, attributes, start_recorded, start);
    if (error != 0) {
        ft_release_slot(&start->held);
    }
    ft_sample_keep_handler();
    return error;
}
