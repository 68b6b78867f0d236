/* SIGTRAP for each of its reasons. The kernel lets a process send itself any siginfo, also one of a debug exception. */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
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
    } else if (strcmp(way, "held") == 0) { /* a handler of the program's does not see what is held back */
        signal(SIGTRAP, count);
        queue(TRAP_HWBKPT);
        printf("handled %d\n", handled);
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
