/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * Calls in which the kernel touches all pages of a range for the calling thread: mlock, mlock2, mlockall, and madvise with
 * MADV_POPULATE_WRITE (hooks.c), each also by syscall() (sandbox.c). No page fault is reported for them. They are recorded
 * after success, with the time of entry.
 */
#include "agent.h"

#include <sys/syscall.h>

#ifndef MLOCK_ONFAULT
#define MLOCK_ONFAULT 1u
#endif
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif
#ifndef MCL_ONFAULT
#define MCL_ONFAULT 4
#endif

void ft_populated(uint8_t kind, const void *address, size_t size, uint64_t future, uint64_t time_ns,
                  struct ft_caller caller) {
    ft_record_with_stack(&(struct ft_record){.type = FT_REC_POPULATE,
                                             .kind = kind,
                                             .time_ns = time_ns,
                                             .address = (uintptr_t)address,
                                             .size = size,
                                             .aux = future},
                         caller);
}

FT_EXPORT int mlock(const void *address, size_t size) {
    if (size <= ft_threshold()) {
        return FT_REAL(mlock)(address, size);
    }
    uint64_t time_ns = ft_now();
    int result = FT_REAL(mlock)(address, size);
    if (result == 0) {
        ft_populated(FT_KIND_MLOCK, address, size, 0, time_ns, ft_caller());
    }
    return result;
}

FT_EXPORT int mlock2(const void *address, size_t size, unsigned int flags) {
    if (ft_unlikely(FT_REAL(mlock2) == NULL)) {
        errno = ENOSYS;
        return -1;
    }
    if (size <= ft_threshold() || flags & MLOCK_ONFAULT) {
        return ft_real.mlock2(address, size, flags);
    }
    uint64_t time_ns = ft_now();
    int result = ft_real.mlock2(address, size, flags);
    if (result == 0) {
        ft_populated(FT_KIND_MLOCK, address, size, 0, time_ns, ft_caller());
    }
    return result;
}

static void locked_all(int flags, uint64_t time_ns, struct ft_caller caller) {
    bool touches = !(flags & MCL_ONFAULT);
    /* From the first page to the last that a program can have. */
    size_t size = touches && flags & MCL_CURRENT ? SIZE_MAX : 0;
    ft_populated(FT_KIND_MLOCKALL, NULL, size, touches && flags & MCL_FUTURE, time_ns, caller);
}

FT_EXPORT int mlockall(int flags) {
    if (ft_silent()) {
        return FT_REAL(mlockall)(flags);
    }
    uint64_t time_ns = ft_now();
    int result = FT_REAL(mlockall)(flags);
    if (result == 0) {
        locked_all(flags, time_ns, ft_caller());
    }
    return result;
}

FT_EXPORT int munlockall(void) {
    if (ft_silent()) {
        return FT_REAL(munlockall)();
    }
    uint64_t time_ns = ft_now();
    int result = FT_REAL(munlockall)();
    if (result == 0) {
        ft_populated(FT_KIND_MLOCKALL, NULL, 0, 0, time_ns, ft_caller());
    }
    return result;
}

static void populated_by_number(long number, long a, long b, long c, uint64_t time_ns, struct ft_caller caller) {
    const void *address = (const void *)a;
    bool is_large = (size_t)b > ft_threshold();
    if (number == SYS_mlockall) {
        locked_all((int)a, time_ns, caller);
    } else if (number == SYS_munlockall) {
        ft_populated(FT_KIND_MLOCKALL, NULL, 0, 0, time_ns, caller);
    } else if (is_large && (number == SYS_mlock || (number == SYS_mlock2 && !((unsigned int)c & MLOCK_ONFAULT)))) {
        ft_populated(FT_KIND_MLOCK, address, (size_t)b, 0, time_ns, caller);
    } else if (is_large && number == SYS_madvise && c == MADV_POPULATE_WRITE) {
        ft_populated(FT_KIND_MADVISE, address, (size_t)b, 0, time_ns, caller);
    }
}

/* The calls by syscall(), which jumps here: the caller is that of syscall(). */
__attribute__((used)) long ft_syscall_may_populate(long number, long a, long b, long c, long d, long e) {
    bool silent = ft_silent();
    uint64_t time_ns = silent ? 0 : ft_now();
    long result = FT_REAL(syscall)(number, a, b, c, d, e, 0l);
    if (result == 0 && !silent) {
        populated_by_number(number, a, b, c, time_ns, ft_caller());
    }
    return result;
}
