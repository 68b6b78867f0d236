/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * Debug exceptions without a cause. firsttouch's watchpoints are debug registers; a hit raises a debug exception, whose cause the
 * kernel reads from DR6. Some hypervisors lose it: KVM on Intel processors, before Linux 6.14, may load an older DR6 between the
 * exception and the guest's reading of it ("KVM: x86: Load DR6 with guest value only before entering .vcpu_run() loop",
 * CVE-2025-21839). The kernel takes an exception without a cause for the instruction int1, and sends SIGTRAP, which ends the program.
 *
 * Where that may happen, this handler holds such signals back. All others have the effect that they would have had without it. A
 * program that calls sigaction or signal (as Fortran's runtime does) sees its own disposition, and gets the signals that are meant for
 * it. From the first of them on, this handler is gone, and firsttouch sets no further watchpoints.
 */
#include "agent.h"

#include "signals.h"

#include <errno.h>
#include <signal.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#if defined(__x86_64__)

#define INT1 0xf1u

static bool is_installed;

/* The program's disposition: the default, or a handler. A write takes the next slot, so that a reader sees a whole one. */
#define KEPT 16u
static struct sigaction kept[KEPT];
static struct sigaction *theirs = &kept[0];
static uint32_t written;

static bool is_int1(const unsigned char *instruction) {
    struct ft_last_readable page = {0};
    return ft_readable(&page, instruction, 1) && *instruction == INT1;
}

/* The return address is behind the instruction, or at it (seen under KVM on an AMD processor). */
static bool is_at_int1(const ucontext_t *context) {
    const unsigned char *returns_to = (const unsigned char *)(uintptr_t)context->uc_mcontext.gregs[REG_RIP];
    return is_int1(returns_to - 1) || is_int1(returns_to);
}

/* int3, single steps and signals of processes have other codes. Under a sandbox nothing may be asked of the kernel. */
static bool is_without_cause(const siginfo_t *info, const ucontext_t *context) {
    return info->si_code == TRAP_HWBKPT || (info->si_code == TRAP_BRKPT && (ft_sandboxed() || !is_at_int1(context)));
}

/* The program's disposition takes the place of this handler. */
static void give_up(const struct sigaction *action) {
    __atomic_store_n(&is_installed, false, __ATOMIC_RELAXED);
    __atomic_store_n(&ft_agent.ring->trap_handler_replaced, 1, __ATOMIC_RELAXED);
    ft_real.sigaction(SIGTRAP, action, NULL);
}

static void on_trap(int number, siginfo_t *info, void *context) {
    int saved_errno = errno;
    if (is_without_cause(info, context)) {
        __atomic_fetch_add(&ft_agent.ring->causeless_traps, 1, __ATOMIC_RELAXED);
    } else {
        /* Again, when this handler returns. */
        give_up(__atomic_load_n(&theirs, __ATOMIC_ACQUIRE));
        ft_raw_call(SYS_rt_tgsigqueueinfo, getpid(), ft_raw_call(SYS_gettid, 0, 0, 0, 0), number, (long)info);
    }
    errno = saved_errno;
}

void ft_trap_prepare(void) {
    struct ft_kernel_action now, ours = ft_action(on_trap);
    if ((ft_agent.ring->flags & FT_FLAG_GUARD_TRAPS) == 0 || ft_real.sigaction == NULL ||
        ft_raw_call(SYS_rt_sigaction, SIGTRAP, 0, (long)&now, sizeof now.mask) != 0 || now.handler != NULL) {
        return;
    }
    is_installed = ft_raw_call(SYS_rt_sigaction, SIGTRAP, (long)&ours, 0, sizeof ours.mask) == 0;
}

void ft_trap_check(void) {
    struct ft_kernel_action now;
    if (__atomic_load_n(&is_installed, __ATOMIC_RELAXED) &&
        ft_raw_call(SYS_rt_sigaction, SIGTRAP, 0, (long)&now, sizeof now.mask) == 0 && now.handler != on_trap) {
        __atomic_store_n(&is_installed, false, __ATOMIC_RELAXED);
        __atomic_store_n(&ft_agent.ring->trap_handler_replaced, 1, __ATOMIC_RELAXED);
    }
}

static FT_NOINLINE int change_theirs(const struct sigaction *action, struct sigaction *old) {
    struct sigaction before = *__atomic_load_n(&theirs, __ATOMIC_ACQUIRE);
    if (action != NULL && action->sa_handler == SIG_IGN) { /* which exec passes on */
        give_up(action);
    } else if (action != NULL) {
        struct sigaction *slot = &kept[__atomic_add_fetch(&written, 1, __ATOMIC_RELAXED) % KEPT];
        *slot = *action;
        __atomic_store_n(&theirs, slot, __ATOMIC_RELEASE);
    }
    if (old != NULL) {
        *old = before;
    }
    return 0;
}

static inline bool is_ours(int number) {
    return ft_unlikely(number == SIGTRAP) && __atomic_load_n(&is_installed, __ATOMIC_RELAXED);
}

FT_EXPORT int sigaction(int number, const struct sigaction *action, struct sigaction *old) {
    return is_ours(number) ? change_theirs(action, old) : FT_REAL(sigaction)(number, action, old);
}

FT_EXPORT ft_signal_handler *signal(int number, ft_signal_handler *handler) {
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART}, old;
    if (!is_ours(number)) {
        return FT_REAL(signal)(number, handler);
    }
    sigaddset(&action.sa_mask, number);
    change_theirs(&action, &old);
    return old.sa_handler;
}

#else

FT_EXPORT int sigaction(int number, const struct sigaction *action, struct sigaction *old) {
    return FT_REAL(sigaction)(number, action, old);
}
FT_EXPORT ft_signal_handler *signal(int number, ft_signal_handler *handler) {
    return FT_REAL(signal)(number, handler);
}
void ft_trap_prepare(void) {}
void ft_trap_check(void) {}

#endif
