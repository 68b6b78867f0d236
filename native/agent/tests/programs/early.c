/* Allocates in a library's constructor, a preinit function, a constructor and a destructor. */
#include <stdio.h>
#include <stdlib.h>
extern void *early_block;
static void *blocks[3];
static void preinit(void) {
    blocks[0] = malloc(300002);
}
__attribute__((section(".preinit_array"), used)) static void (*const preinit_entry)(void) = preinit;
__attribute__((constructor)) static void construct(void) {
    blocks[1] = calloc(1, 300003);
}
__attribute__((destructor)) static void destruct(void) {
    blocks[2] = realloc(blocks[1], 300004);
    free(blocks[2]);
    free(early_block);
}
int main(void) {
    printf("%d\n", blocks[0] != NULL && blocks[1] != NULL && early_block != NULL);
    free(blocks[0]);
    return 0;
}
