/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * How much of a shared mapping was present before the program used it here: pages that another process, an earlier run or `write`
 * filled are on that one's node, and a later page fault does not place them.
 */
#include "agent.h"

#include <sys/syscall.h>
#include <unistd.h>

enum {
    PARTS = 32,         /* looked at in a large mapping, evenly spaced */
    PAGES_OF_PART = 64, /* of each; a call takes about 4 us */
};

/* Pages that are present, or -1. */
static int present_pages(uintptr_t from, size_t pages) {
    unsigned char present[PAGES_OF_PART];
    if (syscall(SYS_mincore, from, pages * ft_agent.page_bytes, present) != 0) {
        return -1;
    }
    int count = 0;
    for (size_t i = 0; i < pages; i++) {
        count += present[i] & 1;
    }
    return count;
}

uint64_t ft_present(const void *mapped, size_t size) {
    const size_t pages = (size + ft_agent.page_bytes - 1) / ft_agent.page_bytes;
    const bool is_large = pages > (size_t)PARTS * PAGES_OF_PART;
    const size_t parts = is_large ? PARTS : (pages + PAGES_OF_PART - 1) / PAGES_OF_PART;
    const int saved_errno = errno;
    uint64_t seen = 0, present = 0;
    for (size_t i = 0; i < parts; i++) {
        /* The last part of a large mapping ends with it. */
        const size_t first = is_large ? (pages - PAGES_OF_PART) / (PARTS - 1) * i : i * PAGES_OF_PART;
        const size_t count = pages - first < PAGES_OF_PART ? pages - first : PAGES_OF_PART;
        const int there = present_pages((uintptr_t)mapped + first * ft_agent.page_bytes, count);
        if (there < 0) {
            break;
        }
        seen += count;
        present += (uint64_t)there;
    }
    errno = saved_errno;
    return seen == 0 ? 0 : (1 + (present * FT_PRESENT_ALL + seen - 1) / seen) << 8;
}
