/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * Assigns CPUs to threads. A thread takes the lowest place that no living thread holds, so that threads which are made anew
 * in each round get those of the round before, as a plan numbers them. Place i has CPU i of the list, which starts again after
 * its end. The main thread gets the first one when the program creates a second thread; until then it may run on any CPU of
 * the list. (An OpenMP runtime that is loaded later reads the main thread's affinity mask and uses no other CPUs.)
 *
 * Not pinned: threads of OpenMP runtimes, which pin their own (OMP_PLACES); helper threads of communication and accelerator
 * libraries; threads created with a CPU set; those that the user names; and those that a plan found idle, which take no
 * CPU of the list either.
 */
#include "pin.h"
#include "../preload/hold.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

#define CPUS_MAX 8192u /* the largest NR_CPUS of a kernel */
#define CPU_LIST_MAX 4096u
#define NUMBERS_MAX 4096u

union cpu_set {
    cpu_set_t set; /* for the type */
    unsigned char bytes[CPUS_MAX / 8];
};

static uint16_t cpus[CPU_LIST_MAX];
static uint32_t cpu_count;
static union cpu_set all;

/* Thread numbers from an environment variable. */
struct numbers {
    uint32_t list[NUMBERS_MAX];
    uint32_t count;
};
static struct numbers skipped;
static struct numbers idle;

/* The numbers that living threads hold, a bit each; 0 is the main thread's. */
struct held {
    uint64_t bits[NUMBERS_MAX / 64];
    uint32_t beyond; /* numbers given when all were held */
};
static struct held births = {.bits = {1}}; /* of all threads, as a plan counts them */
static struct held turns = {.bits = {1}};  /* of those that got a CPU */
static uint32_t counted;                   /* threads since the process began that --skip counts */
static uint32_t main_is_pinned;

static _Thread_local int pinned_index = -1;

/* At the end of a thread, its value of this key says which numbers are free again. */
static pthread_key_t ends;
static bool has_ends;

static void add_cpu(union cpu_set *set, unsigned cpu) {
    CPU_SET_S(cpu, sizeof set->bytes, &set->set);
}

/* Parses a number or a range. Returns the text after it, or NULL if it is invalid. */
static const char *parse_range(const char *text, unsigned long *first, unsigned long *last) {
    char *end;
    if (*text < '0' || *text > '9') {
        return NULL;
    }
    *first = strtoul(text, &end, 10);
    *last = *first;
    if (*end == '-' && end[1] >= '0' && end[1] <= '9') {
        *last = strtoul(end + 1, &end, 10);
    }
    return *last < CPUS_MAX && *first <= *last && (*end == ',' || *end == '\0') ? end : NULL;
}

/* False: invalid, so not written by firsttouch. Then nothing is pinned. */
static bool parse_cpus(const char *text) {
    unsigned long first, last;
    while ((text = parse_range(text, &first, &last)) != NULL) {
        for (unsigned long cpu = first; cpu <= last && cpu_count < CPU_LIST_MAX; cpu++) {
            cpus[cpu_count++] = (uint16_t)cpu;
            add_cpu(&all, (unsigned)cpu);
        }
        if (*text++ == '\0') {
            return true;
        }
    }
    return false;
}

static void parse_numbers(const char *text, struct numbers *numbers) {
    unsigned long first, last;
    while (text != NULL && (text = parse_range(text, &first, &last)) != NULL) {
        for (unsigned long number = first; number <= last && numbers->count < NUMBERS_MAX; number++) {
            numbers->list[numbers->count++] = (uint32_t)number;
        }
        text = *text == '\0' ? NULL : text + 1;
    }
}

bool ft_is_pinning(void) {
    return cpu_count != 0;
}

static bool contains(const struct numbers *numbers, uint32_t number) {
    for (uint32_t i = 0; i < numbers->count; i++) {
        if (numbers->list[i] == number) {
            return true;
        }
    }
    return false;
}

/* Is it code of a library whose threads do not do the program's work, or that pins its own? */
static bool is_of_a_runtime(void *(*routine)(void *)) {
    static const char *const names[] = {
        "libgomp",    "libomp",    "libiomp",     "libmpi",    "libopen-pal",    "libopen-rte", "libpmix",
        "libprrte",   "libevent",  "libucs",      "libucp",    "libuct",         "libfabric",   "libpsm",
        "libibverbs", "librdmacm", "libcuda",     "libnvidia", "libhsa-runtime", "libamdhip",   "libze_",
        "libOpenCL",  "libpapi",   "libprofiler", "libasan",   "libtsan",
    };
    Dl_info info;
    if (dladdr((void *)(uintptr_t)routine, &info) == 0 || info.dli_fname == NULL) {
        return false;
    }
    const char *slash = strrchr(info.dli_fname, '/');
    const char *name = slash != NULL ? slash + 1 : info.dli_fname;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (strncmp(name, names[i], strlen(names[i])) == 0) {
            return true;
        }
    }
    return false;
}

