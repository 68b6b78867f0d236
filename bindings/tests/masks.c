/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * Prints the nodes that the process may use, and those of the threads of a team that nobody joined: "0 1: 0 0 1 1". in-guest.sh runs it
 * with masks, bound threads and memory policies.
 */
#include <firsttouch.h>

#include <stdio.h>

int main(void) {
    int numbers[64];
    size_t count = ft_nodes(numbers, 64);
    for (size_t i = 0; i < count; i++) {
        printf("%s%d", i > 0 ? " " : "", numbers[i]);
    }
    printf(":");
    for (size_t i = 0; i < ft_team_size(0); i++) {
        printf(" %d", ft_team_node(0, i));
    }
    printf("\n");
    int threads = 0;
#pragma omp parallel reduction(+ : threads)
    threads++;
    return threads < 1;
}
