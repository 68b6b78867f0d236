/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * Checks of the library's tests: a failed one is printed, and decides the exit status.
 */
#ifndef CHECK_H
#define CHECK_H

#include <stdio.h>

static int failures;

#define CHECK(what, ...)                                               \
    do {                                                               \
        if (!(what)) {                                                 \
            failures++;                                                \
            printf("%s:%d: not true: %s:", __FILE__, __LINE__, #what); \
            printf(" " __VA_ARGS__);                                   \
            printf("\n");                                              \
        }                                                              \
    } while (0)

/* The end of main. */
static inline int checked(const char *name) {
    printf("%s: %s\n", name, failures == 0 ? "as expected" : "FAILED");
    return failures != 0;
}

#endif
