/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * A verdict in words.
 */
#include "library.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

typedef struct writer {
    char *text;
    size_t capacity;
    size_t length; /* of the whole text, as far as it goes */
} writer;

__attribute__((format(printf, 2, 3))) static void add(writer *w, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    bool fits = w->length < w->capacity;
    int more = vsnprintf(fits ? w->text + w->length : NULL, fits ? w->capacity - w->length : 0, format, arguments);
    va_end(arguments);
    w->length += more > 0 ? (size_t)more : 0;
}

static void add_bytes(writer *w, size_t bytes) {
    static const char *const units[] = {"KiB", "MiB", "GiB", "TiB"};
    double value = (double)bytes / 1024;
    size_t unit = 0;
    while (value >= 1024 && unit + 1 < sizeof units / sizeof units[0]) {
        value /= 1024;
        unit++;
    }
    if (bytes < 1024) {
        add(w, "%zu bytes", bytes);
    } else {
        add(w, "%.1f %s", value, units[unit]);
    }
}

static void add_partition(writer *w, const ft_partition *p) {
    const char *what = p->unit == FT_NODES ? "nodes" : "threads";
    switch (p->kind) {
    case FT_BLOCKED:
        add(w, "in equal parts for %s", what);
        break;
    case FT_CYCLIC:
        add(w, "in chunks of %zu bytes in turn for %s", p->chunk, what);
        break;
    case FT_BY_BOUNDS:
        add(w, "in %zu parts by bounds for %s", p->parts, what);
        break;
    case FT_WEIGHTED:
        add(w, "in %zu parts by weight for %s", p->parts, what);
        break;
    case FT_INTERLEAVED:
        add(w, "with pages in turn over all nodes");
        break;
    case FT_REPLICATED:
        add(w, "with a copy on each node");
        break;
    case FT_BIND:
        add(w, "on node %d", p->node);
        break;
    default:
        add(w, "on the node of the calling thread");
        break;
    }
    if (p->parts != 0 && (p->kind == FT_BLOCKED || p->kind == FT_CYCLIC)) {
        add(w, " 0 to %zu", p->parts - 1);
    }
}

typedef struct wanted {
    size_t page;
    uintptr_t first, last;
    size_t pages[FTL_MAX_NODES];
} wanted;

static bool want_piece(void *to_what, uintptr_t from, uintptr_t to, int node, const ftl_sharers *sharers) {
    (void)sharers;
    wanted *w = to_what;
    from = from > w->first ? from : w->first;
    to = to < w->last ? to : w->last;
    w->pages[node] += from < to ? (to - from) / w->page : 0;
    return true;
}

/* How many pages each node should have, if the partition says so for each page. */
static bool want_pages(const ft_partition *p, uintptr_t address, size_t bytes, wanted *w) {
    ftl_owners owners;
    size_t page = ftl_page_bytes();
    *w = (wanted){.page = page, .first = address + (page - address % page) % page};
    w->last = address + bytes - (address + bytes) % page;
    if (!ftl_has_owners(p) || ftl_owners_of(p, ftl_nodes_get(), &owners) != 0) {
        return false;
    }
    ftl_for_pieces(p, &owners, address, bytes, page, want_piece, w);
    ftl_owners_release(&owners);
    return true;
}

static void add_nodes(writer *w, const ft_verdict *v, const wanted *should) {
    for (int node = 0; node < 64; node++) {
        size_t want = should == NULL ? 0 : should->pages[node];
        for (int high = 64; node == 63 && should != NULL && high < FTL_MAX_NODES; high++) {
            want += should->pages[high];
        }
        if (v->node_pages[node] == 0 && want == 0) {
            continue;
        }
        add(w, "  node %d%s: %zu pages", node, node == 63 ? " and above" : "", v->node_pages[node]);
        if (should != NULL) {
            add(w, ", %zu wanted", want);
        }
        add(w, "\n");
    }
}

size_t ft_report(char *text, size_t text_bytes, const char *name, const void *pointer, size_t bytes,
                 const ft_partition *partition) {
    writer w = {text, text == NULL ? 0 : text_bytes, 0};
    ft_partition local = ft_local();
    partition = partition == NULL ? &local : partition;
    if (w.capacity > 0) {
        text[0] = '\0';
    }
    ft_verdict verdict;
    int failed = ft_verify(pointer, bytes, partition, &verdict) != 0 ? errno : 0;
    add(&w, "%s: ", name != NULL ? name : "memory");
    if (failed == EINVAL) {
        add(&w, "not judged: the range or the partition is invalid\n");
        return w.length;
    }
    add_bytes(&w, bytes);
    add(&w, ", wanted ");
    add_partition(&w, partition);
    if (failed != 0) {
        const char *doubt = ft_last_doubt();
        add(&w, ": not judged: %s\n", doubt != NULL ? doubt : strerror(failed));
        return w.length;
    }
    if (verdict.present == 0) {
        add(&w, ": none of its %zu pages is present: nothing has touched them\n", verdict.pages);
        return w.length;
    }
    add(&w, ": %zu of %zu present pages on target (%.1f %%), %zu of %zu pages present\n", verdict.on_target,
        verdict.present, verdict.share * 100, verdict.present, verdict.pages);
    wanted should;
    bool is_known = want_pages(partition, (uintptr_t)pointer, bytes, &should);
    add_nodes(&w, &verdict, is_known ? &should : NULL);
    return w.length;
}
