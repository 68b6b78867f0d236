// SPDX-License-Identifier: Apache-2.0 OR MIT
// Leaves frames that allocated memory with longjmp, as interpreters do for errors.
// corpus: build = gcc -O2 -g -Wall -Wextra -Werror -Wno-infinite-recursion {src} -o {out}
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK_BYTES = 200 * 1000 };

static jmp_buf catch_point;
static char *volatile live_blocks[16];

__attribute__((noinline)) static void descend(int depth, int throw_at) {
    char *block = malloc(BLOCK_BYTES);
    if (!block)
        exit(1);
    memset(block, depth, BLOCK_BYTES);
    live_blocks[depth] = block;
    if (depth == throw_at)
        longjmp(catch_point, depth + 1);
    descend(depth + 1, throw_at);
    block[0]++; // keeps the call from being a tail call
}

int main(void) {
    for (volatile int round = 0; round < 200; round++) {
        int thrown = setjmp(catch_point);
        if (thrown == 0)
            descend(0, round % 16);
        for (int i = 0; i < thrown; i++) {
            if (live_blocks[i][BLOCK_BYTES - 1] != i)
                return 1;
            free(live_blocks[i]);
        }
        if (thrown != round % 16 + 1)
            return 1;
    }
    puts("200 longjmps over frames that own memory");
    return 0;
}
