/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * A reader for tests: makes a ring, runs a program with the agent preloaded, and writes its records as text.
 *
 *   reader [-m MIN_SIZE] [-b BYTES] [-c CAPACITY] [-f] [-t] [-k] [-q] [-x N] [-r] AGENT OUT PROGRAM [ARGUMENT...]
 *
 *   -t  FT_FLAG_TICKS          -s  US: FT_FLAG_SAMPLE
 *   -b  BYTES: small_mean
 *   -f  FT_FLAG_FOLLOW         -k  keep: never consume      -q  consume without writing
 *   -x  close after N records  -r  write a wrong magic
 *   -w  SIZE: asks to be woken by the next allocation of this size, again and again
 *
 * An LD_PRELOAD that is already set is kept, after the agent. Exits as the program does (128 + signal).
 */
#define _GNU_SOURCE
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "firsttouch_ring.h"

static struct ft_ring_header *ring;
static unsigned char *slots;
static FILE *out;
static uint64_t records;
static int quiet;

static const char *const type_names[] = {"NONE",          "ATTACH",      "ALLOC",  "FREE",           "MAP",
                                         "UNMAP",         "STACK",       "THREAD", "PARALLEL_BEGIN", "PARALLEL_END",
                                         "IMPLICIT_TASK", "ADVISE_FREE", "PYTHON", "SAMPLE",         "NO_TIMER",
                                         "SMALL",         "POPULATE"};
static const char *const kind_names[] = {"-",         "malloc", "calloc", "realloc", "aligned",  "mmap",
                                         "mmap_file", "mremap", "shmat",  "mlock",   "mlockall", "madvise"};

static void *published(uint64_t number) {
    void *slot = slots + (number & (ring->capacity - 1)) * FT_SLOT_BYTES;
    return __atomic_load_n((uint32_t *)slot, __ATOMIC_ACQUIRE) == (uint32_t)(number + 1) ? slot : NULL;
}

static int print_record(uint64_t at, const struct ft_record *record, uint64_t *slots_used) {
    uint32_t more = 0;
    if (record->type == FT_REC_STACK) {
        more = (record->depth + FT_IPS_PER_SLOT - 1) / FT_IPS_PER_SLOT;
    } else if (record->type == FT_REC_PYTHON) {
        more = (uint32_t)(record->size + FT_TEXT_PER_SLOT - 1) / FT_TEXT_PER_SLOT;
    }
    if (record->type == FT_REC_SAMPLE) {
        more = (record->depth + FT_IPS_PER_SLOT - 1) / FT_IPS_PER_SLOT;
    }
    for (uint32_t k = 1; k <= more; k++) {
        if (published(at + k) == NULL) {
            return 0;
        }
    }
    if (quiet) {
        *slots_used = 1 + more;
        return 1;
    }
    if (record->type == FT_REC_STACK) {
        fprintf(out, "STACK %u %016" PRIx64 " %u", record->pid, record->stack_id, record->depth);
        for (uint32_t i = 0; i < record->depth; i++) {
            const struct ft_record_frames *frames = published(at + 1 + i / FT_IPS_PER_SLOT);
            fprintf(out, " %" PRIx64, frames->ip[i % FT_IPS_PER_SLOT]);
        }
        fprintf(out, "\n");
    } else if (record->type ==
               FT_REC_PYTHON) { /* id, then the frames as file|function|line@instruction, separated by blanks */
        fprintf(out, "PYTHON %u %016" PRIx64 " ", record->pid, record->python_id);
        for (uint32_t i = 0, strings = 0; i < record->size; i++) {
            const struct ft_record_text *slot = published(at + 1 + i / FT_TEXT_PER_SLOT);
            char byte = slot->text[i % FT_TEXT_PER_SLOT];
            fputc(byte != '\0' ? byte : ++strings % 3 == 0 ? ' ' : '|', out);
        }
        fprintf(out, "\n");
    } else {
        fprintf(out, "%s %u %u %" PRIx64 " %" PRIu64 " %s %016" PRIx64 " %" PRIu64 " %" PRIu64 " %016" PRIx64 "\n",
                record->type <= FT_REC_SMALL ? type_names[record->type] : "?", record->pid, record->tid,
                record->address, record->size,
                record->kind < sizeof kind_names / sizeof kind_names[0] ? kind_names[record->kind] : "?",
                record->stack_id, record->aux, record->time_ns, record->python_id);
    }
    *slots_used = 1 + more;
    return 1;
}

