/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * What the process may use, as policy.c finds it: with answers of this file instead of the kernel's, the OpenMP runtime's and the
 * loader's. With NO_RUNTIME the program has no OpenMP runtime of its own.
 */
#include <link.h>
#include <stdarg.h>
#include <stddef.h>

static long fake_syscall(long number, ...);
static int fake_dl_iterate_phdr(int (*each)(struct dl_phdr_info *, size_t, void *), void *to_what);
#define syscall fake_syscall
#define dl_iterate_phdr fake_dl_iterate_phdr
#include "../policy.c"
#include "check.h"

static ftl_cpu_set mask, cpuset;              /* of the threads, and what they may be set to */
static ftl_node_set mems, bound;              /* of the cpuset, and of the thread's policy */
static int mode;                              /* of the thread's policy */
static bool are_places_known;                 /* the runtime's functions answer */
static const char *loaded[] = {"", "", NULL}; /* shared objects */

static long fake_syscall(long number, ...) {
    va_list list;
    va_start(list, number);
    if (number == SYS_sched_getaffinity) {
        (void)va_arg(list, pid_t);
        size_t bytes = va_arg(list, size_t);
        memcpy(va_arg(list, void *), &mask, bytes);
    } else if (number == SYS_sched_setaffinity) {
        (void)va_arg(list, int);
        size_t bytes = va_arg(list, size_t);
        memcpy(&mask, va_arg(list, void *), bytes);
        for (size_t i = 0; i < sizeof mask.words / sizeof mask.words[0]; i++) {
            mask.words[i] &= cpuset.words[i];
        }
    } else if (number == SYS_get_mempolicy) {
        int *to_mode = va_arg(list, int *);
        ftl_node_set *nodes = va_arg(list, ftl_node_set *);
        *nodes = to_mode == NULL ? mems : bound;
        if (to_mode != NULL) {
            *to_mode = mode;
        }
    }
    va_end(list);
    return 0;
}

static int fake_dl_iterate_phdr(int (*each)(struct dl_phdr_info *, size_t, void *), void *to_what) {
    int answer = 0;
    for (size_t i = 0; loaded[i] != NULL && answer == 0; i++) {
        struct dl_phdr_info object = {.dlpi_name = loaded[i]};
        answer = each(&object, sizeof object, to_what);
    }
    return answer;
}

#ifndef NO_RUNTIME
/* Two places, as OMP_PLACES={1,2},{5} gives. */
int omp_get_num_places(void) {
    return are_places_known ? 2 : 0;
}
int omp_get_place_num_procs(int place) {
    return place == 0 ? 2 : 1;
}
void omp_get_place_proc_ids(int place, int *cpus) {
    cpus[0] = place == 0 ? 1 : 5;
    if (place == 0) {
        cpus[1] = 2;
    }
}
#endif

static unsigned long cpus_found(bool expected_guess) {
    ftl_cpu_set cpus;
    bool is_guess;
    CHECK(ftl_allowed_cpus(&cpus, &is_guess) == 0, "-");
    CHECK(is_guess == expected_guess, "guess: %d", is_guess);
    return cpus.words[0];
}

static void test_cpus(void) {
    static const char *const names[] = {"OMP_PROC_BIND", "OMP_PLACES", "GOMP_CPU_AFFINITY", "KMP_AFFINITY"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        unsetenv(names[i]);
    }
    cpuset.words[0] = 0xff;
    mask.words[0] = 0x0f;
    are_places_known = true;
    loaded[1] = "/usr/lib/libgomp.so.1";
    CHECK(cpus_found(false) == 0x0f, "nothing is bound: the mask");
    setenv("OMP_PROC_BIND", "FALSE", 1);
    setenv("OMP_PLACES", "cores", 1);
    CHECK(cpus_found(false) == 0x0f, "nothing is bound, by order: the mask");
    unsetenv("OMP_PLACES");
    setenv("OMP_PROC_BIND", " ", 1);
    CHECK(cpus_found(false) == 0x0f, "an empty value says nothing");
    setenv("OMP_PROC_BIND", " close", 1);
    mask.words[0] = 0x02;
#ifndef NO_RUNTIME
    CHECK(cpus_found(false) == 0x26, "the places of the runtime");
    are_places_known = false;
    CHECK(cpus_found(false) == 0x02, "a runtime without places binds nothing");
#else
    static const char *const runtimes[] = {"/usr/lib/libgomp.so.1", "/x/libgomp-a34b3233.so.1.0.0",
                                           "/usr/lib/libomp.so.5",  "/usr/lib/libomp-14.so.5",
                                           "/opt/libiomp5.so",      "libnvomp.so"};
    for (size_t i = 0; i < sizeof runtimes / sizeof runtimes[0]; i++) {
        loaded[1] = runtimes[i];
        CHECK(cpus_found(true) == 0xff, "%s is loaded, and does not say: the cpuset", runtimes[i]);
        CHECK(mask.words[0] == 0x02, "the mask is as before");
    }
    static const char *const others[] = {"/usr/lib/libm.so.6", "/usr/lib/libompitrace.so", "/usr/lib/libc.so.6"};
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        loaded[1] = others[i];
        CHECK(cpus_found(false) == 0x02, "%s is no runtime: nobody has bound the thread", others[i]);
    }
#endif
}

static unsigned long nodes_found(int policy, unsigned long nodes) {
    ftl_node_set found;
    mode = policy;
    bound.words[0] = nodes;
    CHECK(ftl_allowed_nodes(&found) == 0, "-");
    return found.words[0];
}

static void test_nodes(void) {
    mems.words[0] = 0x0f;
    CHECK(nodes_found(MPOL_DEFAULT, 0) == 0x0f, "no policy");
    CHECK(nodes_found(MPOL_BIND, 0x02) == 0x02, "numactl --membind=1");
    CHECK(nodes_found(MPOL_BIND | 1 << 13, 0x03) == 0x03, "numactl --balancing --membind=0,1");
    CHECK(nodes_found(MPOL_BIND | MPOL_F_STATIC_NODES, 0x12) == 0x02, "nodes by number: one is not allowed");
    CHECK(nodes_found(MPOL_BIND | MPOL_F_STATIC_NODES, 0x10) == 0x0f,
          "none is allowed: the kernel takes those of the cpuset");
    CHECK(nodes_found(MPOL_BIND | MPOL_F_RELATIVE_NODES, 0x02) == 0x0f, "relative numbers are no nodes");
    CHECK(nodes_found(MPOL_PREFERRED, 0x02) == 0x0f, "a preference restricts nothing");
    CHECK(nodes_found(MPOL_INTERLEAVE, 0x03) == 0x0f, "nor does an interleaving");
}

int main(void) {
    test_cpus();
    test_nodes();
    return checked("policy");
}
