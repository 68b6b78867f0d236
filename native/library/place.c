/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * Places memory: policies for pages that come, moves of pages that are there, and population before I/O.
 */
#include "library.h"

#include <errno.h>
#include <string.h>

static const char *refusal(int error) {
    return error == ENODEV ? "the node has no memory that this process may use" : strerror(error);
}

static int apply_piece(const ftl_piece *piece, const ftl_nodes *nodes, uintptr_t from, uintptr_t to) {
    uintptr_t begin = piece->from > from ? piece->from : from, end = piece->to < to ? piece->to : to;
    if (begin >= end) {
        return 0;
    }
    if (ftl_node_index(nodes, piece->node) == SIZE_MAX) {
        errno = ENODEV;
        return -1;
    }
    ftl_node_set only = {{0}};
    ftl_set(only.words, (size_t)piece->node);
    return ftl_set_range_policy(begin, end, FTL_PREFERRED, &only);
}

int ftl_apply(const ftl_layout *layout, const ftl_nodes *nodes, uintptr_t from, uintptr_t to, const char *action) {
    int result = 0;
    switch (layout->shape) {
    case FTL_SHAPE_PIECES:
        for (size_t i = 0; i < layout->count && result == 0; i++) {
            result = apply_piece(&layout->pieces[i], nodes, from, to);
        }
        break;
    case FTL_SHAPE_INTERLEAVE:
    case FTL_SHAPE_MANY:
        result = ftl_set_range_policy(from, to, FTL_INTERLEAVE, &layout->nodes);
        break;
    case FTL_SHAPE_DEFAULT:
        result = ftl_set_range_policy(from, to, FTL_DEFAULT, NULL);
        break;
    }
    if (result != 0) {
        int error = errno;
        ftl_doubt("%s: %zu bytes were not placed on their nodes: %s: %s", action, (size_t)(to - from), refusal(error),
                  ftl_advice(error == ENODEV ? EINVAL : error));
        errno = error;
    }
    return result;
}

void ftl_doubt_layout(const ftl_layout *layout, const char *action) {
    if (layout->shape == FTL_SHAPE_MANY) {
        ftl_doubt("%s: the partition changes the node within pages or more than %d times, and each time would split "
                  "the mapping: "
                  "pages that come go in turn over the nodes instead: use larger chunks, or ft_local() and let each "
                  "thread touch "
                  "its part first, or ft_localise",
                  action, FTL_MAX_PIECES);
    }
}

/* ---- Moving ---- */

#define GROUP_PAGES 512 /* a huge page of 4 KiB pages: one query */

typedef struct mover {
    size_t page;
    uintptr_t first, last; /* whole pages */
    uintptr_t group_end;
    size_t count;
    void *pages[GROUP_PAGES];
    int target[GROUP_PAGES];
    size_t moved, left;
    int error;
} mover;

static bool is_wrong(int node, int target) {
    return node >= 0 && node != target;
}

static bool query(mover *m, int *nodes) {
    if (m->error == 0 && ftl_query_pages(m->pages, nodes, m->count) != 0) {
        m->error = errno;
    }
    return m->error == 0;
}

/* Moves the pages that are wrong, at most `most` of them. Returns how many it asked for. */
static size_t move_wrong(mover *m, const int *now, size_t most) {
    int status[GROUP_PAGES], targets[GROUP_PAGES];
    void *wrong[GROUP_PAGES];
    size_t count = 0;
    for (size_t i = 0; i < m->count && count < most; i++) {
        if (is_wrong(now[i], m->target[i])) {
            targets[count] = m->target[i];
            wrong[count++] = m->pages[i];
        }
    }
    if (count > 0 && m->error == 0 && ftl_move_pages(wrong, targets, status, count) != 0) {
        m->error = errno;
    }
    return count;
}

/* Moves the pages of a group that are wrong. They may be parts of one huge page, which moves as a whole: if the targets differ, one
 * page is moved first, and if others went with it, the huge page is split. */
