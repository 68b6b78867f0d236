/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * lost BYTES: ft_realloc of the only block, 1 MiB, to BYTES while the process has no memory left. It may fail, but the block stays.
 */
#include "check.h"
#include "firsttouch.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#define MIB ((size_t)1 << 20)

int main(int count, char **arguments) {
    static void *taken[1 << 20];
    size_t bytes = count > 1 ? strtoul(arguments[1], NULL, 10) : 1, taken_count = 0;
    unsigned char *at = ft_alloc(MIB, NULL, 0);
    memset(at, 1, MIB);
    struct rlimit before, none;
    getrlimit(RLIMIT_AS, &before);
    none = (struct rlimit){0, before.rlim_max};
    setrlimit(RLIMIT_AS, &none);
    for (size_t size = MIB; size >= 16; size /= 2) {
        while (taken_count < sizeof taken / sizeof taken[0] && (taken[taken_count] = malloc(size)) != NULL) {
            taken_count++;
        }
    }
    unsigned char *moved = ft_realloc(at, bytes);
    int error = errno;
    setrlimit(RLIMIT_AS, &before);
    while (taken_count > 0) {
        free(taken[--taken_count]);
    }
    if (bytes > MIB) {
        CHECK(moved == NULL && error == ENOMEM && ft_size(at) == MIB && at[MIB - 1] == 1, "%p, errno %d, %zu bytes",
              (void *)moved, error, ft_size(at));
    } else {
        CHECK(moved == at && ft_size(at) == bytes && at[bytes - 1] == 1, "%p, errno %d, %zu bytes", (void *)moved,
              error, ft_size(at));
    }
    if (failures == 0) {
        ft_free(at);
        CHECK(ft_size(at) == 0, "freed");
    }
    return checked("lost");
}
