/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * The seam to the kernel: policies, places of pages, CPUs. Raw system calls, so that nothing but libc is needed. Tests replace
 * this file by a kernel of their own (tests/fake_policy.c).
 */
#include "library.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <link.h>
#include <linux/mempolicy.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The kernel subtracts 1 from the number of bits in a mask. */
#define MASK_BITS ((unsigned long)FTL_MAX_NODES + 1)

/* What get_mempolicy adds to a mode: MPOL_F_STATIC_NODES, MPOL_F_RELATIVE_NODES, MPOL_F_NUMA_BALANCING. */
#define MODE_FLAGS (7 << 13)

#ifndef MADV_COLD
#define MADV_COLD 20
#endif
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

static long kernel_mode(enum ftl_mode mode) {
    return mode == FTL_PREFERRED ? MPOL_PREFERRED : mode == FTL_INTERLEAVE ? MPOL_INTERLEAVE : MPOL_DEFAULT;
}

int ftl_set_range_policy(uintptr_t from, uintptr_t to, enum ftl_mode mode, const ftl_node_set *nodes) {
    const unsigned long *mask = mode == FTL_DEFAULT ? NULL : nodes->words;
    return (int)syscall(SYS_mbind, from, to - from, kernel_mode(mode), mask, mask == NULL ? 0 : MASK_BITS, 0);
}

int ftl_get_thread_policy(ftl_thread_policy *policy) {
    return (int)syscall(SYS_get_mempolicy, &policy->mode, policy->nodes.words, MASK_BITS, NULL, 0);
}

int ftl_restore_thread_policy(const ftl_thread_policy *policy) {
    /* MPOL_DEFAULT and MPOL_LOCAL demand an empty mask, and so it was read. */
    return (int)syscall(SYS_set_mempolicy, (long)policy->mode, policy->nodes.words, MASK_BITS);
}

int ftl_set_thread_policy(enum ftl_mode mode, const ftl_node_set *nodes) {
    const unsigned long *mask = mode == FTL_DEFAULT ? NULL : nodes->words;
    return (int)syscall(SYS_set_mempolicy, kernel_mode(mode), mask, mask == NULL ? 0 : MASK_BITS);
}

int ftl_query_pages(void **pages, int *nodes, size_t count) {
    return (int)syscall(SYS_move_pages, 0, count, pages, NULL, nodes, 0);
}

int ftl_move_pages(void **pages, const int *nodes, int *status, size_t count) {
    /* A positive result counts pages that stayed. */
    return syscall(SYS_move_pages, 0, count, pages, nodes, status, MPOL_MF_MOVE) < 0 ? -1 : 0;
}

/* A policy of the thread that binds to nodes (numactl --membind) is a restriction as the cpuset is: a policy of a range would override
 * it. Nodes whose numbers count within the cpuset, or that are not in it, restrict nothing. */
int ftl_allowed_nodes(ftl_node_set *nodes) {
    *nodes = (ftl_node_set){{0}};
    if (syscall(SYS_get_mempolicy, NULL, nodes->words, MASK_BITS, NULL, MPOL_F_MEMS_ALLOWED) != 0) {
        return -1;
    }
    ftl_thread_policy policy = {0};
    if (ftl_get_thread_policy(&policy) != 0 || (policy.mode & ~MODE_FLAGS) != MPOL_BIND ||
        (policy.mode & MPOL_F_RELATIVE_NODES) != 0) {
        return 0;
    }
    bool is_any = false;
    for (size_t i = 0; i < sizeof nodes->words / sizeof nodes->words[0]; i++) {
        policy.nodes.words[i] &= nodes->words[i];
        is_any |= policy.nodes.words[i] != 0;
    }
    if (is_any) {
        *nodes = policy.nodes;
    }
    return 0;
}

int ftl_pin_thread(const ftl_cpu_set *cpus) {
    return (int)syscall(SYS_sched_setaffinity, 0, sizeof *cpus, cpus->words);
}

