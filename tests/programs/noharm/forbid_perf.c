// SPDX-License-Identifier: Apache-2.0 OR MIT
// Runs a command in which perf_event_open fails: `forbid_perf EPERM|EACCES|ENOSYS COMMAND...`. This is what container
// runtimes do (EPERM), what kernel.perf_event_paranoid = 3 does (EACCES), and what a kernel without perf does (ENOSYS);
// /proc/sys is not writable everywhere, a seccomp filter can always be installed.
// corpus: build = gcc -O2 -g -Wall -Wextra -Werror {src} -o {out}
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

int main(int argc, char **argv) {
    if (argc < 3) {
        fprintf(stderr, "usage: forbid_perf EPERM|EACCES|ENOSYS COMMAND...\n");
        return 2;
    }
    unsigned error = EPERM;
    if (strcmp(argv[1], "EACCES") == 0)
        error = EACCES;
    else if (strcmp(argv[1], "ENOSYS") == 0)
        error = ENOSYS;
    struct sock_filter rules[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_perf_event_open, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | error),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {.len = sizeof rules / sizeof rules[0], .filter = rules};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) {
        perror("forbid_perf: cannot install the filter");
        return 125;
    }
    execvp(argv[2], argv + 2);
    perror(argv[2]);
    return errno == ENOENT ? 127 : 126;
}
