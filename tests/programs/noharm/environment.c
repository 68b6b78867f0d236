// SPDX-License-Identifier: Apache-2.0 OR MIT
// Prints its environment, as it is in `environ` and as the loader and getenv see it.
// corpus: build = gcc -O2 -g -Wall -Wextra -Werror {src} -o {out}
#include <stdio.h>
#include <stdlib.h>

extern char **environ;

int main(int argc, char **argv, char **from_main) {
    (void)argc;
    (void)argv;
    for (char **entry = environ; *entry; entry++)
        puts(*entry);
    int entries = 0;
    while (from_main[entries])
        entries++;
    const char *names[] = {"LD_PRELOAD", "LD_AUDIT", "LD_LIBRARY_PATH", "FIRSTTOUCH_AGENT", "OMP_TOOL_LIBRARIES"};
    printf("main's third argument has %d entries\n", entries);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        printf("%s=%s\n", names[i], getenv(names[i]) ? getenv(names[i]) : "(unset)");
    return 0;
}
