/* Each kind of record, from a function of its own. Prints the expected records:
 *   TYPE kind size function     (sizes are unique; - where a record has none) */
#define _GNU_SOURCE
#include <fcntl.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/syscall.h>
#include <unistd.h>

#define SITE __attribute__((noinline, noclone))
#define KEEP(p) __asm__ volatile("" : : "r"(p) : "memory")

static void expect(const char *type, const char *kind, size_t size, const char *function, const void *address) {
    printf("%s %s %zu %s %lx\n", type, kind, size, function, (unsigned long)address);
}
#define BLOCK(name, kind, size, expression)    \
    SITE static void *name(void) {             \
        void *p = expression;                  \
        KEEP(p);                               \
        expect("ALLOC", kind, size, #name, p); \
        return p;                              \
    }
BLOCK(by_malloc, "malloc", 70001, malloc(70001))
BLOCK(by_malloc_huge, "malloc", 9000001, malloc(9000001))
BLOCK(by_malloc_at_limit, "malloc", 65536, malloc(65536))
BLOCK(by_malloc_below, "malloc", 65535, malloc(65535))
BLOCK(by_calloc, "calloc", 140004, calloc(2, 70002))
BLOCK(by_posix_memalign, "aligned", 70003, ({
          void *q;
          posix_memalign(&q, 64, 70003) == 0 ? q : NULL;
      }))
BLOCK(by_aligned_alloc, "aligned", 81920, aligned_alloc(4096, 81920))
BLOCK(by_memalign, "aligned", 70005, memalign(128, 70005))
BLOCK(by_valloc, "aligned", 70006, valloc(70006))
BLOCK(by_pvalloc, "aligned", 70007, pvalloc(70007))

SITE static void *by_realloc(void *p) {
    p = realloc(p, 400008);
    KEEP(p);
    expect("ALLOC", "realloc", 400008, "by_realloc", p);
    return p;
}
SITE static void *by_reallocarray(void *p) {
    p = reallocarray(p, 3, 300009);
    KEEP(p);
    expect("ALLOC", "realloc", 900027, "by_reallocarray", p);
    return p;
}
SITE static void *by_failed_realloc(void *p) {
    void *none = realloc(p, (size_t)1 << 60);
    KEEP(none);
    if (none == NULL) {
        expect("ALLOC", "realloc", malloc_usable_size(p), "by_failed_realloc", p);
    }
    return p;
}
SITE static void *by_mmap(void) {
    void *p = mmap(NULL, 16 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    KEEP(p);
    expect("MAP", "mmap", 16 * 4096, "by_mmap", p);
    return p;
}
SITE static void *by_mmap64(void) {
    void *p = mmap64(NULL, 17 * 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    KEEP(p);
    expect("MAP", "mmap", 17 * 4096, "by_mmap64", p);
    return p;
}
SITE static void *by_file(void) {
    int fd = open("/proc/self/exe", O_RDONLY);
    void *p = mmap(NULL, 18 * 4096, PROT_READ, MAP_PRIVATE, fd, 0);
    KEEP(p);
    close(fd);
    expect("MAP", "mmap_file", 18 * 4096, "by_file", p);
    return p;
}
SITE static void *by_mremap(void *old) {
    expect("UNMAP", "-", 17 * 4096, "-", old);
    void *p = mremap(old, 17 * 4096, 64 * 4096, MREMAP_MAYMOVE);
    KEEP(p);
    expect("MAP", "mremap", 64 * 4096, "by_mremap", p);
    return p;
}
SITE static void by_failed_mremap(void *old) {
    void *p = mremap(old, 16 * 4096, (size_t)1 << 60, MREMAP_MAYMOVE);
    KEEP(p); /* no record expected */
}

SITE static void *by_shmat(int segment) {
    void *p = shmat(segment, NULL, 0);
    KEEP(p);
    expect("MAP", "shmat", 70 * 4096, "by_shmat", p);
    return p;
}

/* Calls in which the kernel touches memory, by the C library and by number. A system may allow a program to lock little memory. */
#define LOCKED(name, size, call)                         \
    SITE static void name(void *p) {                     \
        if (call == 0) {                                 \
            expect("POPULATE", "mlock", size, #name, p); \
            munlock(p, size);                            \
        }                                                \
    }
LOCKED(by_mlock, 73728, mlock(p, 73728))
LOCKED(by_mlock_number, 77824, syscall(SYS_mlock, p, 77824l))
LOCKED(by_mlock2_number, 81920, syscall(SYS_mlock2, p, 81920l, 0l))

static void release(void *p) {
    expect("FREE", "-", 0, "-", p);
    free(p);
}

int main(void) {
    void *p[] = {by_malloc(),        by_malloc_huge(), by_malloc_at_limit(), by_calloc(), by_posix_memalign(),
                 by_aligned_alloc(), by_memalign(),    by_valloc(),          by_pvalloc()};
    free(by_malloc_below()); /* this record must be missing */
    for (size_t i = 1; i < sizeof p / sizeof p[0]; i++) {
        release(p[i]);
    }
    expect("FREE", "-", 0, "-", p[0]);
    void *moved = by_realloc(p[0]);
    expect("FREE", "-", 0, "-", moved);
    moved = by_reallocarray(moved);
    expect("FREE", "-", 0, "-", moved);
    release(by_failed_realloc(moved));
    void *small = malloc(100);
    small = realloc(small, 200);
    free(realloc(small, 0) == NULL ? NULL : small);
    char *map = by_mmap(), *shared = by_mmap64(), *file = by_file();
    shared = by_mremap(shared);
    by_failed_mremap(map);
    by_mlock(shared);
    by_mlock_number(shared);
    by_mlock2_number(shared);
    memset(map, 1, 16 * 4096);
    expect("ADVISE_FREE", "-", 16 * 4096, "-", map);
    madvise(map, 16 * 4096, MADV_DONTNEED);
    expect("ADVISE_FREE", "-", 16 * 4096 - 0, "-", map);
    madvise(map, 16 * 4096 - 100, MADV_FREE);
    madvise(map, 4096, MADV_DONTNEED);
    madvise(map, 16 * 4096, MADV_NORMAL);
    expect("UNMAP", "-", 4096, "-", map);
    munmap(map, 100);
    expect("UNMAP", "-", 15 * 4096, "-", map + 4096);
    munmap(map + 4096, 15 * 4096);
    expect("UNMAP", "-", 64 * 4096, "-", shared);
    munmap(shared, 64 * 4096);
    munmap(file, 18 * 4096);
    munmap(file + 1, 4096);
    int segment = shmget(IPC_PRIVATE, 70 * 4096, 0600), small_segment = shmget(IPC_PRIVATE, 4096, 0600);
    void *attached = by_shmat(segment), *small_attached = shmat(small_segment, NULL, 0);
    shmctl(segment, IPC_RMID, NULL);
    shmctl(small_segment, IPC_RMID, NULL);
    shmdt((char *)attached + 1); /* fails: no record expected */
    expect("FREE", "-", 0, "-", attached);
    shmdt(attached);
    shmdt(small_attached);
    return 0;
}
