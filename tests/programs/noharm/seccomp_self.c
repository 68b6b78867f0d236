// SPDX-License-Identifier: Apache-2.0 OR MIT
// Enters a sandbox in which perf_event_open, ptrace and process_vm_readv kill the process. Code that runs inside the process
// must not call them.
// corpus: build = gcc -O2 -g -Wall -Wextra -Werror -pthread {src} -o {out}
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#define KILL_ON(number) \
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (number), 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS)

static void *work(void *argument) {
    (void)argument;
    char *block = malloc(1 << 20);
    if (block)
        memset(block, 1, 1 << 20);
    free(block);
    return NULL;
}

int main(void) {
    struct sock_filter rules[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        KILL_ON(SYS_perf_event_open),
        KILL_ON(SYS_ptrace),
        KILL_ON(SYS_process_vm_readv),
        KILL_ON(SYS_process_vm_writev),
        KILL_ON(SYS_openat2),
        KILL_ON(SYS_memfd_create),
        KILL_ON(SYS_userfaultfd),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {.len = sizeof rules / sizeof rules[0], .filter = rules};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) {
        perror("seccomp");
        return 1;
    }
    for (int i = 0; i < 50; i++) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, work, NULL) != 0)
            return 1;
        pthread_join(thread, NULL);
    }
    puts("50 threads in the sandbox");
    return 0;
}
