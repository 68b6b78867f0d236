/* An allocator without malloc_usable_size. Its blocks start on a page with nothing mapped before it, so reading a glibc
 * header in front of a block faults. */
#define _GNU_SOURCE
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define PLACE ((size_t)1 << 24)
static uintptr_t next = 0x300000000000;
static size_t sizes[1 << 16];
static void *take(size_t size) {
    uintptr_t at = __atomic_fetch_add(&next, PLACE, __ATOMIC_RELAXED);
    size_t bytes = (size + 4096) & ~(size_t)4095;
    if (size > PLACE / 2 ||
        mmap((void *)at, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED) {
        return NULL;
    }
    sizes[(at / PLACE) & 65535] = size;
    return (void *)at;
}
void *malloc(size_t size) {
    return take(size);
}
void *calloc(size_t count, size_t size) {
    return take(count * size);
}
void free(void *p) {
    if (p != NULL) {
        munmap(p, (sizes[((uintptr_t)p / PLACE) & 65535] + 4096) & ~(size_t)4095);
    }
}
void *realloc(void *p, size_t size) {
    void *q = take(size);
    if (p != NULL && q != NULL) {
        size_t old = sizes[((uintptr_t)p / PLACE) & 65535];
        memcpy(q, p, old < size ? old : size);
        free(p);
    }
    return q;
}
