// SPDX-License-Identifier: Apache-2.0 OR MIT
// Receives queued real-time signals and SIGCHLD through a signalfd: number, order and payload must be the sender's.
// corpus: build = gcc -O2 -g -Wall -Wextra -Werror {src} -o {out}
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

int main(void) {
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGRTMIN);
    sigaddset(&signals, SIGCHLD);
    sigaddset(&signals, SIGIO);
    sigaddset(&signals, SIGTRAP);
    sigaddset(&signals, SIGUSR1);
    sigprocmask(SIG_BLOCK, &signals, NULL);
    int descriptor = signalfd(-1, &signals, SFD_CLOEXEC);
    for (int i = 0; i < 20; i++)
        sigqueue(getpid(), SIGRTMIN, (union sigval){.sival_int = i * i});
    if (fork() == 0) {
        free(malloc(1 << 20));
        _exit(9);
    }
    int values = 0, child_status = -1, others = 0;
    for (int i = 0; i < 21; i++) {
        struct signalfd_siginfo info;
        if (read(descriptor, &info, sizeof info) != sizeof info)
            return 1;
        if ((int)info.ssi_signo == SIGRTMIN)
            values += info.ssi_int;
        else if (info.ssi_signo == SIGCHLD)
            child_status = info.ssi_status;
        else
            others++;
    }
    printf("sum of payloads %d, child's status %d, other signals %d\n", values, child_status, others);
    return 0;
}
