/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * System V shared memory: an attached segment is recorded as a mapping, and its end as the release of a block, since shmdt names
 * the address alone.
 */
#include "agent.h"

#include <sys/shm.h>

/* 0: not known. Who may attach a segment may read its size. */
static size_t segment_bytes(int segment) {
    struct shmid_ds about;
    int saved_errno = errno;
    size_t bytes = shmctl(segment, IPC_STAT, &about) == 0 ? about.shm_segsz : 0;
    errno = saved_errno;
    return bytes;
}

static FT_NOINLINE void *attach_segment(int segment, const void *address, int flags) {
    uint64_t time_ns = ft_now();
    void *attached = FT_REAL(shmat)(segment, address, flags);
    size_t bytes = attached != (void *)-1 ? segment_bytes(segment) : 0;
    if (bytes > ft_threshold()) {
        int protection = PROT_READ | (flags & SHM_RDONLY ? 0 : PROT_WRITE);
        ft_record_with_stack(
            &(struct ft_record){.type = FT_REC_MAP,
                                .kind = FT_KIND_SHMAT,
                                .time_ns = time_ns,
                                .address = (uintptr_t)attached,
                                .size = bytes,
                                .aux = (uint32_t)protection | ft_present(attached, bytes) | (uint64_t)MAP_SHARED << 32},
            ft_caller());
    }
    return attached;
}

FT_EXPORT void *shmat(int segment, const void *address, int flags) {
    return ft_silent() ? FT_REAL(shmat)(segment, address, flags) : attach_segment(segment, address, flags);
}

/* It may fail, so its release keeps its place in the order of ownership until that is known. */
FT_EXPORT int shmdt(const void *address) {
    if (ft_silent()) {
        return FT_REAL(shmdt)(address);
    }
    const struct ft_record release = {.type = FT_REC_FREE, .time_ns = ft_now(), .address = (uintptr_t)address};
    uint64_t number;
    bool has_release = ft_open_record(&number);
    int result = FT_REAL(shmdt)(address);
    if (has_release) {
        ft_close_record(number, result == 0 ? &release : NULL);
    }
    return result;
}
