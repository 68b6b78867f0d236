/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * What the tests know of pages without the library: it asks the kernel itself. For C++ and, by iso_c_binding, Fortran. */
#ifndef FIRSTTOUCH_TESTS_PAGES_H
#define FIRSTTOUCH_TESTS_PAGES_H

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The number of pages of the range that are present (whole pages only), or -1 if a page of it is not mapped. */
static inline long pages_present(const void *pointer, size_t bytes) {
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    const uintptr_t first = ((uintptr_t)pointer + page - 1) / page * page,
                    end = ((uintptr_t)pointer + bytes) / page * page;
    const size_t count = end > first ? (end - first) / page : 0;
    unsigned char *states = (unsigned char *)malloc(count + 1);
    long present = 0;
    if (states == NULL || mincore((void *)first, end - first, states) != 0) {
        present = -1;
    } else {
        for (size_t i = 0; i < count; i++) {
            present += states[i] & 1;
        }
    }
    free(states);
    return present;
}

/* The node of the page with this byte, or -errno (a page that is not present: -ENOENT). */
static inline int node_of(const void *pointer) {
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    void *address = (void *)((uintptr_t)pointer / page * page);
    int status = -1;
    if (syscall(SYS_move_pages, 0, 1UL, &address, (int *)NULL, &status, 0) < 0) {
        return -errno;
    }
    return status;
}

#ifdef __cplusplus
}
#endif

#endif
