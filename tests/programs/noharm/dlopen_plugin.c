// SPDX-License-Identifier: Apache-2.0 OR MIT
// The library that dlopen.c loads and unloads: it allocates in its constructor and frees in its destructor.
// corpus: build = gcc -O2 -g -Wall -Wextra -Werror -fPIC -shared {src} -o {out}
#include <stdlib.h>
#include <string.h>

static char *block;

__attribute__((constructor)) static void load(void) {
    block = malloc(256 * 1024);
    if (block)
        memset(block, 3, 256 * 1024);
}

__attribute__((destructor)) static void unload(void) {
    free(block);
}

int plugin_answer(int question);

int plugin_answer(int question) {
    return block ? question + block[256 * 1024 - 1] : -1;
}