static int cpus_of_thread(pid_t thread, ftl_cpu_set *cpus) {
    *cpus = (ftl_cpu_set){{0}};
    return syscall(SYS_sched_getaffinity, thread, sizeof *cpus, cpus->words) < 0 ? -1 : 0;
}

static void add_cpus(ftl_cpu_set *to, const ftl_cpu_set *cpus) {
    for (size_t i = 0; i < sizeof to->words / sizeof to->words[0]; i++) {
        to->words[i] |= cpus->words[i];
    }
}

/* OpenMP runtimes that bind threads pin the first one to its place: libgomp does before any code of the program runs. */
static bool is_bound_by_openmp(void) {
    const char *bind = getenv("OMP_PROC_BIND");
    bind = bind != NULL ? bind + strspn(bind, " \t") : "";
    if (*bind != '\0') {
        return strncasecmp(bind, "false", 5) != 0; /* the others mean nothing then */
    }
    return getenv("OMP_PLACES") != NULL || getenv("GOMP_CPU_AFFINITY") != NULL || getenv("KMP_AFFINITY") != NULL;
}

/* Of the OpenMP runtime, if the program has one. */
__attribute__((weak)) int omp_get_num_places(void);
__attribute__((weak)) int omp_get_place_num_procs(int place);
__attribute__((weak)) void omp_get_place_proc_ids(int place, int *cpus);
__attribute__((weak)) void GOMP_parallel(void (*work)(void *), void *argument, unsigned threads, unsigned flags);

/* Whether the runtime can be asked for its places. */
static bool knows_places(void) {
    return omp_get_num_places != NULL && omp_get_place_num_procs != NULL && omp_get_place_proc_ids != NULL;
}

/* The CPUs of the places: the runtime makes them of the mask that the process was started with. LLVM's starts by this call; libgomp did
 * before. Returns false if the runtime has no places: then it binds no thread. */
static bool find_cpus_of_places(ftl_cpu_set *cpus) {
    ftl_cpu_set found = {{0}};
    bool is_any = false;
    int places = omp_get_num_places();
    for (int place = 0; place < places; place++) {
        int count = omp_get_place_num_procs(place);
        int *ids = count > 0 ? malloc((size_t)count * sizeof *ids) : NULL;
        if (ids == NULL) {
            continue;
        }
        omp_get_place_proc_ids(place, ids);
        for (int i = 0; i < count; i++) {
            if (ids[i] >= 0 && ids[i] < FTL_MAX_CPUS) {
                ftl_set(found.words, (size_t)ids[i]);
                is_any = true;
            }
        }
        free(ids);
    }
    if (is_any) {
        *cpus = found;
    }
    return is_any;
}

static int is_openmp_runtime(struct dl_phdr_info *object, size_t bytes, void *argument) {
    (void)bytes;
    (void)argument;
    static const char *const names[] = {"libgomp", "libomp.", "libomp-", "libiomp", "libnvomp", "libcraymp"};
    for (size_t i = 0; object->dlpi_name != NULL && i < sizeof names / sizeof names[0]; i++) {
        if (strstr(object->dlpi_name, names[i]) != NULL) {
            return 1;
        }
    }
    return 0;
}

/* Whether there is a runtime whose functions are hidden: opened by dlopen without RTLD_GLOBAL, as in Python, or linked statically
 * without those that the program does not call. */
static bool has_hidden_runtime(void) {
    return GOMP_parallel != NULL || dl_iterate_phdr(is_openmp_runtime, NULL) != 0;
}

/* What the kernel would allow this thread: the CPUs of its cpuset. The mask that a pinned process was started with is lost. */
static void add_cpus_of_cpuset(ftl_cpu_set *cpus) {
    ftl_cpu_set before, all, possible;
    memset(&all, 0xff, sizeof all);
    if (cpus_of_thread(0, &before) == 0 && ftl_pin_thread(&all) == 0) {
        if (cpus_of_thread(0, &possible) == 0) {
            add_cpus(cpus, &possible);
        }
        ftl_pin_thread(&before);
    }
}

