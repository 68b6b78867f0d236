/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * Internals of the pin library, which `firsttouch run --pin` preloads: it pins each thread of a program to a CPU. It
 * shares no code with the profiler's agent but the headers of native/preload, and needs only the C library.
 *
 * Build (gcc or clang):
 *
 *   cc -std=c11 -O2 -g -fPIC -shared -fvisibility=hidden -ftls-model=initial-exec -Wall -Wextra -Werror
 *      -o libfirsttouch_pin.so *.c -Wl,-z,now -Wl,-z,relro -Wl,-soname,libfirsttouch_pin.so
 *
 *   -O2  relies on a sibling call: the start of a thread must leave none of our frames on the stack.
 *
 * Its variables stay in the environment, so that programs that a script starts are pinned as well, each process
 * from the first CPU of the list on:
 *
 *   FIRSTTOUCH_PIN=0,2,4-7      the CPUs of the first thread, the second, and so on; after the last the list starts again.
 *                               A new thread takes the lowest place that no living thread holds
 *   FIRSTTOUCH_PIN_SKIP=1,3     threads that are not pinned, by order of creation: 1 is the first that a process creates;
 *                               threads of runtimes are not counted
 *   FIRSTTOUCH_PIN_IDLE=0,2     threads that are not pinned, by number: that of a new thread is the lowest which no living
 *                               thread holds, all counted; 0 is the main thread, which otherwise takes the first CPU
 */
#ifndef FIRSTTOUCH_PIN_H
#define FIRSTTOUCH_PIN_H

#define FT_INTERPOSED(X) FT_START_FUNCTIONS(X)
#include "../preload/interpose.h"

#define FT_PIN_ENV "FIRSTTOUCH_PIN"
#define FT_PIN_SKIP_ENV "FIRSTTOUCH_PIN_SKIP"
#define FT_PIN_IDLE_ENV "FIRSTTOUCH_PIN_IDLE"

#pragma GCC visibility push(hidden)

/* pin.c: these allocate nothing, take no lock, and keep errno, but for ft_choose_cpu. */
/* Is there a valid list of CPUs? */
bool ft_is_pinning(void);
/* What a new thread holds until it ends. */
struct ft_numbers {
    uint32_t birth; /* among all threads */
    uint32_t turn;  /* among those that get a CPU; 0 without one */
    int cpu_index;  /* in the list; -1 if it is not to be pinned */
    bool has_end;   /* whether ft_begin_thread is to be called: then the numbers are free again when it ends */
};
/* The numbers and the CPU of a thread about to be created that runs `routine`. Pins the main thread with the first one that gets
 * a CPU. `attributes` may be NULL. May take the loader's lock (dladdr). Pre-condition: ft_is_pinning(). */
struct ft_numbers ft_choose_cpu(void *(*routine)(void *), const pthread_attr_t *attributes);
/* For a thread that was not created. With `birth` = 0, only the CPU is given back: for one that lives on and is not pinned. */
void ft_give_back(struct ft_numbers numbers);
/* Pre-condition: `numbers` is from ft_choose_cpu; called by the new thread. */
void ft_begin_thread(struct ft_numbers numbers);
/* Call around a call that starts another program, which may use all CPUs of the list. ft_narrow takes the result of
 * ft_widen on the same thread. Callable when nothing is pinned. */
bool ft_widen(void);
void ft_narrow(bool was_widened);

#pragma GCC visibility pop

#endif
