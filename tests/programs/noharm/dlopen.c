// SPDX-License-Identifier: Apache-2.0 OR MIT
// Loads and unloads a library (argument 1) 200 times: code and call sites come and go at the same or other addresses.
// corpus: build = gcc -O2 -g -Wall -Wextra -Werror {src} -o {out} -ldl
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv) {
    if (argc != 2)
        return 2;
    long sum = 0;
    for (int i = 0; i < 200; i++) {
        void *library = dlopen(argv[1], i % 2 ? RTLD_NOW : RTLD_LAZY);
        if (!library) {
            fprintf(stderr, "%s\n", dlerror());
            return 1;
        }
        // POSIX's way around ISO C, which has no conversion from object to function pointer.
        int (*answer)(int);
        *(void **)(&answer) = dlsym(library, "plugin_answer");
        if (!answer)
            return 1;
        sum += answer(i);
        if (dlclose(library) != 0)
            return 1;
    }
    void *missing = dlopen("/nonexistent/library.so", RTLD_NOW);
    printf("sum %ld, a missing library is %s, dlsym(RTLD_DEFAULT, \"malloc\") %s\n", sum, missing ? "there" : "refused",
           dlsym(RTLD_DEFAULT, "malloc") ? "found" : "not found");
    return 0;
}
