/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * Is memory readable? exec with a bad pointer fails with EFAULT. Code that reads the arguments before the kernel does must not
 * fault instead.
 */
#include "agent.h"

#include <errno.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PROBED_BYTES 4096u /* the smallest page size; with larger pages some calls are redundant */

/* The kernel reads the signal set before it rejects the first argument: EFAULT if it cannot, else EINVAL. The mask does not
 * change. */
static bool page_is_readable(uintptr_t page) {
    int saved_errno = errno;
    bool readable = syscall(SYS_rt_sigprocmask, -1l, page, NULL, (size_t)8) == -1 && errno == EINVAL;
    errno = saved_errno;
    return readable;
}

bool ft_readable(struct ft_last_readable *last, const void *from, size_t bytes) {
    uintptr_t first = (uintptr_t)from & ~(uintptr_t)(PROBED_BYTES - 1);
    uintptr_t end = ((uintptr_t)from + bytes - 1) & ~(uintptr_t)(PROBED_BYTES - 1);
    for (uintptr_t page = first;; page = end) {
        if (page == 0 || (page != last->page && !page_is_readable(page))) {
            return false;
        }
        last->page = page;
        if (page == end) {
            return true;
        }
    }
}

bool ft_readable_string(struct ft_last_readable *last, const char *string) {
    for (;;) {
        if (!ft_readable(last, string, 1)) {
            return false;
        }
        size_t rest = PROBED_BYTES - ((uintptr_t)string & (PROBED_BYTES - 1));
        if (memchr(string, '\0', rest) != NULL) {
            return true;
        }
        string += rest;
    }
}
