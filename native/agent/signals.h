/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * Signal handlers by the kernel's own interface: the C library's refuses the signals that it keeps for itself, and may be replaced
 * by the program.
 */
#ifndef FIRSTTOUCH_SIGNALS_H
#define FIRSTTOUCH_SIGNALS_H

#if defined(__x86_64__)

#include <signal.h>
#include <stddef.h>

/* As the kernel has it. `handler` is NULL for the default effect. */
struct ft_kernel_action {
    void (*handler)(int, siginfo_t *, void *);
    unsigned long flags;
    void (*restorer)(void);
    unsigned long mask;
};

/* Neither errno nor our own hook of syscall() is involved. Returns what the kernel returns: a negative error number. */
static inline long ft_raw_call(long number, long a, long b, long c, long d) {
    register long r10 __asm__("r10") = d;
    long result;
    __asm__ volatile("syscall" : "=a"(result) : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10) : "rcx", "r11", "memory");
    return result;
}

/* sample.c: returns from a handler. */
__attribute__((visibility("hidden"))) void ft_restore_from_signal(void);

/* For a handler that runs on the program's alternate stack, if the thread has one, and does not interrupt system calls. */
static inline struct ft_kernel_action ft_action(void (*handler)(int, siginfo_t *, void *)) {
    const unsigned long restorer_is_set = 0x04000000ul;
    return (struct ft_kernel_action){.handler = handler,
                                     .flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK | restorer_is_set,
                                     .restorer = ft_restore_from_signal};
}

#endif

#endif
