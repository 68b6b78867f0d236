// shim: lets likwid-pin and numactl answer for a recorded machine (scripts/record-peers). Preloaded, it makes them believe that
// they may use the CPUs of SHIM_CPUS of SHIM_CONFIGURED ones, and prints where they would go instead of going there.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { WORD_BITS = 8 * sizeof(unsigned long), DEFAULT_POLICY = 0 };

// The CPUs of SHIM_CPUS, a list such as 0-3,8; how many they are.
static int allowed(cpu_set_t *set, size_t size) {
    CPU_ZERO_S(size, set);
    const char *text = getenv("SHIM_CPUS");
    while (text != NULL && *text >= '0' && *text <= '9') {
        char *end;
        long first = strtol(text, &end, 10);
        long last = *end == '-' ? strtol(end + 1, &end, 10) : first;
        for (; first <= last; first++) {
            CPU_SET_S((size_t)first, size, set);
        }
        text = *end == ',' ? end + 1 : NULL;
    }
    return CPU_COUNT_S(size, set);
}

int sched_getaffinity(pid_t pid, size_t size, cpu_set_t *set) {
    (void)pid;
    allowed(set, size);
    return 0;
}

int sched_setaffinity(pid_t pid, size_t size, const cpu_set_t *set) {
    (void)pid, (void)size, (void)set;
    return 0;
}

long sysconf(int name) {
    static long (*real)(int);
    if (real == NULL) {
        real = (long (*)(int))dlsym(RTLD_NEXT, "sysconf");
    }
    cpu_set_t set;
    switch (name) {
    case _SC_NPROCESSORS_CONF:
        return atol(getenv("SHIM_CONFIGURED"));
    case _SC_NPROCESSORS_ONLN:
        return allowed(&set, sizeof set);
    default:
        return real(name);
    }
}

static void print_bits(const char *what, const unsigned long *mask, unsigned long bits) {
    const char *between = "";
    printf("%s", what);
    for (unsigned long bit = 0; mask != NULL && bit < bits; bit++) {
        if (mask[bit / WORD_BITS] >> bit % WORD_BITS & 1) {
            printf("%s%lu", between, bit);
            between = ",";
        }
    }
    printf("\n");
    fflush(stdout);
}

// libnuma calls the kernel through syscall(2).
long syscall(long number, ...) {
    static long (*real)(long, ...);
    if (real == NULL) {
        real = (long (*)(long, ...))dlsym(RTLD_NEXT, "syscall");
    }
    long arguments[6];
    va_list list;
    va_start(list, number);
    for (size_t i = 0; i < sizeof arguments / sizeof *arguments; i++) {
        arguments[i] = va_arg(list, long);
    }
    va_end(list);
    switch (number) {
    case SYS_get_mempolicy:
        if (arguments[0] != 0) {
            *(int *)arguments[0] = DEFAULT_POLICY;
        }
        return 0;
    case SYS_set_mempolicy:
        print_bits("nodes ", (const unsigned long *)arguments[1],
                   arguments[1] == 0 ? 0 : (unsigned long)arguments[2] - 1);
        return 0;
    case SYS_sched_getaffinity:
        allowed((cpu_set_t *)arguments[2], (size_t)arguments[1]);
        return (long)sizeof(cpu_set_t);
    case SYS_sched_setaffinity:
        print_bits("cpus ", (const unsigned long *)arguments[2], 8 * (unsigned long)arguments[1]);
        return 0;
    default:
        return real(number, arguments[0], arguments[1], arguments[2], arguments[3], arguments[4], arguments[5]);
    }
}