static void flush_group(mover *m) {
    int before[GROUP_PAGES], now[GROUP_PAGES];
    bool differ = false;
    for (size_t i = 1; i < m->count; i++) {
        differ = differ || m->target[i] != m->target[0];
    }
    if (m->count == 0 || !query(m, before)) {
        m->count = 0;
        return;
    }
    memcpy(now, before, m->count * sizeof now[0]);
    size_t asked = 0;
    if (differ && (asked = move_wrong(m, now, 1)) > 0 && query(m, now)) {
        size_t went = 0;
        for (size_t i = 0; i < m->count; i++) {
            went += before[i] >= 0 && now[i] != before[i];
        }
        if (went > 1) {
            ftl_split_huge((uintptr_t)m->pages[0]);
        }
    }
    asked += move_wrong(m, now, GROUP_PAGES);
    if (asked > 0 && query(m, now)) {
        for (size_t i = 0; i < m->count; i++) {
            m->moved += before[i] >= 0 && now[i] >= 0 && now[i] != before[i];
            m->left += is_wrong(now[i], m->target[i]);
        }
    }
    m->count = 0;
}

static bool add_target(void *to_what, uintptr_t from, uintptr_t to, int node, const ftl_sharers *sharers) {
    (void)sharers;
    mover *m = to_what;
    from = from > m->first ? from : m->first;
    to = to < m->last ? to : m->last;
    for (uintptr_t at = from; at < to && m->error == 0; at += m->page) {
        if (at >= m->group_end) {
            flush_group(m);
            m->group_end = at - at % (GROUP_PAGES * m->page) + GROUP_PAGES * m->page;
        }
        m->pages[m->count] = (void *)at;
        m->target[m->count++] = node;
    }
    return m->error == 0;
}

static void move_in_turn(mover *m, uintptr_t address, size_t bytes, const ftl_nodes *nodes) {
    ft_verdict verdict;
    ft_partition interleaved = ft_interleaved();
    if (ft_verify((void *)address, bytes, &interleaved, &verdict) != 0) {
        m->error = errno;
        return;
    }
    if (verdict.present == 0 || verdict.share >= 0.99) {
        return;
    }
    size_t unit = ftl_turn_bytes(nodes, bytes);
    for (uintptr_t at = m->first; at < m->last && m->error == 0; at += m->page) {
        add_target(m, at, at + m->page, nodes->number[at / unit % nodes->count], NULL);
    }
}

/* `refused`: errno of the policies, or 0. That they were refused has been said, and is not to be hidden. */
static void doubt_moves(const mover *m, int refused, const char *action) {
    if (refused != 0 && m->error != 0) {
        ftl_doubt("%s: no policy was set (mbind: %s), and pages that were present were not moved (move_pages: %s): %s",
                  action, strerror(refused), strerror(m->error), ftl_advice(refused));
    } else if (refused != 0) {
        return;
    } else if (m->error != 0) {
        ftl_doubt("%s: pages that were present were not moved: move_pages: %s: %s", action, strerror(m->error),
                  ftl_advice(m->error));
    } else if (m->left > 0) {
        ftl_doubt("%s: %zu pages stayed on another node: they are shared with another process, pinned for I/O, parts "
                  "of a huge page that cannot be split, or the node is full: look at ft_report and at `numactl -H`",
                  action, m->left);
    }
}

