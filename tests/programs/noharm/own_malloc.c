// SPDX-License-Identifier: Apache-2.0 OR MIT
// Brings its own allocator, as programs linked with tcmalloc, jemalloc or mimalloc do: the program's malloc must be
// the one that is used, and its free must never see a block of another allocator.
// corpus: build = gcc -O2 -g -Wall -Wextra -Werror -fno-builtin {src} -o {out}
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

enum { ARENA_BYTES = 256 << 20 };

void *malloc(size_t size);
void free(void *block);
void *calloc(size_t count, size_t size);
void *realloc(void *block, size_t size);

static char *arena;
static size_t used;
static int calls, foreign_frees;

void *malloc(size_t size) {
    if (!arena) {
        arena = mmap(NULL, ARENA_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (arena == MAP_FAILED)
            return NULL;
    }
    size_t bytes = ((size + 15) & ~(size_t)15) + 16;
    if (used + bytes > ARENA_BYTES)
        return NULL;
    char *block = arena + used;
    used += bytes;
    memcpy(block, &size, sizeof size);
    calls++;
    return block + 16;
}

void free(void *block) {
    if (block && ((char *)block < arena || (char *)block >= arena + ARENA_BYTES))
        foreign_frees++;
}

void *calloc(size_t count, size_t size) {
    return malloc(count * size);
} // the arena is zero, nothing is reused

void *realloc(void *block, size_t size) {
    void *fresh = malloc(size);
    if (block && fresh) {
        size_t old_size;
        memcpy(&old_size, (char *)block - 16, sizeof old_size);
        memcpy(fresh, block, old_size < size ? old_size : size);
    }
    return fresh;
}

int main(void) {
    int before = calls;
    char *volatile block = malloc(1 << 20);
    block = realloc(block, 2 << 20);
    char *volatile zeroed = calloc(1000, 1000);
    if (!block || !zeroed)
        return 1;
    memset(block, 1, 2 << 20);
    free(block);
    free(zeroed);
    printf("own calls %d, foreign frees %d\n", calls - before, foreign_frees);
    return 0;
}
