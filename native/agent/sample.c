/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * Samples of the registers of each running thread, at the ticks of its own CPU clock. The kernel checks CPU-time timers in the
 * scheduler's tick, which comes anyway, so a sample costs a signal's delivery and return and nothing in between.
 *
 * The signal is SIGSETXID (33), one of the two that the C library keeps for itself. No program can block, catch, wait for or list
 * it: sigfillset, pthread_sigmask and sigaction leave it out. Its own use, tgkill by setuid and its relatives, is recognised by
 * si_code and passed to the C library's handler.
 *
 * System calls are not interrupted where the kernel handles expiry on the way back to user mode (POSIX_CPU_TIMERS_TASK_WORK, Linux
 * 5.9): a thread that sleeps uses no CPU time, and a tick that hits one within a call waits for the call's end. Older kernels post
 * the signal in the tick, so that a call that is about to sleep can fail with EINTR: there firsttouch does not ask for samples.
 *
 * All ticks of a CPU are the same time apart, so a loop whose laps take just that long seems not to move between two of them. Where
 * firsttouch has no other clock, it has a thread sleep now and then (shift_us): the thread goes less far until the next tick.
 *
 * Pending timer signals do not survive exec (the kernel drops them), and timers do not survive fork and exec.
 */
#include "agent.h"

#include "../preload/thread_start.h"
#include "signals.h"

#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#if defined(__x86_64__)

#define SIGSETXID 33
#define MOST_TIMERS 16384u
#define SIGPENDING_SHARE \
    4u /* timers take at most this part of RLIMIT_SIGPENDING, which they share with the program's */
#define SIGPENDING_LEAST 1024u /* below it, all of them are the program's */
#define RED_ZONE 128u

/* The kernel's timer ids are numbers of this process. */
struct ft_timer {
    uint32_t held;
    int32_t id; /* -1: none */
};

static struct ft_timer timers[MOST_TIMERS];
static uint32_t started; /* timers that run */
static uint32_t most_timers;
static bool is_sampling;
static bool is_paused;
static pthread_key_t key;
static void (*chained)(int, siginfo_t *, void *); /* the C library's handler, or NULL */

/* The bytes by which unwinders know a signal's return. */
__asm__(".pushsection .text\n"
        ".globl ft_restore_from_signal\n"
        ".hidden ft_restore_from_signal\n"
        ".type ft_restore_from_signal, @function\n"
        "ft_restore_from_signal:\n"
        "    movq $15, %rax\n"
        "    syscall\n"
        ".size ft_restore_from_signal, . - ft_restore_from_signal\n"
        ".popsection\n");
static void stop_timer(struct ft_timer *timer) {
    int32_t id = __atomic_exchange_n(&timer->id, -1, __ATOMIC_ACQ_REL);
    if (id >= 0) {
        ft_raw_call(SYS_timer_delete, id, 0, 0, 0);
        __atomic_fetch_sub(&started, 1, __ATOMIC_RELAXED);
    }
}

