/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * Debug exceptions without a cause. firsttouch's watchpoints are debug registers; a hit raises a debug exception, whose cause the
 * kernel reads from DR6. Some hypervisors lose it: KVM on Intel processors, before Linux 6.14, may load an older DR6 between the
 * exception and the guest's reading of it ("KVM: x86: Load DR6 with guest value only before entering .vcpu_run() loop",
 * CVE-2025-21839). The kernel takes an exception without a cause for the instruction int1, and sends SIGTRAP, which ends the program.
 *
 * Where that may happen, this handler holds such signals back. All others have the effect that they would have had without it. It is
 * there only as long as the program leaves SIGTRAP alone: as soon as it installs a handler of its own, or enters a sandbox, the default is
 * back, and firsttouch sets no further watchpoints.
 */
#include "agent.h"

#include "signals.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#if defined(__x86_64__)

#define INT1 0xf1u

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

static void on_trap(int number, siginfo_t *info, void *context);

/* Is the handler in place? A child of vfork has dispositions of its own, and our memory: only the kernel knows. */
static bool is_in_place(void) {
    struct ft_kernel_action now;
    return ft_raw_call(SYS_rt_sigaction, SIGTRAP, 0, (long)&now, sizeof now.mask) == 0 && now.handler == on_trap;
}

static void leave(void) {
    struct ft_kernel_action none = {0};
    ft_raw_call(SYS_rt_sigaction, SIGTRAP, (long)&none, 0, sizeof none.mask);
    __atomic_store_n(&ft_agent.ring->trap_handler_replaced, 1, __ATOMIC_RELAXED);
}

static void on_trap(int number, siginfo_t *info, void *context) {
    int saved_errno = errno;
    if (is_without_cause(info, context)) {
        __atomic_fetch_add(&ft_agent.ring->causeless_traps, 1, __ATOMIC_RELAXED);
    } else {
        /* Again, when this handler returns, with the default effect. */
        leave();
        ft_raw_call(SYS_rt_tgsigqueueinfo, getpid(), ft_raw_call(SYS_gettid, 0, 0, 0, 0), number, (long)info);
    }
    errno = saved_errno;
}

static bool is_used;

void ft_trap_prepare(void) {
    struct ft_kernel_action now, ours = ft_action(on_trap);
    if ((ft_agent.ring->flags & FT_FLAG_GUARD_TRAPS) != 0 &&
        ft_raw_call(SYS_rt_sigaction, SIGTRAP, 0, (long)&now, sizeof now.mask) == 0 && now.handler == NULL) {
        is_used = ft_raw_call(SYS_rt_sigaction, SIGTRAP, (long)&ours, 0, sizeof ours.mask) == 0;
    }
}

void ft_trap_check(void) {
    if (is_used && __atomic_load_n(&ft_agent.ring->trap_handler_replaced, __ATOMIC_RELAXED) == 0 && !is_in_place()) {
        __atomic_store_n(&ft_agent.ring->trap_handler_replaced, 1, __ATOMIC_RELAXED);
    }
}

void ft_trap_leave(void) {
    if (is_used && is_in_place()) {
        leave();
    }
}

static inline void leave_to(int number) {
    if (ft_unlikely(number == SIGTRAP)) {
        ft_trap_leave();
    }
}

/* A query is answered as if the handler were not there. */
FT_EXPORT int sigaction(int number, const struct sigaction *action, struct sigaction *old) {
    if (action != NULL) {
        leave_to(number);
    }
    int result = FT_REAL(sigaction)(number, action, old);
    if (ft_unlikely(number == SIGTRAP) && is_used && result == 0 && old != NULL && old->sa_sigaction == on_trap) {
        memset(old, 0, sizeof *old);
    }
    return result;
}

#define FT_HOOK(name)                                                           \
    FT_EXPORT ft_signal_handler *name(int number, ft_signal_handler *handler);  \
    FT_EXPORT ft_signal_handler *name(int number, ft_signal_handler *handler) { \
        leave_to(number);                                                       \
        return FT_REAL(name)(number, handler);                                  \
    }
FT_SIGNAL_LIKE_FUNCTIONS(FT_HOOK)

#else

void ft_trap_prepare(void) {}
void ft_trap_check(void) {}
void ft_trap_leave(void) {}

#endif
