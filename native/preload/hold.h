/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * Holds a file that this process needs, so that `firsttouch clean` leaves it alone: a shared lock of the open file description
 * (F_OFD_SETLK), which other containers see, and other hosts on file systems that share locks. A mapping of the file keeps the
 * description, and with it the lock, until the process ends or executes another program. So no descriptor stays open.
 */
#ifndef FIRSTTOUCH_HOLD_H
#define FIRSTTOUCH_HOLD_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <fcntl.h>
#include <stddef.h>
#include <sys/mman.h>
#include <unistd.h>

/* As in crates/system, calls/claim.rs: before the bytes that SQLite locks. */
#define FT_HOLD_BYTE 0x3fffffff

/* Holds an open file for as long as the caller's mapping of it lasts. */
static inline void ft_hold(int file) {
    struct flock lock = {.l_type = F_RDLCK, .l_whence = SEEK_SET, .l_start = FT_HOLD_BYTE, .l_len = 1};
    (void)fcntl(file, F_OFD_SETLK, &lock);
}

typedef void *(*ft_mmap)(void *, size_t, int, int, int, off_t);

/* Holds the file at a path to the end of this process image. */
static inline void ft_hold_path(const char *path, ft_mmap map) {
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file >= 0) {
        ft_hold(file);
        (void)map(NULL, 1, PROT_READ, MAP_SHARED, file, 0);
        (void)close(file);
    }
}

#endif
