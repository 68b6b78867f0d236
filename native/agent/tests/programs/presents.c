/* Shared mappings of which a known part is present already. Prints for each: size, pages, pages present, errno after the call. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

/* Writes the first `written` bytes of a file of `size` bytes in memory, and maps it all. */
static void map_written(size_t size, size_t written) {
    const int file = memfd_create("presents", 0);
    char *bytes = calloc(1, written + 1);
    if (file < 0 || bytes == NULL || ftruncate(file, (off_t)size) != 0 ||
        write(file, bytes, written) != (ssize_t)written) {
        perror("presents");
        exit(1);
    }
    errno = 77;
    const void *mapped = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    const int after = errno;
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    printf("%zu %zu %zu %s\n", size, (size + page - 1) / page, (written + page - 1) / page,
           mapped != MAP_FAILED && after == 77 ? "kept" : "changed");
    free(bytes);
    close(file);
}

int main(void) {
    /* Sizes are unique. Looked at as a whole: a page more than a part of 64, and as many as there are parts. */
    map_written(65 * 4096, 0);
    map_written(66 * 4096 - 5, 66 * 4096 - 5);
    map_written(2048 * 4096, 512 * 4096);
    map_written(100 * 4096, 1);
    /* Looked at in parts, evenly spaced. */
    map_written(10000 * 4096, 0);
    map_written(10001 * 4096, 10001 * 4096);
    map_written(10002 * 4096, 2500 * 4096);
    map_written(10003 * 4096, 7500 * 4096);
    return 0;
}
