/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * The constructor attaches to the ring and cleans the environment. A handler adapts both after fork. If any step fails, the
 * agent stays silent, and the program runs as if it were not loaded.
 */
#include "agent.h"
#include "../preload/hold.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#define RING_OFFSET 4096u
#define ADDRESS_SPACE_SHARE 256u /* the ring may take 1/256 of what RLIMIT_AS allows */

static bool is_entry(const char *entry, const char *name) {
    size_t bytes = strlen(name);
    return strncmp(entry, name, bytes) == 0 && entry[bytes] == '=';
}

/* Removes our entry and one separator from an LD_PRELOAD string, in place. Returns false if nothing is left, which means
 * that the user had not set the variable: a value of the user's, even an empty one, is separated from ours by a colon. */
static bool clean_preload(char *entry) {
    char *value = strchr(entry, '=') + 1;
    char *own = (char *)(uintptr_t)ft_own_preload_entry(value);
    if (own == NULL) {
        return true;
    }
    char *after = own + strlen(ft_agent.path);
    if (*after != '\0') {
        after++;
    } else if (own > value) {
        own--;
    } else {
        return false;
    }
    memmove(own, after, strlen(after) + 1);
    return true;
}

static void clean_environment(char **environment) {
    char **out = environment;
    for (char **in = environment; *in != NULL; in++) {
        bool keep = !is_entry(*in, FT_AGENT_ENV) && (!is_entry(*in, "LD_PRELOAD") || clean_preload(*in));
        if (keep) {
            *out++ = *in;
        }
    }
    *out = NULL;
}

static bool learn_own_path(void) {
    Dl_info info;
    if (dladdr(&ft_agent, &info) == 0 || info.dli_fname == NULL || strlen(info.dli_fname) >= sizeof ft_agent.path) {
        return false;
    }
    strcpy(ft_agent.path, info.dli_fname);
    ft_agent.can_propagate = ft_agent.path[0] == '/';
    return true;
}

static bool is_valid_ring(const struct ft_ring_header *ring, uint64_t file_bytes) {
    uint64_t capacity = ring->capacity;
    return ring->magic == FT_RING_MAGIC && ring->version == FT_RING_VERSION && capacity != 0 &&
           (capacity & (capacity - 1)) == 0 && file_bytes >= RING_OFFSET + capacity * FT_SLOT_BYTES;
}

/* Under a limit on address space (ulimit -v) our mapping reduces what the program can map, and its next mapping could fail. */
static bool is_affordable(size_t bytes) {
    struct rlimit limit;
    return getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY ||
           bytes <= limit.rlim_cur / ADDRESS_SPACE_SHARE;
}

static void report_not_affordable(int fd) {
    struct ft_ring_header *ring = ft_real.mmap(NULL, RING_OFFSET, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (ring != MAP_FAILED) {
        if (ring->magic == FT_RING_MAGIC && ring->version == FT_RING_VERSION) {
            __atomic_fetch_or(&ring->silent, FT_SILENT_ADDRESS_SPACE, __ATOMIC_RELAXED);
        }
        ft_real.munmap(ring, RING_OFFSET);
    }
}

static struct ft_ring_header *map_open_ring(int fd) {
    struct stat status;
    if (fstat(fd, &status) != 0 || status.st_size <= (off_t)RING_OFFSET) {
        return NULL;
    }
    size_t bytes = (size_t)status.st_size;
    if (!is_affordable(bytes)) {
        report_not_affordable(fd);
        return NULL;
    }
    void *mapped = ft_real.mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (mapped == MAP_FAILED) {
        return NULL;
    }
    if (!is_valid_ring(mapped, bytes)) {
        ft_real.munmap(mapped, bytes);
        return NULL;
    }
    return mapped;
}

static struct ft_ring_header *map_ring(const char *path) {
    int fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0) {
        return NULL;
    }
    struct ft_ring_header *ring = map_open_ring(fd);
    close(fd);
    return ring;
}

static void start_recording(void) {
    ft_wiped.pid = (uint32_t)getpid();
    __atomic_store_n(&ft_wiped.min_size, ft_agent.min_size, __ATOMIC_RELEASE);
}

