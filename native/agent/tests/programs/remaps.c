/* Calls that fail and change nothing: mremap of an unmapped page (4096) and of a block that cannot grow, and munmap of an
 * invalid range. Then the block is moved and released. Prints its addresses. */
#define _GNU_SOURCE
#include <stdio.h>
#include <sys/mman.h>

#define MIB (1 << 20)

static void *map(void *address, size_t size) {
    return mmap(address, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

int main(void) {
    char *block = map(NULL, 8 * MIB);
    int refused =
        (mremap((void *)4096, MIB, 2 * MIB, 0) == MAP_FAILED) + (mremap(block, MIB, 6 * MIB, 0) == MAP_FAILED);
    refused += munmap(block, (size_t)-4096) == -1;
    char *moved = mremap(block, 4 * MIB, 16 * MIB, MREMAP_MAYMOVE);
    printf("%d %lx %lx\n", refused, (unsigned long)block, (unsigned long)moved);
    munmap(moved, 16 * MIB);
    return 0;
}
