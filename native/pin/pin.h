/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * Internals of the pin library, which `firsttouch run` preloads: it decides on which CPU each thread of a program
 * runs. It has nothing of the profiler's agent in it and needs nothing but the C library.
 *
 * Build (gcc or clang):
 *
 *   cc -std=c11 -O2 -g -fPIC -shared -fvisibility=hidden -ftls-model=initial-exec -Wall -Wextra -Werror
 *      -o libfirsttouch_pin.so *.c -Wl,-z,now -Wl,-z,relro -Wl,-soname,libfirsttouch_pin.so
 *
 *   -O2  the start of a thread must not leave a frame of ours behind: it relies on a sibling call.
 *
 * Its variables stay in the environment, so that the programs a script starts are placed as well, each process from the
 * first CPU on:
 *
 *   FIRSTTOUCH_PIN=0,2,4-7      the CPU of the first thread, the second, ...; after the last, from the first again
 *   FIRSTTOUCH_PIN_SKIP=1,3     threads by order of creation (the first a process creates is 1) that are left alone
 */
#ifndef FIRSTTOUCH_PIN_H
#define FIRSTTOUCH_PIN_H

#define FT_INTERPOSED(X) FT_START_FUNCTIONS(X)
#include "../preload/interpose.h"

#define FT_PIN_ENV "FIRSTTOUCH_PIN"
#define FT_PIN_SKIP_ENV "FIRSTTOUCH_PIN_SKIP"

#pragma GCC visibility push(hidden)

/* pin.c */
bool ft_is_pinning(void);
/* The turn of a thread about to be created that runs `routine`: an index of its CPU, or -1 if it is left alone. */
int ft_take_turn(void *(*routine)(void *), const pthread_attr_t *attributes);
void ft_pin_this_thread(int turn);
/* Around what starts another program: that one may use all CPUs of the list. */
bool ft_widen(void);
void ft_narrow(bool was_widened);

#pragma GCC visibility pop

#endif
