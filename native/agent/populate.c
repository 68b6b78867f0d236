/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * Calls in which the kernel touches all pages of a range for the calling thread: mlock, mlock2, mlockall, and madvise with
 * MADV_POPULATE_WRITE (hooks.c). No page fault is reported for them. They are recorded after success, with the time of entry.
 */
#include "agent.h"

#ifndef MLOCK_ONFAULT
#define MLOCK_ONFAULT 1u
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

FT_EXPORT int mlockall(int flags) {
    if (ft_silent()) {
        return FT_REAL(mlockall)(flags);
    }
    uint64_t time_ns = ft_now();
    int result = FT_REAL(mlockall)(flags);
    if (result == 0) {
        bool touches = !(flags & MCL_ONFAULT);
        /* From the first page to the last that a program can have. */
        size_t size = touches && flags & MCL_CURRENT ? SIZE_MAX : 0;
        ft_populated(FT_KIND_MLOCKALL, NULL, size, touches && flags & MCL_FUTURE, time_ns, ft_caller());
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
