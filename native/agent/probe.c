/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * May memory be read? exec with a bad pointer fails with EFAULT; who looks at the arguments before the kernel does must
 * not fault instead.
 */
#include "agent.h"

#include <errno.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PROBED_BYTES 4096u /* the smallest page: on larger ones some calls are superfluous */

/* The kernel reads the set before it finds the first argument wrong: EFAULT or EINVAL, and nothing is changed. */
static bool page_is_readable(uintptr_t page) {
    int saved_errno = errno;
    bool readable = syscall(SYS_rt_sigprocmask, -1l, page, NULL, (size_t)8) == -1 && errno == EINVAL;
    errno = saved_errno;
    return readable;
}

/* At most a page of bytes. */
bool ft_readable(struct ft_probe *probe, const void *from, size_t bytes) {
    uintptr_t first = (uintptr_t)from & ~(uintptr_t)(PROBED_BYTES - 1);
    uintptr_t last = ((uintptr_t)from + bytes - 1) & ~(uintptr_t)(PROBED_BYTES - 1);
    for (uintptr_t page = first;; page = last) {
        if (page == 0 || (page != probe->page && !page_is_readable(page))) {
            return false;
        }
        probe->page = page;
        if (page == last) {
            return true;
        }
    }
}

/* False: the string runs into memory that cannot be read. */
bool ft_readable_string(struct ft_probe *probe, const char *string) {
    for (;;) {
        if (!ft_readable(probe, string, 1)) {
            return false;
        }
        size_t rest = PROBED_BYTES - ((uintptr_t)string & (PROBED_BYTES - 1));
        if (memchr(string, '\0', rest) != NULL) {
            return true;
        }
        string += rest;
    }
}
