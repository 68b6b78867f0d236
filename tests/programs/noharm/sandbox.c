// SPDX-License-Identifier: Apache-2.0 OR MIT
// Enters a sandbox, by prctl or by syscall, in which the agent's system calls kill the process: strict mode; filters of those
// that it makes in an exec (exec PROGRAM), a thread (thread) or a fork (fork); tsc: the clock's instruction faults; refused: an
// invalid filter, after which the agent must continue to record. Allocates 100001 bytes before and 100002 after.
// corpus: build = gcc -O2 -g -Wall -Wextra -w -pthread {src} -o {out}
#define _GNU_SOURCE
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

__attribute__((noinline)) static void allocate(size_t size) {
    void *block = malloc(size);
    __asm__ volatile("" : : "r"(block) : "memory");
    free(block);
}

static void *in_thread(void *nothing) {
    allocate(100003);
    return nothing;
}

static int deny(const int *calls, int count, int by_syscall) {
    struct sock_filter rules[32];
    int used = 0;
    rules[used++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
    for (int i = 0; i < count; i++) {
        rules[used++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)calls[i], 0, 1);
        rules[used++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
    }
    rules[used++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    struct sock_fprog filter = {(unsigned short)used, rules};
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    return by_syscall ? (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &filter)
                      : prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter);
}
#define DENY(by_syscall, ...) deny((int[]){__VA_ARGS__}, sizeof((int[]){__VA_ARGS__}) / sizeof(int), by_syscall)

int main(int argc, char **argv) {
    const char *way = argc > 1 ? argv[1] : "";
    int result = 0;
    setvbuf(stdout, NULL, _IONBF, 0); /* creating a buffer calls fstat, which a filter kills */
    allocate(100001);
    if (strcmp(way, "strict") == 0) {
        puts("strict");
        fflush(stdout);
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT);
        allocate(100002);
        __asm__ volatile("syscall" : : "a"(SYS_exit), "D"(7));
    } else if (strcmp(way, "tsc") == 0) {
        prctl(PR_SET_TSC, PR_TSC_SIGSEGV);
        allocate(100002);
        prctl(PR_SET_TSC, PR_TSC_ENABLE);
    } else if (strcmp(way, "exec") == 0) {
        result = DENY(0, SYS_getpid, SYS_getuid, SYS_access, SYS_fgetxattr, SYS_newfstatat, SYS_rt_sigprocmask);
        execv(argv[2], argv + 2);
    } else if (strcmp(way, "thread") == 0) {
        result = DENY(1, SYS_gettid, SYS_prlimit64, SYS_process_vm_readv, SYS_clock_gettime);
        pthread_t thread;
        pthread_create(&thread, NULL, in_thread, NULL);
        pthread_join(thread, NULL);
        allocate(100002);
    } else if (strcmp(way, "fork") == 0) {
        result = DENY(1, SYS_getpid, SYS_gettid);
        pid_t child = fork();
        if (child == 0) {
            allocate(100004);
            _exit(0);
        }
        waitpid(child, &result, 0);
    } else if (strcmp(way, "refused") == 0) {
        result = (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, NULL);
        result += prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, NULL);
        allocate(100002);
    }
    printf("%s %d\n", way, result);
    return 5;
}
