// SPDX-License-Identifier: Apache-2.0 OR MIT
// Edge cases of the allocator's contract: failures and their errno, errno left alone by success, zero sizes,
// alignments, mremap and realloc that move, and madvise.
// corpus: build = gcc -O0 -g -Wall -Wextra -Werror -Wno-alloc-size-larger-than -Wno-use-after-free -fno-builtin {src} -o {out}
#define _GNU_SOURCE
#include <errno.h>
#include <malloc.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define SHOW(expression) printf("%-60s %ld\n", #expression, (long)(expression))

int main(void) {
    size_t huge = SIZE_MAX / 2 + 1;
    void *block = NULL;
    errno = 0;
    SHOW(malloc(huge) == NULL);
    SHOW(errno == ENOMEM);
    errno = 0;
    SHOW(calloc(huge, 4) == NULL);
    SHOW(errno == ENOMEM);
    errno = 0;
    SHOW(posix_memalign(&block, 3, 100) == EINVAL);
    SHOW(posix_memalign(&block, 64, huge) == ENOMEM);
    SHOW(errno == 0);
    SHOW(mmap(NULL, 0, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED);
    SHOW(errno == EINVAL);
    SHOW(mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, -1, 0) == MAP_FAILED);
    SHOW(errno == EBADF);
    SHOW(munmap((void *)1, 4096) == -1);
    SHOW(errno == EINVAL);

    errno = 1234;
    block = malloc(300000);
    SHOW(block != NULL && errno == 1234);
    memset(block, 7, 300000);
    char *larger = realloc(block, 3000000);
    SHOW(larger[0] == 7 && larger[299999] == 7 && errno == 1234);
    SHOW(realloc(larger, huge) == NULL);
    SHOW(errno == ENOMEM && larger[299999] == 7);
    errno = 1234;
    larger = realloc(larger, 100);
    SHOW(larger[99] == 7 && errno == 1234);
    free(larger);
    SHOW(errno == 1234);
    free(NULL);
    block = realloc(NULL, 100000);
    SHOW(block != NULL);
    SHOW(realloc(block, 0) == NULL);
    block = malloc(0);
    SHOW(block != NULL);
    free(block);

    for (size_t alignment = 16; alignment <= (size_t)1 << 21; alignment <<= 1) {
        char *aligned = aligned_alloc(alignment, alignment * 2), *second = memalign(alignment, 70001);
        int both = ((uintptr_t)aligned | (uintptr_t)second) % alignment == 0;
        printf("alignment %zu: %s\n", alignment, aligned && second && both ? "kept" : "broken");
        free(aligned);
        free(second);
    }
    block = valloc(70000);
    SHOW((uintptr_t)block % 4096 == 0);
    free(block);
    block = pvalloc(70000);
    SHOW((uintptr_t)block % 4096 == 0);
    free(block);
    block = reallocarray(NULL, 1000, 1000);
    SHOW(malloc_usable_size(block) >= 1000000);
    SHOW(reallocarray(block, huge, 4) == NULL);
    free(block);
    int zero = 1;
    char *zeroed = calloc(1000, 1000);
    for (int i = 0; i < 1000000; i++)
        zero &= zeroed[i] == 0;
    SHOW(zero);
    free(zeroed);

    char *map = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memset(map, 9, 1 << 20);
    map = mremap(map, 1 << 20, 4 << 20, MREMAP_MAYMOVE);
    SHOW(map != MAP_FAILED && map[(1 << 20) - 1] == 9 && map[1 << 20] == 0);
    SHOW(madvise(map, 1 << 20, MADV_DONTNEED));
    SHOW(map[0]);
    char *fixed = mmap(map + 65536, 65536, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    SHOW(fixed == map + 65536);
    char *target = mmap(NULL, 1 << 20, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    SHOW(mremap(map + (1 << 20), 1 << 20, 1 << 20, MREMAP_MAYMOVE | MREMAP_FIXED, target) == target);
    SHOW(munmap(map, 65536));
    SHOW(munmap(target, 1 << 20));
    return 0;
}
