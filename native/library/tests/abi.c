/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * Prints what programs have compiled in: sizes, offsets and values. run.sh compares it with abi.txt, which changes only with the
 * library's version.
 */
#include "firsttouch.h"

#include <stdio.h>

#define SIZE(type) printf("sizeof " #type " %zu\n", sizeof(type))
#define OFFSET(type, field) printf(#type "." #field " %zu\n", offsetof(type, field))
#define VALUE(name) printf(#name " %zu\n", (size_t)(name))

int main(void) {
    SIZE(ft_partition);
    OFFSET(ft_partition, kind);
    OFFSET(ft_partition, unit);
    OFFSET(ft_partition, parts);
    OFFSET(ft_partition, chunk);
    OFFSET(ft_partition, bounds);
    OFFSET(ft_partition, weights);
    OFFSET(ft_partition, node);
    OFFSET(ft_partition, team);
    SIZE(ft_verdict);
    OFFSET(ft_verdict, pages);
    OFFSET(ft_verdict, present);
    OFFSET(ft_verdict, on_target);
    OFFSET(ft_verdict, border);
    OFFSET(ft_verdict, share);
    OFFSET(ft_verdict, node_pages);
    OFFSET(ft_verdict, error);
    VALUE(FT_LOCAL);
    VALUE(FT_BLOCKED);
    VALUE(FT_CYCLIC);
    VALUE(FT_BY_BOUNDS);
    VALUE(FT_INTERLEAVED);
    VALUE(FT_WEIGHTED);
    VALUE(FT_REPLICATED);
    VALUE(FT_BIND);
    VALUE(FT_THREADS);
    VALUE(FT_NODES);
    VALUE(FT_HUGE_PAGES);
    VALUE(FT_SMALL_PAGES);
    VALUE(FT_KEEP_PRESENT);
    VALUE(FT_STRICT);
    VALUE(FT_SMALL_BYTES);
    return 0;
}
