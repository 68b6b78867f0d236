/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * A program of someone who installed libfirsttouch: allocates an array, sets it, and verifies it. */
#include <firsttouch.h>
#include <stdio.h>
#include <string.h>

int main(void) {
    const size_t bytes = (size_t)16 << 20;
    ft_partition blocked = ft_over_nodes(ft_blocked(2));
    void *memory = ft_alloc(bytes, &blocked, 0);
    if (memory == NULL) {
        perror("consumer: cannot allocate");
        return 1;
    }
    memset(memory, 1, bytes);
    ft_verdict verdict;
    const int failed = ft_verify(memory, bytes, &blocked, &verdict);
    if (failed) {
        printf("libfirsttouch %s: %s\n", ft_version(), ft_last_doubt());
    } else {
        printf("libfirsttouch %s: %zu of %zu pages present, %zu on target\n", ft_version(), verdict.present,
               verdict.pages, verdict.on_target);
    }
    ft_free(memory);
    return !failed && verdict.present != verdict.pages;
}
