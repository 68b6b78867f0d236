/* Everything that a timer signal could disturb, while all threads compute: system calls that must not be interrupted, sets of
 * all signals, signals that are waited for or read, the program's own CPU-time timers, setuid and cancellation (which use the C
 * library's own signals), children, jumps out of handlers, alternate stacks. Prints the same with and without samples. */
#define _GNU_SOURCE
#include <errno.h>
#include <grp.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static volatile double sink;
static void burn(double ms) {
    struct timespec from, now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &from);
    do {
        for (int i = 0; i < 20000; i++) {
            sink += i * 0.5;
        }
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    } while ((now.tv_sec - from.tv_sec) * 1e3 + (now.tv_nsec - from.tv_nsec) / 1e6 < ms);
}

static int interrupted;
static void check(long result) {
    if (result < 0 && errno == EINTR) {
        __atomic_fetch_add(&interrupted, 1, __ATOMIC_RELAXED);
    }
}

static void *calls(void *argument) {
    int pipes[2], epoll = epoll_create1(0);
    char byte;
    check(pipe(pipes));
    for (int i = 0; i < 60; i++) {
        burn(5);
        struct pollfd entry = {.fd = pipes[0], .events = POLLIN};
        struct epoll_event event;
        struct timespec pause = {0, 300000};
        check(poll(&entry, 1, 1));
        check(epoll_wait(epoll, &event, 1, 1));
        check(nanosleep(&pause, NULL));
        check(write(pipes[1], "x", 1));
        check(read(pipes[0], &byte, 1));
    }
    return argument;
}

static void *masked(void *argument) { /* all signals blocked; waits for one that another thread sends */
    sigset_t all;
    int number = 0;
    sigfillset(&all);
    sigdelset(&all, SIGSEGV);
    pthread_sigmask(SIG_SETMASK, &all, NULL);
    burn(60);
    sigset_t pending;
    sigpending(&pending);
    int count = 0;
    for (int i = 1; i <= 64; i++) {
        count += sigismember(&pending, i) == 1;
    }
    sigwait(&all, &number);
    printf("sigwait %s, pending before %s\n", number == SIGUSR1 ? "SIGUSR1" : "other",
           count <= 1 ? "at most it" : "more");
    return argument;
}

static void *reads_signals(void *argument) {
    sigset_t all;
    struct signalfd_siginfo info;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, NULL);
    int fd = signalfd(-1, &all, 0);
    burn(40);
    pthread_kill(pthread_self(), SIGUSR2);
    check(read(fd, &info, sizeof info));
    printf("signalfd %s\n", info.ssi_signo == SIGUSR2 ? "SIGUSR2" : "other");
    return argument;
}

static void *endless(void *argument) {
    for (;;) {
        burn(1);
        pthread_testcancel();
    }
    return argument;
}

static volatile sig_atomic_t profiled;
static void on_profile(int number) {
    (void)number;
    profiled++;
}

static sigjmp_buf back;
static volatile sig_atomic_t jumps;
static void on_alarm(int number) {
    (void)number;
    jumps++;
    siglongjmp(back, 1);
}

static void *computes(void *argument) {
    burn(150);
    return argument;
}

static void *computes_nothing(void *argument) {
    return argument;
}

static void child_result(const char *what, pid_t child) {
    int status = 0;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
        interrupted++;
    }
    printf("%s %d\n", what, WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
}

int main(void) {
    pthread_t thread[4], waits, cancelled, reader;
    void *result;
    setvbuf(stdout, NULL, _IOLBF, 0);
    burn(30);
    pthread_create(&waits, NULL, masked, NULL);
    for (int i = 0; i < 3; i++) {
        pthread_create(&thread[i], NULL, calls, NULL);
    }
    usleep(150000);
    pthread_kill(waits, SIGUSR1);
    pthread_join(waits, NULL);
    pthread_create(&reader, NULL, reads_signals, NULL);
    pthread_join(reader, NULL);
    pthread_create(&cancelled, NULL, endless, NULL);
    burn(20);
    pthread_cancel(cancelled);
    pthread_join(cancelled, &result);
    printf("cancelled %d\n", result == PTHREAD_CANCELED);
    for (int i = 0; i < 3; i++) {
        pthread_join(thread[i], NULL);
    }
    printf("interrupted calls %d\n", interrupted);
    /* setresuid interrupts the other threads' calls by itself, so it comes behind them. */
    pthread_create(&thread[0], NULL, computes, NULL);
    burn(10);
    printf("setresuid %d\n", setresuid(getuid(), getuid(), getuid()));
    pthread_join(thread[0], NULL);

    struct sigaction action = {.sa_handler = on_profile};
    struct itimerval often = {{0, 2000}, {0, 2000}}, off = {{0, 0}, {0, 0}};
    sigaction(SIGPROF, &action, NULL);
    setitimer(ITIMER_PROF, &often, NULL);
    /* The kernel counts whole scheduler ticks for this timer, and may count none in a time that the host took. */
    for (int tries = 0; profiled == 0 && tries < 100; tries++) {
        burn(100);
    }
    setitimer(ITIMER_PROF, &off, NULL);
    printf("own profile %s\n", profiled > 0 ? "ticks" : "stands");

    action.sa_handler = on_alarm;
    action.sa_flags = SA_NODEFER;
    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &often, NULL);
    sigsetjmp(back, 1);
    while (jumps < 40) {
        burn(1);
    }
    setitimer(ITIMER_REAL, &off, NULL);
    sigset_t mask;
    pthread_sigmask(SIG_SETMASK, NULL, &mask);
    int blocked = 0;
    for (int i = 1; i <= 64; i++) {
        blocked += sigismember(&mask, i) == 1;
    }
    printf("blocked signals %d\n", blocked);

    stack_t stack = {.ss_sp = malloc(65536), .ss_size = 65536}, now;
    sigaltstack(&stack, NULL);
    burn(30);
    sigaltstack(NULL, &now);
    printf("alternate stack %s\n", now.ss_sp == stack.ss_sp && now.ss_flags == 0 ? "kept" : "changed");

    pid_t child = fork();
    if (child == 0) {
        pthread_t own;
        burn(30);
        pthread_create(&own, NULL, computes, NULL);
        pthread_join(own, NULL);
        _exit(7);
    }
    child_result("fork", child);
    child = vfork();
    if (child == 0) {
        execlp("sh", "sh", "-c", "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done; exit 9", (char *)NULL);
        _exit(127);
    }
    child_result("vfork", child);
    timer_t timers[8];
    int made = 0;
    for (int i = 0; i < 8; i++) {
        struct sigevent event = {.sigev_notify = SIGEV_NONE};
        made += timer_create(CLOCK_MONOTONIC, &event, &timers[i]) == 0;
    }
    printf("own timers %d\n", made);
    for (int round = 0; round < 500; round++) {
        pthread_create(&thread[0], NULL, computes_nothing, NULL);
        pthread_join(thread[0], NULL);
    }
    puts("done");
    return 0;
}
