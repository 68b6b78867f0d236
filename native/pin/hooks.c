/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * The hooks: functions that create threads, and functions that start other programs. Each forwards its call.
 */
#include "pin.h"
#include "../preload/thread_start.h"

#include <errno.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <threads.h>
#include <unistd.h>

extern char **environ;

/* Passed from creator to thread. When all slots are held, threads are not pinned. */
#define STARTS 1024u
static struct start {
    uint32_t held;
    struct ft_numbers numbers;
    void *(*routine)(void *);
    void *argument;
} starts[STARTS];

static struct start *take_start(void) {
    static uint32_t next;
    return ft_take_slot(starts, sizeof *starts, STARTS, &next);
}

static FT_NOINLINE struct start begin_thread(struct start *shared) {
    struct start start = *shared;
    ft_release_slot(&shared->held);
    ft_begin_thread(start.numbers);
    return start;
}

/* Ends in a jump to the program's routine: none of our frames is left for return, pthread_exit and cancellation to unwind. */
static void *start_thread(void *start) {
    struct start own = begin_thread(start);
    return own.routine(own.argument);
}

FT_EXPORT int pthread_create(pthread_t *restrict thread, const pthread_attr_t *restrict attributes,
                             void *(*routine)(void *), void *restrict argument) {
    if (!ft_is_pinning()) {
        return FT_REAL(pthread_create)(thread, attributes, routine, argument);
    }
    struct ft_numbers numbers = ft_choose_cpu(routine, attributes);
    struct start *start = numbers.has_end || numbers.cpu_index >= 0 ? take_start() : NULL;
    if (start != NULL) {
        start->numbers = numbers;
        start->routine = routine;
        start->argument = argument;
    }
    /* A thread that is not pinned may run on all CPUs of the list, not only on its creator's. */
    bool widened = (start == NULL || numbers.cpu_index < 0) && ft_widen();
    int error = start != NULL ? FT_REAL(pthread_create)(thread, attributes, start_thread, start)
                              : FT_REAL(pthread_create)(thread, attributes, routine, argument);
    ft_narrow(widened);
    if (error != 0) {
        ft_give_back(numbers);
    } else if (start == NULL) {
        ft_give_back((struct ft_numbers){.turn = numbers.turn});
    }
    if (error != 0 && start != NULL) {
        ft_release_slot(&start->held);
    }
    return error;
}

/* C11 threads: the C library's thrd_create does not call the interposed pthread_create. */
FT_EXPORT int thrd_create(thrd_t *thread, thrd_start_t routine, void *argument) {
    pthread_t handle;
    /* In glibc a thrd_t is a pthread_t, and thrd_join reads the result of the routine as an integer. */
    int error = pthread_create(&handle, NULL, (void *(*)(void *))(uintptr_t)routine, argument);
    if (error == 0) {
        *thread = handle;
    }
    return error == 0 ? thrd_success : error == ENOMEM ? thrd_nomem : thrd_error;
}

/* The new program may use all CPUs of the list, and pins its own threads from the first one on. The widened thread waits
 * meanwhile and does not run elsewhere. (A vfork child that calls exec has its own affinity mask.) */
FT_EXPORT int posix_spawn(pid_t *restrict child, const char *restrict path,
                          const posix_spawn_file_actions_t *restrict actions,
                          const posix_spawnattr_t *restrict attributes, char *const arguments[restrict],
                          char *const environment[restrict]) {
    bool widened = ft_widen();
    int error = FT_REAL(posix_spawn)(child, path, actions, attributes, arguments, environment);
    ft_narrow(widened);
    return error;
}

FT_EXPORT int posix_spawnp(pid_t *restrict child, const char *restrict file,
                           const posix_spawn_file_actions_t *restrict actions,
                           const posix_spawnattr_t *restrict attributes, char *const arguments[restrict],
                           char *const environment[restrict]) {
    bool widened = ft_widen();
    int error = FT_REAL(posix_spawnp)(child, file, actions, attributes, arguments, environment);
    ft_narrow(widened);
    return error;
}

static void narrow(void *was_widened) {
    ft_narrow(*(bool *)was_widened);
}

/* system is a cancellation point. */
FT_EXPORT int system(const char *command) {
    bool widened = ft_widen();
    int status;
    pthread_cleanup_push(narrow, &widened);
    status = FT_REAL(system)(command);
    pthread_cleanup_pop(1);
    return status;
}

FT_EXPORT FILE *popen(const char *command, const char *mode) {
    bool widened = ft_widen();
    FILE *stream = FT_REAL(popen)(command, mode);
    ft_narrow(widened);
    return stream;
}

FT_EXPORT int execve(const char *path, char *const arguments[], char *const environment[]) {
    bool widened = ft_widen();
    int error = FT_REAL(execve)(path, arguments, environment);
    ft_narrow(widened);
    return error;
}

FT_EXPORT int execv(const char *path, char *const arguments[]) {
    return execve(path, arguments, environ);
}

FT_EXPORT int execvpe(const char *file, char *const arguments[], char *const environment[]) {
    bool widened = ft_widen();
    int error = FT_REAL(execvpe)(file, arguments, environment);
    ft_narrow(widened);
    return error;
}

FT_EXPORT int execvp(const char *file, char *const arguments[]) {
    return execvpe(file, arguments, environ);
}