static uint64_t cpu_time_ns(void) {
    struct timespec time = {0, 0};
    ft_raw_call(SYS_clock_gettime, CLOCK_THREAD_CPUTIME_ID, (long)&time, 0, 0);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

/* A thread ends: timers of ended threads would stay until the process ends. The record says how long it ran. (The main thread, and
 * threads that live when the process exits, do not come here.) */
static void end_thread(void *timer) {
    ft_thread.timer = NULL;
    stop_timer(timer);
    ft_release_slot(&((struct ft_timer *)timer)->held);
    if (!ft_silent()) {
        ft_record_plain(&(struct ft_record){.type = FT_REC_THREAD_END, .time_ns = ft_now(), .size = cpu_time_ns()});
    }
}

/* Page faults of this thread so far. */
static uint32_t page_faults(void) {
    struct rusage usage;
    memset(&usage, 0, sizeof usage);
    ft_raw_call(SYS_getrusage, RUSAGE_THREAD, (long)&usage, 0, 0);
    return (uint32_t)usage.ru_minflt;
}

/* Copies the stack around the stack pointer. Nothing is read that was not written: what lies below the stack pointer's page may never
 * have been touched, and what lies above is read on the thread's own stack only, whose end is known. */
static uint32_t copy_stack(uintptr_t stack_pointer, uint64_t *words, uint64_t *from) {
    uintptr_t page = stack_pointer & ~(uintptr_t)(ft_agent.page_bytes - 1);
    uintptr_t low = (stack_pointer - RED_ZONE) & ~(uintptr_t)7;
    uintptr_t high = (stack_pointer & ~(uintptr_t)7) + FT_SAMPLE_STACK * 8 - RED_ZONE;
    if (low < page) {
        low = page;
    }
    if (ft_on_native_stack(stack_pointer)) {
        high = high < ft_thread.native_top ? high : ft_thread.native_top;
    } else {
        struct ft_last_readable last = {0};
        high = high < page + ft_agent.page_bytes ? high : page + ft_agent.page_bytes;
        if (high <= low || !ft_readable(&last, (const void *)low, high - low)) {
            return 0;
        }
    }
    uint32_t count = high > low ? (uint32_t)((high - low) / 8) : 0;
    *from = low;
    for (uint32_t i = 0; i < count; i++) {
        words[i] = ((const volatile uint64_t *)low)[i];
    }
    return count;
}

static void sample(const ucontext_t *context) {
    /* ucontext's order of the general registers, in the processor's numbering. */
    static const int order[FT_SAMPLE_REGISTERS] = {REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP,
                                                   REG_RSI, REG_RDI, REG_R8,  REG_R9,  REG_R10, REG_R11,
                                                   REG_R12, REG_R13, REG_R14, REG_R15};
    uint64_t words[FT_SAMPLE_REGISTERS + FT_SAMPLE_STACK];
    const greg_t *registers = context->uc_mcontext.gregs;
    struct ft_record record = {.time_ns = ft_now(),
                               .address = (uint64_t)registers[REG_RIP],
                               .size = cpu_time_ns(),
                               .aux = (uint64_t)(uint32_t)sched_getcpu() | (uint64_t)page_faults() << 32};
    for (uint32_t i = 0; i < FT_SAMPLE_REGISTERS; i++) {
        words[i] = (uint64_t)registers[order[i]];
    }
    uint32_t count = copy_stack((uintptr_t)registers[REG_RSP], words + FT_SAMPLE_REGISTERS, &record.stack_id);
    ft_record_sample(&record, words, FT_SAMPLE_REGISTERS + count);
}

/* Sleeps, if firsttouch asks for it. No signal is taken until the handler has returned: the program's handlers may jump out of it. */
static void shift(void) {
    uint32_t us = __atomic_load_n(&ft_agent.ring->shift_us, __ATOMIC_RELAXED);
    if (us == 0 || __atomic_exchange_n(&ft_agent.ring->shift_us, 0, __ATOMIC_RELAXED) != us ||
        ft_raw_call(SYS_sched_getscheduler, 0, 0, 0, 0) != SCHED_OTHER) {
        return;
    }
    const struct timespec time = {0, (long)(us < FT_SHIFT_MOST_US ? us : FT_SHIFT_MOST_US) * 1000};
    const uint64_t all = ~(uint64_t)0;
    ft_raw_call(SYS_rt_sigprocmask, SIG_SETMASK, (long)&all, 0, sizeof all);
    ft_raw_call(SYS_nanosleep, (long)&time, 0, 0, 0);
}

static void on_tick(int number, siginfo_t *info, void *context) {
    if (info->si_code != SI_TIMER || info->si_value.sival_ptr != (void *)timers) {
        void (*next)(int, siginfo_t *, void *) = __atomic_load_n(&chained, __ATOMIC_ACQUIRE);
        if (next != NULL) {
            next(number, info, context);
        }
        return;
    }
    int saved_errno = errno;
    if (__atomic_load_n(&ft_agent.ring->closed, __ATOMIC_RELAXED) != 0) {
        if (ft_thread.timer != NULL) {
            stop_timer(ft_thread.timer);
        }
    } else if (!ft_silent()) {
        sample(context);
        ft_trap_check();
        shift();
    }
    errno = saved_errno;
}

static void install(void) {
    struct ft_kernel_action now, ours = ft_action(on_tick);
    if (ft_raw_call(SYS_rt_sigaction, SIGSETXID, 0, (long)&now, sizeof now.mask) != 0 || now.handler == on_tick) {
        return;
    }
    bool is_function = (uintptr_t)now.handler > 1; /* neither SIG_DFL nor SIG_IGN */
    __atomic_store_n(&chained, is_function ? now.handler : NULL, __ATOMIC_RELEASE);
    ft_raw_call(SYS_rt_sigaction, SIGSETXID, (long)&ours, 0, sizeof ours.mask);
}

void ft_sample_keep_handler(void) {
    static bool is_kept;
    if (is_sampling && !__atomic_load_n(&is_kept, __ATOMIC_RELAXED)) {
        install();
        /* The C library installs its handler once. */
        __atomic_store_n(&is_kept, __atomic_load_n(&chained, __ATOMIC_RELAXED) != NULL, __ATOMIC_RELAXED);
    }
}

static struct timespec duration(uint64_t ns) {
    return (struct timespec){(time_t)(ns / 1000000000u), (long)(ns % 1000000000u)};
}

/* A number below `end`, different for each thread (Marsaglia's xorshift). */
static uint64_t random_below(uint64_t end) {
    uint64_t state = ft_now() ^ ((uint64_t)ft_tid() << 32) ^ 0x9e3779b97f4a7c15u;
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return end == 0 ? 0 : state % end;
}

/* The kernel looks at the timers in each tick. A timer that expires at once fires in the first tick of the thread, whose time is random:
 * so even a thread that ends before the second tick is sampled as often as its CPU time says. */
static struct itimerspec interval(void) {
    uint64_t first_ns = 1 + random_below((uint64_t)ft_agent.ring->first_sample_us * 1000u);
    return (struct itimerspec){.it_interval = duration((uint64_t)ft_agent.ring->sample_us * 1000u),
                               .it_value = duration(first_ns)};
}

/* The timer measures the CPU time of the thread that creates it. */
static bool start_timer(struct ft_timer *timer) {
    struct sigevent event;
    int32_t id;
    memset(&event, 0, sizeof event);
    event.sigev_notify = SIGEV_THREAD_ID;
    event.sigev_signo = SIGSETXID;
    event.sigev_value.sival_ptr = timers;
    event._sigev_un._tid = (pid_t)ft_tid();
    if (ft_raw_call(SYS_timer_create, CLOCK_THREAD_CPUTIME_ID, (long)&event, (long)&id, 0) != 0) {
        return false;
    }
    struct itimerspec times = interval();
    __atomic_fetch_add(&started, 1, __ATOMIC_RELAXED);
    __atomic_store_n(&timer->id, id, __ATOMIC_RELEASE);
    ft_raw_call(SYS_timer_settime, id, 0, (long)&times, 0);
    return true;
}

void ft_sample_thread(void) {
    static uint32_t next;
    if (!is_sampling || ft_thread.timer != NULL) {
        return;
    }
    struct ft_timer *timer = NULL;
    if (__atomic_load_n(&started, __ATOMIC_RELAXED) < most_timers) {
        timer = ft_take_slot(timers, sizeof *timers, MOST_TIMERS, &next);
    }
    if (timer != NULL) {
        timer->id = -1;
        if (start_timer(timer) && pthread_setspecific(key, timer) == 0) {
            ft_thread.timer = timer;
            return;
        }
        stop_timer(timer);
        ft_release_slot(&timer->held);
    }
    __atomic_fetch_add(&ft_agent.ring->unsampled_threads, 1, __ATOMIC_RELAXED);
    ft_record_plain(&(struct ft_record){.type = FT_REC_NO_TIMER, .time_ns = ft_now()});
}

void ft_sample_prepare(void) {
    struct rlimit limit;
    if ((ft_agent.ring->flags & FT_FLAG_SAMPLE) == 0 || ft_agent.ring->sample_us == 0) {
        return;
    }
    /* An early key: pthread_setspecific allocates for the 33rd and later ones. */
    if (pthread_key_create(&key, end_thread) != 0) {
        return;
    }
    most_timers = MOST_TIMERS;
    if (getrlimit(RLIMIT_SIGPENDING, &limit) == 0 && limit.rlim_cur / SIGPENDING_SHARE < most_timers) {
        most_timers = limit.rlim_cur < SIGPENDING_LEAST ? 0 : (uint32_t)(limit.rlim_cur / SIGPENDING_SHARE);
    }
    install();
    is_sampling = true;
    ft_sample_thread();
}

void ft_sample_after_fork(void) {
    if (is_sampling) {
        memset(timers, 0, sizeof timers);
        started = 0;
        ft_thread.timer = NULL;
        ft_sample_thread();
    }
}

static void set_all_timers(struct itimerspec times) {
    for (uint32_t i = 0; i < MOST_TIMERS; i++) {
        int32_t id = __atomic_load_n(&timers[i].id, __ATOMIC_ACQUIRE);
        if (__atomic_load_n(&timers[i].held, __ATOMIC_RELAXED) != 0 && id >= 0) {
            ft_raw_call(SYS_timer_settime, id, 0, (long)&times, 0);
        }
    }
}

void ft_sample_pause(void) {
    if (is_sampling) {
        is_sampling = false;
        is_paused = true;
        set_all_timers((struct itimerspec){{0, 0}, {0, 0}});
    }
}

void ft_sample_resume(void) {
    if (is_paused) {
        is_paused = false;
        is_sampling = true;
        set_all_timers(interval());
    }
}

#else

void ft_sample_prepare(void) {}
void ft_sample_thread(void) {}
void ft_sample_keep_handler(void) {}
void ft_sample_after_fork(void) {}
void ft_sample_pause(void) {}
void ft_sample_resume(void) {}

#endif
