/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * Programs that enter a sandbox. Under a seccomp filter any of our system calls may kill the process; in strict mode or after
 * PR_SET_TSC even reading the clock may. A process cannot ask what its filter allows, so the agent goes silent before one is
 * set, in the process and its children, for good, and reports that to firsttouch. A filter that was set before the program
 * started, as in containers, applies to firsttouch too and changes nothing.
 */
#include "agent.h"

#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

struct silenced {
    bool was_sandboxed;
    size_t min_size;
};

static struct silenced silence(void) {
    struct silenced before = {.was_sandboxed = __atomic_exchange_n(&ft_agent.sandboxed, true, __ATOMIC_ACQ_REL)};
    before.min_size = __atomic_exchange_n(&ft_wiped.min_size, 0, __ATOMIC_ACQ_REL);
    ft_sample_pause();
    ft_trap_leave();
    return before;
}

/* A sandbox that was not set, as when a library probes what the kernel supports, changes nothing. */
static void settle(struct silenced before, bool is_set) {
    if (!is_set && !before.was_sandboxed) {
        __atomic_store_n(&ft_agent.sandboxed, false, __ATOMIC_RELEASE);
        __atomic_store_n(&ft_wiped.min_size, before.min_size, __ATOMIC_RELEASE);
        ft_sample_resume();
    } else if (is_set && before.min_size != 0) {
        __atomic_fetch_or(&ft_agent.ring->silent, FT_SILENT_SANDBOX, __ATOMIC_RELAXED);
    }
}

static bool prctl_sandboxes(int option, unsigned long argument) {
    return option == PR_SET_SECCOMP || (option == PR_SET_TSC && argument == PR_TSC_SIGSEGV);
}

static FT_NOINLINE int prctl_silently(int option, unsigned long a, unsigned long b, unsigned long c, unsigned long d) {
    struct silenced before = silence();
    int result = FT_REAL(prctl)(option, a, b, c, d);
    settle(before, result == 0);
    return result;
}

FT_EXPORT int ft_hooked_prctl(int option, unsigned long a, unsigned long b, unsigned long c, unsigned long d) {
    if (ft_unlikely(prctl_sandboxes(option, a))) {
        return prctl_silently(option, a, b, c, d);
    }
    return FT_REAL(prctl)(option, a, b, c, d);
}

static bool syscall_sandboxes(long number, long a, long b) {
    return (number == SYS_seccomp && (a == SECCOMP_SET_MODE_STRICT || a == SECCOMP_SET_MODE_FILTER)) ||
           (number == SYS_prctl && prctl_sandboxes((int)a, (unsigned long)b));
}

/* The two system calls that can set a sandbox. They have at most five arguments. On success they return 0, or a descriptor with
 * SECCOMP_FILTER_FLAG_NEW_LISTENER. (A positive number can also be the thread that made SECCOMP_FILTER_FLAG_TSYNC fail:
 * silence is the safe choice.) */
__attribute__((used)) long ft_syscall_may_sandbox(long number, long a, long b, long c, long d, long e) {
    if (!syscall_sandboxes(number, a, b)) {
        return FT_REAL(syscall)(number, a, b, c, d, e, 0l);
    }
    struct silenced before = silence();
    long result = FT_REAL(syscall)(number, a, b, c, d, e, 0l);
    settle(before, result >= 0);
    return result;
}

/* Those of populate.c are recorded. All other system calls are forwarded by a jump, so that those that return twice or on
 * another stack (vfork, clone) work as without us. On x86-64 in assembly: the seventh argument lies on the stack, and a
 * compiler may write to its slot, which belongs to the caller if it passed fewer. */
#define STRING_OF(text) #text
#define NUMBER_OF(name) STRING_OF(name)
_Static_assert(offsetof(struct ft_real, syscall) == 0, "read by the code below");

#if defined(__x86_64__)
#define JUMP_IF(number, function) "    cmpq $" NUMBER_OF(number) ", %rdi\n    je " #function "\n"
__asm__(".pushsection .text\n"
        ".globl syscall\n"
        ".type syscall, @function\n"
        "syscall:\n"
        "    .cfi_startproc\n"
        "    endbr64\n" JUMP_IF(__NR_seccomp, ft_syscall_may_sandbox) JUMP_IF(__NR_prctl, ft_syscall_may_sandbox)
            JUMP_IF(__NR_mlock, ft_syscall_may_populate) JUMP_IF(__NR_mlock2, ft_syscall_may_populate)
                JUMP_IF(__NR_mlockall, ft_syscall_may_populate) JUMP_IF(__NR_munlockall, ft_syscall_may_populate)
                    JUMP_IF(__NR_madvise, ft_syscall_may_populate) "    movq ft_real(%rip), %rax\n"
                                                                   "    testq %rax, %rax\n"
                                                                   "    jz 1f\n"
                                                                   "    jmp *%rax\n"
                                                                   "1:\n" /* before the constructor */
                                                                   "    pushq %rdi\n"
                                                                   "    pushq %rsi\n"
                                                                   "    pushq %rdx\n"
                                                                   "    pushq %rcx\n"
                                                                   "    pushq %r8\n"
                                                                   "    pushq %r9\n"
                                                                   "    subq $8, %rsp\n"
                                                                   "    .cfi_adjust_cfa_offset 56\n"
                                                                   "    call ft_resolve\n"
                                                                   "    addq $8, %rsp\n"
                                                                   "    popq %r9\n"
                                                                   "    popq %r8\n"
                                                                   "    popq %rcx\n"
                                                                   "    popq %rdx\n"
                                                                   "    popq %rsi\n"
                                                                   "    popq %rdi\n"
                                                                   "    .cfi_adjust_cfa_offset -56\n"
                                                                   "    jmp *ft_real(%rip)\n"
                                                                   "    .cfi_endproc\n"
                                                                   ".size syscall, . - syscall\n"
                                                                   ".popsection\n");
#else
FT_EXPORT long ft_hooked_syscall(long number, long a, long b, long c, long d, long e, long f) __asm__("syscall");

FT_EXPORT long ft_hooked_syscall(long number, long a, long b, long c, long d, long e, long f) {
    if (ft_unlikely(number == SYS_seccomp || number == SYS_prctl)) {
        return ft_syscall_may_sandbox(number, a, b, c, d, e);
    }
    if (ft_unlikely(number == SYS_mlock || number == SYS_mlock2 || number == SYS_mlockall || number == SYS_munlockall ||
                    number == SYS_madvise)) {
        return ft_syscall_may_populate(number, a, b, c, d, e);
    }
    return FT_REAL(syscall)(number, a, b, c, d, e, f);
}
#endif
