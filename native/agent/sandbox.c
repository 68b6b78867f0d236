/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * Programs that lock themselves in. After a seccomp filter any system call of ours, and in strict mode or after
 * PR_SET_TSC even a look at the clock, may kill the process. What a filter allows cannot be asked, so the agent goes
 * silent in the process and its children before one is set, for good, and tells firsttouch. A filter that was there
 * before the program, as containers have one, has let firsttouch itself run and changes nothing.
 */
#include "agent.h"

#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

struct voice {
    bool was_sandboxed;
    size_t gate;
};

static struct voice fall_silent(void) {
    struct voice voice = {.was_sandboxed = __atomic_exchange_n(&ft_agent.sandboxed, true, __ATOMIC_ACQ_REL)};
    voice.gate = __atomic_exchange_n(&ft_wiped.min_size, 0, __ATOMIC_ACQ_REL);
    return voice;
}

/* A sandbox that could not be set, as when a library tries what the kernel offers, changes nothing. */
static void settle(struct voice voice, bool is_set) {
    if (!is_set && !voice.was_sandboxed) {
        __atomic_store_n(&ft_agent.sandboxed, false, __ATOMIC_RELEASE);
        __atomic_store_n(&ft_wiped.min_size, voice.gate, __ATOMIC_RELEASE);
    } else if (is_set && voice.gate != 0) {
        __atomic_fetch_or(&ft_agent.ring->silent, FT_SILENT_SANDBOX, __ATOMIC_RELAXED);
    }
}

static bool prctl_locks_in(int option, unsigned long argument) {
    return option == PR_SET_SECCOMP || (option == PR_SET_TSC && argument == PR_TSC_SIGSEGV);
}

static FT_NOINLINE int prctl_silently(int option, unsigned long a, unsigned long b, unsigned long c, unsigned long d) {
    struct voice voice = fall_silent();
    int result = FT_REAL(prctl)(option, a, b, c, d);
    settle(voice, result == 0);
    return result;
}

FT_EXPORT int ft_hooked_prctl(int option, unsigned long a, unsigned long b, unsigned long c, unsigned long d) {
    if (ft_unlikely(prctl_locks_in(option, a))) {
        return prctl_silently(option, a, b, c, d);
    }
    return FT_REAL(prctl)(option, a, b, c, d);
}

static bool syscall_locks_in(long number, long a, long b) {
    return (number == SYS_seccomp && (a == SECCOMP_SET_MODE_STRICT || a == SECCOMP_SET_MODE_FILTER)) ||
           (number == SYS_prctl && prctl_locks_in((int)a, (unsigned long)b));
}

/* The two system calls that can lock in, which have no more than five arguments. Set: 0, or with
 * SECCOMP_FILTER_FLAG_NEW_LISTENER a descriptor. (A positive number can also be the thread that kept
 * SECCOMP_FILTER_FLAG_TSYNC from being done: silence is the safe side.) */
__attribute__((used)) long ft_syscall_may_lock_in(long number, long a, long b, long c, long d, long e) {
    if (!syscall_locks_in(number, a, b)) {
        return FT_REAL(syscall)(number, a, b, c, d, e, 0l);
    }
    struct voice voice = fall_silent();
    long result = FT_REAL(syscall)(number, a, b, c, d, e, 0l);
    settle(voice, result >= 0);
    return result;
}

/* All other system calls pass by a jump, so that one that returns twice, or on another stack (vfork, clone), does so as
 * it would without us. In assembly where the seventh argument lies on the stack: a compiler may write to its place,
 * which belongs to the caller if it gave fewer. */
#define STRING_OF(text) #text
#define NUMBER_OF(name) STRING_OF(name)
_Static_assert(offsetof(struct ft_real, syscall) == 0, "read below");

#if defined(__x86_64__)
__asm__(".pushsection .text\n"
        ".globl syscall\n"
        ".type syscall, @function\n"
        "syscall:\n"
        "    .cfi_startproc\n"
        "    endbr64\n"
        "    cmpq $" NUMBER_OF(__NR_seccomp) ", %rdi\n"
                                             "    je ft_syscall_may_lock_in\n"
                                             "    cmpq $" NUMBER_OF(__NR_prctl) ", %rdi\n"
                                                                                "    je ft_syscall_may_lock_in\n"
                                                                                "    movq ft_real(%rip), %rax\n"
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
        return ft_syscall_may_lock_in(number, a, b, c, d, e);
    }
    return FT_REAL(syscall)(number, a, b, c, d, e, f);
}
#endif
