/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * The system call move_pages for the Fortran tests: libc has no function for it. */
#define _GNU_SOURCE
#include <sys/syscall.h>
#include <unistd.h>

long test_move_pages(int pid, long count, void *const *pages, const int *nodes, int *status, int flags);

long test_move_pages(int pid, long count, void *const *pages, const int *nodes, int *status, int flags) {
    return syscall(SYS_move_pages, pid, count, pages, nodes, status, flags);
}
