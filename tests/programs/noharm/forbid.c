// SPDX-License-Identifier: Apache-2.0 OR MIT
// Runs a command in which system calls fail: `forbid ERROR CALLS COMMAND...`. CALLS is `perf` (perf_event_open), `memory` (those
// that set memory policies and move pages), or `perf,memory`. ERROR is EPERM, as from container runtimes; EACCES, as
// from kernel.perf_event_paranoid = 3; or ENOSYS, as from a kernel without the call. /proc/sys is not writable everywhere, but
// a seccomp filter can always be installed.
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

static const unsigned perf[] = {SYS_perf_event_open};
static const unsigned memory[] = {SYS_mbind, SYS_set_mempolicy, SYS_get_mempolicy, SYS_migrate_pages, SYS_move_pages};

static struct sock_filter rules[32];
static unsigned short length;

static void add(struct sock_filter rule) {
    rules[length++] = rule;
}

static void refuse(const unsigned *calls, size_t count, unsigned error) {
    for (size_t i = 0; i < count; i++) {
        add((struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, calls[i], 0, 1));
        add((struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | error));
    }
}

int main(int argc, char **argv) {
    if (argc < 4) {
        fprintf(stderr, "usage: forbid EPERM|EACCES|ENOSYS perf|memory|perf,memory COMMAND...\n");
        return 2;
    }
    unsigned error = EPERM;
    if (strcmp(argv[1], "EACCES") == 0)
        error = EACCES;
    else if (strcmp(argv[1], "ENOSYS") == 0)
        error = ENOSYS;
    add((struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)));
    if (strstr(argv[2], "perf"))
        refuse(perf, sizeof perf / sizeof perf[0], error);
    if (strstr(argv[2], "memory"))
        refuse(memory, sizeof memory / sizeof memory[0], error);
    add((struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
    struct sock_fprog program = {.len = length, .filter = rules};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) {
        perror("forbid: cannot install the filter");
        return 125;
    }
    execvp(argv[3], argv + 3);
    perror(argv[3]);
    return errno == ENOENT ? 127 : 126;
}