/* Without a set, glibc returns one with all bits set. */
static bool has_cpu_set(const pthread_attr_t *attributes) {
    union cpu_set set;
    if (attributes == NULL || pthread_attr_getaffinity_np(attributes, sizeof set.bytes, &set.set) != 0) {
        return false;
    }
    for (size_t i = 0; i < sizeof set.bytes; i++) {
        if (set.bytes[i] != 0xff) {
            return true;
        }
    }
    return false;
}

/* Is the thread's mask exactly the list? Otherwise the program has set one of its own. */
static bool is_unrestricted(pid_t thread) {
    union cpu_set now = {.bytes = {0}};
    if (sched_getaffinity(thread, sizeof now.bytes, &now.set) != 0) {
        return false;
    }
    return memcmp(now.bytes, all.bytes, sizeof now.bytes) == 0;
}

static void restrict_to(pid_t thread, const union cpu_set *set) {
    /* On failure, as with an offline CPU, the thread keeps its mask. */
    (void)sched_setaffinity(thread, sizeof set->bytes, &set->set);
}

static void pin(pid_t thread, int cpu_index) {
    union cpu_set one = {.bytes = {0}};
    add_cpu(&one, cpus[(uint32_t)cpu_index % cpu_count]);
    restrict_to(thread, &one);
}

