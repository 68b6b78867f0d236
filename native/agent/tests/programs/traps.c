/* SIGTRAP for each of its reasons. The kernel lets a process send itself any siginfo, also one of a debug exception. */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void queue(int code) {
    siginfo_t info;
    memset(&info, 0, sizeof info);
    info.si_signo = SIGTRAP;
    info.si_code = code;
    errno = 7;
    syscall(SYS_rt_tgsigqueueinfo, getpid(), syscall(SYS_gettid), SIGTRAP, &info);
}

static void *in_thread(void *code) {
    queue((int)(long)code);
    return NULL;
}

static volatile int handled;
static void count(int number) {
    handled += number == SIGTRAP;
}

static void burn(double seconds) {
    struct timespec from, now;
    clock_gettime(CLOCK_MONOTONIC, &from);
    do {
        clock_gettime(CLOCK_MONOTONIC, &now);
    } while ((double)(now.tv_sec - from.tv_sec) + (double)(now.tv_nsec - from.tv_nsec) * 1e-9 < seconds);
}

int main(int argc, char **argv) {
    const char *way = argc > 1 ? argv[1] : "";
    const int held = argc > 2;
    puts("begins");
    fflush(stdout);
    if (strcmp(way, "causeless") == 0) { /* what a lost DR6 looks like: all must be held back */
        pthread_t thread;
        int before;
        for (int i = 0; i < 100; i++) {
            queue(TRAP_BRKPT);
            queue(TRAP_HWBKPT);
        }
        before = errno;
        pthread_create(&thread, NULL, in_thread, (void *)(long)TRAP_HWBKPT);
        pthread_join(thread, NULL);
        if (fork() == 0) {
            queue(TRAP_HWBKPT);
            _exit(3);
        }
        int status;
        wait(&status);
        printf("goes on, errno %d, child %d\n", before, WEXITSTATUS(status));
    } else if (strcmp(way, "int3") == 0) {
        __asm__ volatile("int3");
    } else if (strcmp(way, "int1") == 0) {
        __asm__ volatile(".byte 0xf1");
    } else if (strcmp(way, "step") == 0) {
        __asm__ volatile("pushf; orq $0x100, (%rsp); popf; nop");
    } else if (strcmp(way, "raise") == 0) {
        raise(SIGTRAP);
    } else if (strcmp(way, "kill") == 0) {
        kill(getpid(), SIGTRAP);
    } else if (strcmp(way, "own") == 0) { /* the program's own handler gets all of them */
        struct sigaction now;
        printf("%d", signal(SIGTRAP, count) == SIG_DFL);
        sigaction(SIGTRAP, NULL, &now);
        printf("%d %d %x\n", now.sa_handler == count, sigismember(&now.sa_mask, SIGTRAP), now.sa_flags & SA_RESTART);
        __asm__ volatile("int3");
        raise(SIGTRAP);
        burn(0.1);
        printf("handled %d\n", handled);
    } else if (strcmp(way, "back") == 0) { /* the default again */
        struct sigaction first = {.sa_handler = count, .sa_flags = SA_NODEFER}, second;
        sigaction(SIGTRAP, &first, NULL);
        sigaction(SIGTRAP, NULL, &second);
        printf("%d %d", second.sa_handler == count, (second.sa_flags & SA_NODEFER) != 0);
        printf(" %d\n", signal(SIGTRAP, SIG_DFL) == count);
        fflush(stdout);
        raise(SIGTRAP);
    } else if (strcmp(way, "sysv") == 0) { /* what strict C programs call, and the older interfaces */
        void (*first)(int) = __sysv_signal(SIGTRAP, count);
        void (*second)(int) = sigset(SIGTRAP, SIG_DFL);
        printf("%d %d", first == SIG_DFL, second == count);
        printf(" %d\n", sysv_signal(SIGTRAP, first) == SIG_DFL);
        fflush(stdout);
        raise(SIGTRAP);
    } else if (strcmp(way, "query") == 0) {
        struct sigaction now;
        memset(&now, 1, sizeof now);
        sigaction(SIGTRAP, NULL, &now);
        printf("%d %x %d\n", now.sa_handler == SIG_DFL, now.sa_flags, sigismember(&now.sa_mask, SIGINT));
        queue(held ? TRAP_HWBKPT : 0);
        puts("goes on");
    } else if (strcmp(way, "vfork") == 0) { /* a child's dispositions are its own */
        signal(SIGTRAP, count);
        if (vfork() == 0) {
            signal(SIGTRAP, SIG_DFL);
            _exit(0);
        }
        raise(SIGTRAP);
        printf("handled %d\n", handled);
    } else if (strcmp(way, "vfork default") == 0) {
        if (vfork() == 0) {
            signal(SIGTRAP, SIG_DFL);
            _exit(0);
        }
        raise(SIGTRAP);
    } else if (strcmp(way, "interrupts") == 0) { /* a handler without SA_RESTART interrupts calls */
        struct sigaction plain = {.sa_handler = count};
        int pipes[2];
        char byte;
        pid_t parent = getpid();
        sigaction(SIGTRAP, &plain, NULL);
        if (pipe(pipes) == 0 && fork() == 0) {
            usleep(200000);
            kill(parent, SIGTRAP);
            _exit(0);
        }
        printf("%zd", read(pipes[0], &byte, 1));
        printf(" %d %d\n", errno == EINTR, handled);
    } else if (strcmp(way, "sandbox") == 0) {
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT);
        __asm__ volatile("int3");
    } else if (strcmp(way, "error") == 0) {
        printf("%d\n", signal(SIGTRAP, SIG_ERR) == SIG_ERR);
    } else if (strcmp(way, "exec") == 0) {
        signal(SIGTRAP, SIG_IGN);
        execl("/bin/sh", "sh", "-c", "kill -TRAP $$; echo ignored", NULL);
    } else if (strcmp(way, "ignored") == 0) {
        signal(SIGTRAP, SIG_IGN);
        raise(SIGTRAP);
        puts("goes on");
    }
    return 0;
}
