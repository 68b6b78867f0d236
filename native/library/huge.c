/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * Transparent huge pages: where they are asked for, and where they would cover parts of several nodes.
 */
#include "library.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#define MAX_BORDERS 64 /* huge pages at borders that may get advice of their own, which splits the mapping */

int ftl_advise_huge(uintptr_t from, uintptr_t to, unsigned flags, const char *action) {
    if ((flags & (FT_HUGE_PAGES | FT_SMALL_PAGES)) == 0 || from >= to) {
        return 0;
    }
    bool huge = (flags & FT_HUGE_PAGES) != 0;
    if (madvise((void *)from, to - from, huge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE) == 0 || !huge) {
        return 0; /* a kernel without huge pages gives small ones */
    }
    int error = errno;
    ftl_doubt("%s: no huge pages were asked for: madvise(MADV_HUGEPAGE): %s: set "
              "/sys/kernel/mm/transparent_hugepage/enabled to madvise, or leave FT_HUGE_PAGES out",
              action, strerror(error));
    errno = error;
    return -1;
}

/* From 32 huge pages a node on, one more or less matters little. */
bool ftl_is_even_in_huge_pages(const ftl_nodes *nodes, size_t bytes) {
    return nodes->huge_bytes == 0 || bytes / nodes->huge_bytes / 32 >= nodes->count;
}

size_t ftl_turn_bytes(const ftl_nodes *nodes, size_t bytes) {
    size_t page = ftl_page_bytes();
    return ftl_is_even_in_huge_pages(nodes, bytes) && nodes->huge_bytes > page ? nodes->huge_bytes : page;
}

unsigned ftl_page_flags(const ftl_layout *layout, const ftl_nodes *nodes, size_t bytes, unsigned flags) {
    bool is_fine = layout->shape == FTL_SHAPE_MANY || layout->modulus != 0 ||
                   (layout->shape == FTL_SHAPE_INTERLEAVE && !ftl_is_even_in_huge_pages(nodes, bytes));
    return is_fine ? (flags & ~(unsigned)FT_HUGE_PAGES) | FT_SMALL_PAGES : flags;
}

typedef struct borders {
    size_t huge;
    int node; /* of the piece before, or -1 */
    size_t count;
    uintptr_t at[MAX_BORDERS];
} borders;

static bool note_border(void *to_what, uintptr_t from, uintptr_t to, int node, const ftl_sharers *sharers) {
    (void)to;
    (void)sharers;
    borders *b = to_what;
    uintptr_t at = from - from % b->huge;
    bool is_border = b->node >= 0 && node != b->node && from != at;
    b->node = node;
    if (is_border && (b->count == 0 || b->at[b->count - 1] != at)) {
        if (b->count == MAX_BORDERS) {
            b->count++;
            return false;
        }
        b->at[b->count++] = at;
    }
    return true;
}

void ftl_small_pages_at_borders(const ft_partition *partition, const ftl_owners *owners, uintptr_t address,
                                size_t bytes) {
    borders b = {.huge = owners->nodes->huge_bytes, .node = -1};
    size_t page = ftl_page_bytes();
    uintptr_t first = address + (page - address % page) % page, last = address + bytes - (address + bytes) % page;
    if (owners->nodes->count == 1 || b.huge <= page || first >= last) {
        return;
    }
    if (!ftl_has_owners(partition)) {
        bool is_even = partition->kind != FT_INTERLEAVED || ftl_is_even_in_huge_pages(owners->nodes, bytes);
        ftl_advise_huge(first, last, is_even ? 0 : FT_SMALL_PAGES, "");
        return;
    }
    ftl_for_pieces(partition, owners, address, bytes, page, note_border, &b);
    if (b.count > MAX_BORDERS || b.count * b.huge >= bytes / 2) {
        ftl_advise_huge(first, last, b.count > 0 ? FT_SMALL_PAGES : 0, "");
        return;
    }
    for (size_t i = 0; i < b.count; i++) {
        uintptr_t from = b.at[i] > first ? b.at[i] : first, to = b.at[i] + b.huge < last ? b.at[i] + b.huge : last;
        ftl_advise_huge(from, to, FT_SMALL_PAGES, "");
    }
}