static uint32_t take_lowest(struct held *held) {
    for (uint32_t word = 0; word < NUMBERS_MAX / 64; word++) {
        uint64_t bits = __atomic_load_n(&held->bits[word], __ATOMIC_RELAXED);
        while (bits != UINT64_MAX) {
            uint32_t lowest = (uint32_t)__builtin_ctzll(~bits);
            /* Acquires the end of the thread that held the number. */
            if (__atomic_compare_exchange_n(&held->bits[word], &bits, bits | UINT64_C(1) << lowest, false,
                                            __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) {
                return 64 * word + lowest;
            }
        }
    }
    return NUMBERS_MAX + (__atomic_fetch_add(&held->beyond, 1, __ATOMIC_RELAXED) & 0x3fffffff);
}

static void give_back(struct held *held, uint32_t number) {
    if (number != 0 && number < NUMBERS_MAX) {
        __atomic_fetch_and(&held->bits[number / 64], ~(UINT64_C(1) << number % 64), __ATOMIC_RELEASE);
    }
}

void ft_give_back(struct ft_numbers numbers) {
    give_back(&births, numbers.birth);
    give_back(&turns, numbers.turn);
}

/* A value of the key: both numbers, without those that are not given back. */
static void *packed(struct ft_numbers numbers) {
    uint32_t birth = numbers.birth < NUMBERS_MAX ? numbers.birth : 0;
    uint32_t turn = numbers.turn < NUMBERS_MAX ? numbers.turn : 0;
    return (void *)(uintptr_t)(birth | turn << 16);
}

static void end_thread(void *value) {
    uint32_t both = (uint32_t)(uintptr_t)value;
    ft_give_back((struct ft_numbers){.birth = both & 0xffff, .turn = both >> 16});
}

struct ft_numbers ft_choose_cpu(void *(*routine)(void *), const pthread_attr_t *attributes) {
    /* The plan counted all threads, also those of runtimes. */
    struct ft_numbers numbers = {.birth = take_lowest(&births), .cpu_index = -1, .has_end = has_ends};
    if (is_of_a_runtime(routine)) {
        return numbers;
    }
    if (contains(&idle, numbers.birth) || has_cpu_set(attributes) ||
        contains(&skipped, __atomic_add_fetch(&counted, 1, __ATOMIC_RELAXED))) {
        return numbers;
    }
    numbers.turn = take_lowest(&turns);
    if (contains(&idle, 0)) {
        numbers.cpu_index = (int)numbers.turn - 1; /* the main thread takes no CPU */
        return numbers;
    }
    if (__atomic_exchange_n(&main_is_pinned, 1, __ATOMIC_RELAXED) == 0 && is_unrestricted(getpid())) {
        pin(getpid(), 0);
        if (gettid() == getpid()) {
            pinned_index = 0;
        }
    }
    numbers.cpu_index = (int)numbers.turn;
    return numbers;
}

void ft_begin_thread(struct ft_numbers numbers) {
    int saved_errno = errno;
    if (numbers.cpu_index >= 0) {
        pin(0, numbers.cpu_index);
        pinned_index = numbers.cpu_index;
    }
    /* On failure, the numbers stay held. */
    if (numbers.has_end) {
        (void)pthread_setspecific(ends, packed(numbers));
    }
    errno = saved_errno;
}

bool ft_widen(void) {
    /* Another thread may have pinned the main thread. */
    bool is_pinned = pinned_index >= 0 || (main_is_pinned != 0 && gettid() == getpid());
    if (is_pinned) {
        int saved_errno = errno;
        union cpu_set now = {.bytes = {0}};
        union cpu_set one = {.bytes = {0}};
        add_cpu(&one, cpus[(uint32_t)(pinned_index >= 0 ? pinned_index : 0) % cpu_count]);
        /* If the program has moved the thread since, its mask stays. */
        is_pinned = sched_getaffinity(0, sizeof now.bytes, &now.set) == 0 &&
                    memcmp(now.bytes, one.bytes, sizeof now.bytes) == 0;
        if (is_pinned) {
            restrict_to(0, &all);
        }
        errno = saved_errno;
    }
    return is_pinned;
}

void ft_narrow(bool was_widened) {
    if (was_widened) {
        int saved_errno = errno;
        pin(0, pinned_index >= 0 ? pinned_index : 0);
        errno = saved_errno;
    }
}

/* A forked child starts with one thread and the whole list. */
static void after_fork_in_child(void) {
    ft_widen();
    pinned_index = -1;
    memset(&births, 0, sizeof births);
    memset(&turns, 0, sizeof turns);
    births.bits[0] = turns.bits[0] = 1;
    counted = 0;
    main_is_pinned = 0;
    if (has_ends) {
        (void)pthread_setspecific(ends, NULL);
    }
}

struct ft_real ft_real;

void ft_resolve(void) {
    ft_find_real();
}

__attribute__((constructor)) static void construct(void) {
    int saved_errno = errno;
    ft_resolve();
    const char *list = getenv(FT_PIN_ENV);
    if (list != NULL && (!parse_cpus(list) || pthread_atfork(NULL, NULL, after_fork_in_child) != 0)) {
        cpu_count = 0;
    }
    /* An early key: pthread_setspecific allocates for the 33rd and later ones. */
    has_ends = cpu_count != 0 && pthread_key_create(&ends, end_thread) == 0;
    parse_numbers(getenv(FT_PIN_SKIP_ENV), &skipped);
    parse_numbers(getenv(FT_PIN_IDLE_ENV), &idle);
    Dl_info library;
    if (list != NULL && dladdr(&all, &library) != 0 && library.dli_fname != NULL) {
        ft_hold_path(library.dli_fname, mmap);
    }
    errno = saved_errno;
}
