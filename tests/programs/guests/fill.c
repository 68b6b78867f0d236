// SPDX-License-Identifier: Apache-2.0 OR MIT
// Touches memory under the policy that it inherits: fill MIB base|huge end|wait. `base`: pages of 4 KiB only; `wait`: prints
// `ready`, and keeps the memory until it is killed.
// corpus: build = gcc -O2 -g -Wall -Wextra -Werror {src} -o {out}
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int main(int count, char **words) {
    if (count != 4)
        return 2;
    size_t bytes = strtoul(words[1], NULL, 10) << 20;
    char *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED || madvise(memory, bytes, strcmp(words[2], "base") ? MADV_HUGEPAGE : MADV_NOHUGEPAGE)) {
        perror("fill");
        return 1;
    }
    for (size_t at = 0; at < bytes; at += 4096)
        memory[at] = 1;
    if (strcmp(words[3], "wait") == 0) {
        puts("ready");
        fflush(stdout);
        while (pause())
            ;
    }
    return 0;
}
