// SPDX-License-Identifier: Apache-2.0 OR MIT
// Memory from OpenMP allocators with each partition trait, and on which nodes its pages are, after one thread touched all of it. A line
// for each: what was asked for, pages by node of the first and of the second half, and whether neighbours are on different nodes.
//   openmp_allocators MIB
// corpus: build = gcc -O2 -g -Wall -Wextra -Werror -fopenmp {src} -o {out}
#define _GNU_SOURCE
#include <omp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { NODES = 8, PAGE = 4096 };

static omp_allocator_handle_t allocator(omp_alloctrait_value_t partition) {
    omp_alloctrait_t traits[] = {{omp_atk_alignment, 64}, {omp_atk_partition, partition}};
    return omp_init_allocator(omp_default_mem_space, 2, traits);
}

/* Whole pages of [block, block + bytes), each asked for alone: the kernel's own answer. */
static int say(const char *what, const char *block, size_t bytes) {
    uintptr_t from = ((uintptr_t)block + PAGE - 1) / PAGE * PAGE, to = ((uintptr_t)block + bytes) / PAGE * PAGE;
    size_t pages = (to - from) / PAGE, by_node[2][NODES] = {{0}}, changes = 0;
    int before = -1;
    for (size_t i = 0; i < pages; i++) {
        void *page = (void *)(from + i * PAGE);
        int node = -1;
        if (syscall(SYS_move_pages, 0, 1ul, &page, NULL, &node, 0) != 0 || node < 0 || node >= NODES) {
            return 1;
        }
        by_node[i >= pages / 2][node]++;
        changes += i > 0 && node != before;
        before = node;
    }
    printf("%s first %zu %zu second %zu %zu changes %zu\n", what, by_node[0][0], by_node[0][1], by_node[1][0],
           by_node[1][1], changes);
    return 0;
}

int main(int count, char **arguments) {
    size_t bytes = (size_t)(count > 1 ? atoi(arguments[1]) : 4) << 20;
    static const struct {
        const char *name;
        omp_alloctrait_value_t value;
    } asked[] = {{"environment", omp_atv_environment},
                 {"blocked", omp_atv_blocked},
                 {"interleaved", omp_atv_interleaved},
                 {"nearest", omp_atv_nearest}};
    int failed = 0;
    for (size_t i = 0; i < sizeof asked / sizeof asked[0]; i++) {
        omp_allocator_handle_t handle = allocator(asked[i].value);
        char *block = omp_alloc(bytes, handle);
        if (block == NULL) {
            return 1;
        }
        memset(block, 1, bytes);
        failed |= say(asked[i].name, block, bytes);
        block = omp_realloc(block, 2 * bytes, handle, handle);
        if (block == NULL) {
            return 1;
        }
        memset(block + bytes, 2, bytes);
        for (size_t at = 0; at < 2 * bytes; at++) {
            failed |= block[at] != (at < bytes ? 1 : 2);
        }
        printf("grown ");
        failed |= say(asked[i].name, block, 2 * bytes);
        omp_free(block, handle);
        omp_destroy_allocator(handle);
    }
    /* Memory that is handed out again keeps no policy. */
    char *plain = malloc(bytes);
    if (plain == NULL) {
        return 1;
    }
    memset(plain, 1, bytes);
    failed |= say("plain", plain, bytes);
    free(plain);
    return failed;
}