ptrdiff_t ftl_place_pages(uintptr_t address, size_t bytes, const ft_partition *partition, unsigned flags,
                          const char *action) {
    const ftl_nodes *nodes = ftl_nodes_get();
    size_t page = ftl_page_bytes();
    mover m = {.page = page, .first = address + (page - address % page) % page, .count = 0};
    m.last = address + bytes - (address + bytes) % page;
    if (m.first >= m.last) {
        return 0;
    }
    if (nodes->count == 1 && (partition->kind != FT_BIND || partition->node == nodes->number[0])) {
        ftl_doubt("%s" FTL_ONE_NODE, action);
        return ftl_advise_huge(m.first, m.last, flags, action) != 0 && (flags & FT_STRICT) != 0 ? -1 : 0;
    }
    ftl_owners owners;
    if (ftl_owners_of(partition, nodes, &owners) != 0) {
        return -1;
    }
    ftl_layout layout;
    ftl_layout_of(partition, &owners, address, bytes, page, &layout);
    if (layout.modulus > 1 && m.first / page % layout.modulus != layout.remainder) {
        layout.shape = FTL_SHAPE_MANY; /* the kernel would begin with another node */
    }
    if ((flags & FTL_POPULATES) == 0) {
        ftl_doubt_layout(&layout, action);
    }
    int refused = ftl_apply(&layout, nodes, m.first, m.last, action) != 0 ? errno : 0, error = refused;
    if (ftl_advise_huge(m.first, m.last, ftl_page_flags(&layout, nodes, bytes, flags), action) != 0 && error == 0) {
        error = errno;
    }
    if (error != ENODEV && (flags & FT_KEEP_PRESENT) == 0 && partition->kind != FT_LOCAL) {
        if (partition->kind == FT_INTERLEAVED) {
            move_in_turn(&m, address, bytes, nodes);
        } else {
            ftl_for_pieces(partition, &owners, address, bytes, page, add_target, &m);
        }
        flush_group(&m);
        doubt_moves(&m, refused, action);
        error = error != 0 ? error : m.error != 0 ? m.error : m.left > 0 ? EIO : 0;
    }
    if (error == 0 && layout.is_coarser) {
        error = E2BIG;
    }
    ftl_owners_release(&owners);
    if (error != 0 && (flags & FT_STRICT) != 0) {
        errno = error;
        return -1;
    }
    return (ptrdiff_t)m.moved;
}

/* Also says whether the range is one: it neither wraps around nor begins at NULL. */
static int check_range(const void *pointer, size_t bytes, const ft_partition *partition) {
    if (bytes > PTRDIFF_MAX || (bytes > 0 && pointer == NULL) || (uintptr_t)pointer > UINTPTR_MAX - bytes) {
        return EINVAL;
    }
    return partition->kind == FT_REPLICATED ? EINVAL : ftl_check(partition);
}

static bool is_mapped(uintptr_t from, uintptr_t to, const char *action) {
    if (from >= to || ftl_is_mapped(from, to)) {
        return true;
    }
    ftl_doubt("%s: nothing was placed: the range, or a part of it, is not mapped: give memory that has been allocated",
              action);
    errno = EFAULT;
    return false;
}

ptrdiff_t ft_place(void *pointer, size_t bytes, const ft_partition *partition, unsigned flags) {
    const unsigned known = FT_HUGE_PAGES | FT_SMALL_PAGES | FT_KEEP_PRESENT | FT_STRICT;
    ft_partition local = ft_local();
    partition = partition == NULL ? &local : partition;
    if (check_range(pointer, bytes, partition) != 0 || (flags & ~known) != 0) {
        errno = EINVAL;
        return -1;
    }
    uintptr_t address = (uintptr_t)pointer, end = address + bytes;
    size_t page = ftl_page_bytes();
    if (!is_mapped(address + (page - address % page) % page, end - end % page, "ft_place")) {
        return -1;
    }
    return ftl_place_pages(address, bytes, partition, flags, "ft_place");
}

/* ---- Before I/O ---- */