/* A slot stays unpublished for good if its producer was killed or left by siglongjmp before publication. After STALL_MS the
 * reader skips it, after DOUBTFUL_MS where the producer says so. (The slots that follow a lost FT_REC_STACK read as FT_REC_NONE.) */
#define STALL_MS 200
#define DOUBTFUL_MS 50
static uint64_t skipped;
static int is_doubtful(uint64_t number) {
    return __atomic_load_n(&ring->doubtful[number % FT_RING_DOUBTFUL], __ATOMIC_ACQUIRE) == number + 1;
}

static uint64_t skip_stalled(uint64_t tail) {
    static uint64_t stalled_at = UINT64_MAX;
    static struct timespec since;
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    if (tail == __atomic_load_n(&ring->head, __ATOMIC_ACQUIRE) || tail != stalled_at) {
        stalled_at = tail;
        since = now;
    } else if ((now.tv_sec - since.tv_sec) * 1000 + (now.tv_nsec - since.tv_nsec) / 1000000 >=
               (is_doubtful(tail) ? DOUBTFUL_MS : STALL_MS)) {
        int is_first_of_several = is_doubtful(tail) && is_doubtful(tail + 1);
        skipped++;
        tail++;
        if (is_first_of_several) {
            stalled_at = tail; /* they were reserved together */
        }
    }
    return tail;
}

static uint64_t drain(uint64_t close_after) {
    uint64_t tail = ring->tail, used, before = records;
    struct ft_record *record;
    uint64_t stored = tail;
    while (tail != __atomic_load_n(&ring->head, __ATOMIC_ACQUIRE) && (record = published(tail)) != NULL &&
           print_record(tail, record, &used)) {
        tail += used;
        if (tail - stored >= 64) { /* a store for each record would invalidate the producers' cache line each time */
            __atomic_store_n(&ring->tail, stored = tail, __ATOMIC_RELEASE);
        }
        if (++records == close_after) {
            __atomic_store_n(&ring->closed, 1, __ATOMIC_RELAXED);
        }
    }
    __atomic_store_n(&ring->tail, skip_stalled(tail), __ATOMIC_RELEASE);
    return records - before;
}

static uint64_t wake_size;
static unsigned woken;

/* Counts how often the agent wakes a waiter, and asks again. */
static void *wait_for_wakes(void *nothing) {
    for (;;) {
        uint32_t seen = __atomic_load_n(&ring->wakes, __ATOMIC_ACQUIRE);
        __atomic_store_n(&ring->wake_size, wake_size, __ATOMIC_RELEASE);
        if (syscall(SYS_futex, &ring->wakes, FUTEX_WAIT, seen, NULL, NULL, 0) == 0) {
            __atomic_fetch_add(&woken, 1, __ATOMIC_RELAXED);
        }
    }
    return nothing;
}

static void set_variables(const char *agent, pid_t reader, int fd) {
    char value[PATH_MAX + 4096];
    const char *preload = getenv("LD_PRELOAD");
    snprintf(value, sizeof value, preload != NULL ? "%s:%s" : "%s", agent, preload);
    setenv("LD_PRELOAD", value, 1);
    snprintf(value, sizeof value, "/proc/%d/fd/%d", (int)reader, fd);
    setenv(FT_AGENT_ENV, value, 1);
}

