/* A library that allocates in its constructor, before the program's own code. */
#include <stdlib.h>
void *early_block;
__attribute__((constructor)) static void allocate_early(void) {
    early_block = malloc(300001);
    free(malloc(10));
}
