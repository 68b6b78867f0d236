// SPDX-License-Identifier: Apache-2.0 OR MIT
// Allocates before main: in .preinit_array (before any library's constructor has run, so before the agent's), in
// constructors of the earliest and of the default priority, and frees in destructors.
// corpus: build = gcc -O2 -g -Wall -Wextra -Werror {src} -o {out}
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { BLOCK_BYTES = 300 * 1000 };

static char *blocks[4];

static void allocate(int slot) {
    char *small = malloc(24);
    char *zeroed = calloc(1000, 300);
    char *block = malloc(10);
    block = block ? realloc(block, BLOCK_BYTES) : NULL;
    void *mapping = mmap(NULL, BLOCK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (!small || !zeroed || !block || mapping == MAP_FAILED || zeroed[299999] != 0)
        abort();
    memset(block, 'a' + slot, BLOCK_BYTES);
    blocks[slot] = block;
    free(small);
    free(zeroed);
    munmap(mapping, BLOCK_BYTES);
}

static void before_libraries(void) {
    allocate(0);
}

__attribute__((section(".preinit_array"), used)) static void (*preinit)(void) = before_libraries;

__attribute__((constructor(101))) static void first(void) {
    allocate(1);
}

__attribute__((constructor)) static void second(void) {
    allocate(2);
}

__attribute__((destructor)) static void last(void) {
    for (int i = 0; i < 4; i++)
        free(blocks[i]);
}

static void at_exit(void) {
    free(blocks[3]);
    blocks[3] = malloc(BLOCK_BYTES);
}

int main(void) {
    allocate(3);
    atexit(at_exit);
    for (int i = 0; i < 4; i++)
        printf("%c%c ", blocks[i][0], blocks[i][BLOCK_BYTES - 1]);
    puts("");
    return 0;
}