int main(int argc, char **argv) {
    uint64_t min_size = 65536, close_after = 0;
    uint32_t capacity = 65536, flags = 0, sample_us = 0, shift_us = 0, small_mean = 0;
    int keep = 0, wrong_magic = 0;
    for (int option; (option = getopt(argc, argv, "+m:b:c:ftgkqx:rs:S:w:")) != -1;) {
        switch (option) {
        case 'm':
            min_size = strtoull(optarg, NULL, 0);
            break;
        case 'b':
            small_mean = (uint32_t)strtoul(optarg, NULL, 0);
            break;
        case 'c':
            capacity = (uint32_t)strtoul(optarg, NULL, 0);
            break;
        case 'f':
            flags |= FT_FLAG_FOLLOW;
            break;
        case 't':
            flags |= FT_FLAG_TICKS;
            break;
        case 'g':
            flags |= FT_FLAG_GUARD_TRAPS;
            break;
        case 'k':
            keep = 1;
            break;
        case 'q':
            quiet = 1;
            break;
        case 'x':
            close_after = strtoull(optarg, NULL, 0);
            break;
        case 's':
            flags |= FT_FLAG_SAMPLE;
            sample_us = (uint32_t)strtoul(optarg, NULL, 0);
            break;
        case 'S': /* every sample sleeps for so long */
            shift_us = (uint32_t)strtoul(optarg, NULL, 0);
            break;
        case 'w':
            wake_size = strtoull(optarg, NULL, 0);
            break;
        case 'r':
            wrong_magic = 1;
            break;
        default:
            return 2;
        }
    }
    if (argc - optind < 3) {
        return 2;
    }
    const char *agent = argv[optind];
    out = fopen(argv[optind + 1], "we");
    int fd = memfd_create("ring", MFD_CLOEXEC);
    size_t bytes = 4096 + (size_t)capacity * FT_SLOT_BYTES;
    if (out == NULL || fd < 0 || ftruncate(fd, (off_t)bytes) != 0) {
        perror("reader");
        return 2;
    }
    ring = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    slots = (unsigned char *)ring + 4096;
    ring->magic = FT_RING_MAGIC + (wrong_magic ? 1 : 0);
    ring->version = FT_RING_VERSION;
    ring->capacity = capacity;
    ring->min_size = min_size;
    ring->flags = flags;
    ring->sample_us = sample_us;
    ring->small_mean = small_mean;
    pid_t reader = getpid(), child = fork();
    if (child == 0) {
        ring->root_pid = (uint32_t)getpid();
        set_variables(agent, reader, fd);
        execvp(argv[optind + 2], argv + optind + 2);
        _exit(127);
    }
    int status;
    unsigned shifts = 0;
    pthread_t waiter;
    if (wake_size != 0 && pthread_create(&waiter, NULL, wait_for_wakes, NULL) != 0) {
        return 2;
    }
    for (;;) {
        pid_t ended = waitpid(child, &status, WNOHANG);
        shifts += shift_us != 0 && __atomic_exchange_n(&ring->shift_us, shift_us, __ATOMIC_RELAXED) == 0;
        if (!keep && drain(close_after) == 0 && ended == 0) {
            usleep(200);
        } else if (keep && ended == 0) {
            usleep(2000);
        }
        if (ended == child) {
            break;
        }
    }
    if (!keep) {
        drain(close_after);
    }
    fprintf(out,
            "SUMMARY lost %" PRIu64 " attached %u unread %" PRIu64 " skipped %" PRIu64 " silent %u unsampled %" PRIu64
            " skipped_samples %" PRIu64 " wakes %u woken %u traps %" PRIu64 " replaced %u shifts %u\n",
            ring->lost, ring->attached, ring->head - ring->tail, skipped, ring->silent, ring->unsampled_threads,
            ring->skipped_samples, ring->wakes, woken, ring->causeless_traps, ring->trap_handler_replaced, shifts);
    fclose(out);
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}