int ftl_allowed_cpus(ftl_cpu_set *cpus, bool *is_guess) {
    *is_guess = false;
    bool is_bound = is_bound_by_openmp();
    if (is_bound && knows_places() && find_cpus_of_places(cpus)) {
        return 0;
    }
    /* The calling thread may be pinned: the CPUs of all threads count. */
    if (cpus_of_thread(0, cpus) != 0) {
        return -1;
    }
    DIR *threads = opendir("/proc/self/task");
    struct dirent *thread;
    while (threads != NULL && (thread = readdir(threads)) != NULL) {
        ftl_cpu_set more;
        int number = atoi(thread->d_name);
        if (number > 0 && cpus_of_thread(number, &more) == 0) {
            add_cpus(cpus, &more);
        }
    }
    if (threads != NULL) {
        closedir(threads);
    }
    if (is_bound && !knows_places() && has_hidden_runtime()) {
        add_cpus_of_cpuset(cpus);
        *is_guess = true;
    }
    return 0;
}

int ftl_current_cpu(void) {
    return sched_getcpu();
}

const char *ftl_system_root(void) {
    return "";
}

/* Advice about a part of a huge page splits it (madvise_cold_or_pageout_pte_range in mm/madvise.c); that the page is reclaimed a little
 * earlier, if memory is short, does no harm. */
void ftl_split_huge(uintptr_t page) {
    int error = errno;
    madvise((void *)page, ftl_page_bytes(), MADV_COLD);
    errno = error;
}

/* Not by msync(MS_ASYNC), which is cheaper: valgrind takes it for a read of the memory. */
bool ftl_is_mapped(uintptr_t from, uintptr_t to) {
    int error = errno;
    unsigned char present[4096]; /* one byte a page */
    size_t most = sizeof present * ftl_page_bytes();
    bool is_mapped = true;
    for (uintptr_t at = from; at < to && is_mapped; at += most < to - at ? most : to - at) {
        is_mapped = mincore((void *)at, most < to - at ? most : to - at, present) == 0 || errno != ENOMEM;
    }
    errno = error;
    return is_mapped;
}

bool ftl_is_writable(uintptr_t from, uintptr_t to) {
    FILE *maps = fopen("/proc/self/maps", "re");
    if (maps == NULL) {
        return false;
    }
    char line[512];
    uintptr_t begin, end;
    char access[5];
    bool is_start = true; /* of a line: a long path comes in several reads */
    while (from < to && fgets(line, sizeof line, maps) != NULL) {
        bool is_range = is_start && sscanf(line, "%" SCNxPTR "-%" SCNxPTR " %4s", &begin, &end, access) == 3;
        is_start = strchr(line, '\n') != NULL;
        if (is_range && begin <= from && from < end) {
            if (access[1] != 'w') {
                break;
            }
            from = end;
        }
    }
    fclose(maps);
    return from >= to;
}

/* By a page of its own: for memory of the program, EINVAL has other causes too. */
bool ftl_knows_populate(void) {
    static atomic_int known; /* 0: not asked yet, 1: no, 2: yes */
    if (known == 0) {
        size_t page = ftl_page_bytes();
        void *at = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (at == MAP_FAILED) {
            return true; /* asks again next time, and writes to nothing meanwhile */
        }
        bool fails = madvise(at, page, MADV_POPULATE_WRITE) != 0;
        known = fails && (errno == EINVAL || errno == EPERM || errno == ENOSYS) ? 1 : 2;
        munmap(at, page);
    }
    return known == 2;
}

int ftl_populate(uintptr_t from, uintptr_t to) {
    /* The kernel returns EAGAIN or EINTR on the way; what is populated stays so. */
    int done;
    int tries = 0;
    do {
        done = madvise((void *)from, to - from, MADV_POPULATE_WRITE);
    } while (done != 0 && (errno == EINTR || errno == EAGAIN) && ++tries < 100);
    return done;
}

size_t ftl_page_bytes(void) {
    return (size_t)sysconf(_SC_PAGESIZE);
}
