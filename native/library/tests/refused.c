/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * refused EPERM|ENOSYS|threads|populate COMMAND...: runs the command with a seccomp filter that refuses mbind, move_pages, get_mempolicy and
 * set_mempolicy with that errno, as containers (EPERM) and kernels without NUMA (ENOSYS) do; or that refuses new threads and processes;
 * or MADV_POPULATE_WRITE, as Linux before 5.14.
 */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

#define REFUSE(call, error) \
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (call), 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (error))

int main(int count, char **arguments) {
    if (count < 3) {
        fprintf(stderr, "usage: refused EPERM|ENOSYS|threads|populate COMMAND...\n");
        return 2;
    }
    unsigned error = strcmp(arguments[1], "ENOSYS") == 0 ? ENOSYS : EPERM;
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        REFUSE(SYS_mbind, error),
        REFUSE(SYS_move_pages, error),
        REFUSE(SYS_get_mempolicy, error),
        REFUSE(SYS_set_mempolicy, error),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_filter no_threads[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        REFUSE(SYS_clone, EAGAIN),
        REFUSE(SYS_clone3, EAGAIN),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_filter no_populate[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_madvise, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[2])),
        REFUSE(MADV_POPULATE_WRITE, EINVAL),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof filter / sizeof filter[0], filter};
    if (strcmp(arguments[1], "threads") == 0) {
        program = (struct sock_fprog){sizeof no_threads / sizeof no_threads[0], no_threads};
    }
    if (strcmp(arguments[1], "populate") == 0) {
        program = (struct sock_fprog){sizeof no_populate / sizeof no_populate[0], no_populate};
    }
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) {
        perror("refused: seccomp");
        return 2;
    }
    execvp(arguments[2], arguments + 2);
    perror(arguments[2]);
    return 2;
}