/* firsttouch must know which children outlive the program, also if it does not record them. A raw clone is not counted. */
static void before_fork(void) {
    __atomic_fetch_add(&ft_agent.ring->forking, 1, __ATOMIC_RELAXED);
}

static void enter_child(void) {
    struct ft_ring_header *ring = ft_agent.ring;
    uint32_t pid = ft_sandboxed() ? 0 : (uint32_t)getpid();
    uint32_t number = __atomic_fetch_add(&ring->forked, 1, __ATOMIC_RELAXED);
    __atomic_store_n(&ring->child[number % FT_RING_CHILDREN], pid, __ATOMIC_RELEASE);
}

/* On kernels that do not wipe pages (before 4.14) this handler silences the child. They leave a raw clone undetected. */
static void after_fork_in_child(void) {
    __atomic_store_n(&ft_wiped.min_size, 0, __ATOMIC_RELEASE);
    ft_thread.tid = 0;
    ft_thread.recording = 0;
    ft_thread.unpublished = 0; /* the parent publishes them */
    enter_child();
    if (ft_agent.follow && !ft_sandboxed()) {
        if (!ft_agent.wiped_on_fork) {
            memset(&ft_wiped, 0, sizeof ft_wiped);
        }
        start_recording();
        ft_sample_after_fork();
    }
}

static void attach(struct ft_ring_header *ring, const void *above_stack) {
    ft_agent.slots = (unsigned char *)ring + RING_OFFSET;
    ft_agent.capacity = ring->capacity;
    ft_agent.min_size = ring->min_size != 0 ? ring->min_size : 1;
    ft_agent.ring = ring;
    if (pthread_atfork(before_fork, NULL, after_fork_in_child) != 0) {
        ft_agent.ring = NULL;
        return;
    }
    ft_agent.wiped_on_fork = ft_real.madvise(&ft_wiped, sizeof ft_wiped, MADV_WIPEONFORK) == 0;
    ft_resolve_usable_size();
    ft_agent.is_single_threaded = dlsym(RTLD_NEXT, "__libc_single_threaded");
    ft_python_prepare();
    ft_stack_prepare();
    ft_main_thread_stack(above_stack);
    start_recording();
    ft_trap_prepare();
    ft_sample_prepare();
    ft_abort_prepare();
    ft_record_plain(&(struct ft_record){.type = FT_REC_ATTACH, .time_ns = ft_now()});
    __atomic_fetch_add(&ring->attached, 1, __ATOMIC_RELEASE);
}

/* glibc passes the program's arguments to constructors. This one runs before the C library's own initialiser
 * (-z initfirst), so `environ` may not be set yet. */
__attribute__((constructor)) static void construct(int argc, char **argv, char **environment) {
    (void)argc, (void)argv;
    int saved_errno = errno;
    ft_resolve();
    ft_agent.page_bytes = (size_t)sysconf(_SC_PAGESIZE);
    const char *variable = NULL;
    for (char **entry = environment; entry != NULL && *entry != NULL; entry++) {
        if (is_entry(*entry, FT_AGENT_ENV)) {
            variable = *entry;
        }
    }
    if (variable != NULL && strlen(variable) < sizeof ft_agent.environment && learn_own_path()) {
        strcpy(ft_agent.environment, variable);
        struct ft_ring_header *ring = map_ring(variable + sizeof FT_AGENT_ENV);
        ft_agent.follow = ring != NULL && (ring->flags & FT_FLAG_FOLLOW) != 0;
        ft_agent.has_ticks = ring != NULL && (ring->flags & FT_FLAG_TICKS) != 0;
        clean_environment(environment);
        if (ring != NULL) {
            ft_agent.root_pid = ring->root_pid;
            if (ring->closed == 0 && (ft_agent.follow || (uint32_t)getpid() == ft_agent.root_pid)) {
                ft_hold_path(ft_agent.path, ft_real.mmap);
                attach(ring, environment);
            } else {
                ft_real.munmap(ring, RING_OFFSET + (size_t)ring->capacity * FT_SLOT_BYTES);
            }
        }
    }
    errno = saved_errno;
}
