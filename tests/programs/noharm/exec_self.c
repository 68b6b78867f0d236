// SPDX-License-Identifier: Apache-2.0 OR MIT
// Executes itself three times. Each image prints what could have leaked into it: the preload variable, the number of
// environment entries, the open file descriptors, and the number of its shared libraries as the kernel sees them.
// corpus: build = gcc -O2 -g -Wall -Wextra -Werror {src} -o {out}
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

extern char **environ;

static int compare(const void *left, const void *right) {
    return *(const int *)left - *(const int *)right;
}

static void print_open_files(void) {
    DIR *directory = opendir("/proc/self/fd");
    if (!directory)
        return;
    int numbers[1024], count = 0;
    struct dirent *entry;
    while ((entry = readdir(directory)) && count < 1024)
        if (entry->d_name[0] != '.' && atoi(entry->d_name) != dirfd(directory))
            numbers[count++] = atoi(entry->d_name);
    closedir(directory);
    qsort(numbers, (size_t)count, sizeof numbers[0], compare);
    printf("  open files:");
    for (int i = 0; i < count; i++)
        printf(" %d", numbers[i]);
    puts("");
}

int main(int argc, char **argv) {
    int left = argc > 1 ? atoi(argv[1]) : 3;
    char *block = malloc(1 << 20);
    if (!block)
        return 1;
    memset(block, left, 1 << 20);
    int entries = 0;
    while (environ[entries])
        entries++;
    const char *preload = getenv("LD_PRELOAD");
    printf("image %d: LD_PRELOAD %s, %d environment entries\n", left, preload ? preload : "unset", entries);
    print_open_files();
    fflush(stdout);
    if (left == 0)
        return 0;
    char next[16];
    snprintf(next, sizeof next, "%d", left - 1);
    char *arguments[] = {argv[0], next, NULL};
    execv("/proc/self/exe", arguments);
    return 1;
}
