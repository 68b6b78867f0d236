/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * cpus [LIBRARY]: prints how many CPUs the library finds; with OpenMP if it is compiled so, or after LIBRARY has been opened.
 */
#include "firsttouch.h"

#include <dlfcn.h>
#include <stdio.h>

int main(int count, char **arguments) {
    if (count > 1 && dlopen(arguments[1], RTLD_NOW | RTLD_LOCAL) == NULL) {
        fprintf(stderr, "cpus: %s\n", dlerror());
        return 2;
    }
    printf("%zu\n", ft_team_size(0));
    int threads = 0;
#pragma omp parallel reduction(+ : threads)
    threads++;
    return threads < 1;
}