static int populate(uintptr_t from, uintptr_t to, size_t page) {
    if (ftl_populate(from, to) == 0) {
        return 0;
    }
    bool may_be_old = errno == EINVAL || errno == EPERM || errno == ENOSYS;
    if (!may_be_old) {
        int error = errno;
        ftl_doubt("ft_localise: pages were not populated: madvise(MADV_POPULATE_WRITE): %s: %s", strerror(error),
                  error == EFAULT   ? "a part of the range lies behind the end of its file: make the file longer first"
                  : error == ENOMEM ? "memory is short, or a container's limit is reached: localise less"
                                    : ftl_advice(error));
        errno = error;
        return -1;
    }
    if (ftl_knows_populate() || !ftl_is_writable(from, to)) {
        ftl_doubt("ft_localise: pages were not populated: the memory, or a part of it, cannot be written: map it with "
                  "PROT_WRITE");
        errno = EACCES;
        return -1;
    }
    /* Before Linux 5.14: write each page without changing it, also if another thread writes to it. */
    for (uintptr_t at = from; at < to; at += page) {
        __atomic_fetch_or((unsigned char *)at, 0, __ATOMIC_RELAXED);
    }
    return 0;
}

typedef struct populator {
    size_t page;
    int node;
    uintptr_t first, last;
    int error;
} populator;

static bool populate_piece(void *to_what, uintptr_t from, uintptr_t to, int node, const ftl_sharers *sharers) {
    (void)sharers;
    populator *p = to_what;
    from = from > p->first ? from : p->first;
    to = to < p->last ? to : p->last;
    if (node == p->node && from < to && populate(from, to, p->page) != 0) {
        p->error = errno;
    }
    return p->error == 0;
}

/* For partitions with too many pieces for policies of the memory: the calling thread takes the policy of one node after another. */
static int populate_by_thread_policy(const ftl_layout *layout, const ft_partition *partition, const ftl_owners *owners,
                                     uintptr_t address, size_t bytes, populator p) {
    const ftl_nodes *nodes = owners->nodes;
    ftl_thread_policy before;
    if (ftl_get_thread_policy(&before) != 0 || ftl_set_range_policy(p.first, p.last, FTL_DEFAULT, NULL) != 0) {
        ftl_doubt_layout(layout, "ft_localise");
        return 0; /* pages in turn */
    }
    for (size_t i = 0; i < nodes->count && p.error == 0; i++) {
        ftl_node_set only = {{0}};
        p.node = nodes->number[i];
        ftl_set(only.words, (size_t)p.node);
        if (ftl_set_thread_policy(FTL_PREFERRED, &only) == 0) {
            ftl_for_pieces(partition, owners, address, bytes, p.page, populate_piece, &p);
        }
    }
    ftl_restore_thread_policy(&before);
    errno = p.error;
    return p.error == 0 ? 0 : -1;
}

int ft_localise(void *pointer, size_t bytes, const ft_partition *partition) {
    ft_partition local = ft_local();
    partition = partition == NULL ? &local : partition;
    if (check_range(pointer, bytes, partition) != 0) {
        errno = EINVAL;
        return -1;
    }
    if (bytes == 0) {
        return 0;
    }
    uintptr_t address = (uintptr_t)pointer;
    const ftl_nodes *nodes = ftl_nodes_get();
    size_t page = ftl_page_bytes();
    /* The pages at both ends too: they hold bytes of the range. */
    uintptr_t begin = address - address % page, end = address + bytes + (page - (address + bytes) % page) % page;
    if (!is_mapped(begin, end, "ft_localise") ||
        ftl_place_pages(address, bytes, partition, FTL_POPULATES, "ft_localise") < 0) {
        return -1;
    }
    populator p = {.page = page, .first = address + (page - address % page) % page};
    p.last = address + bytes - (address + bytes) % page;
    if (nodes->count > 1 && p.first < p.last) {
        ftl_owners owners;
        ftl_layout layout;
        if (ftl_owners_of(partition, nodes, &owners) != 0) {
            return -1;
        }
        ftl_layout_of(partition, &owners, address, bytes, page, &layout);
        bool is_fine = layout.shape == FTL_SHAPE_MANY || layout.modulus > 1;
        int done = is_fine ? populate_by_thread_policy(&layout, partition, &owners, address, bytes, p) : 0;
        ftl_owners_release(&owners);
        if (done != 0) {
            return -1;
        }
    }
    return populate(begin, end, page);
}
