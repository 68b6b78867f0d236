/* A random walk through a call tree; each leaf allocates a block of a unique size and prints the path that led to it:
 *   SIZE function function ...     (innermost first)
 * The same leaf is reached with equal stack pointers by different paths, which a stack cache must distinguish.
 *   paths COUNT THREADS     each of THREADS threads makes COUNT blocks, from short-lived threads if THREADS > 1 */
#define _GNU_SOURCE
#include <alloca.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct walk {
    uint64_t seed;
    int depth;
    char path[32];
};
static size_t next_size = 65536;
static pthread_mutex_t printing = PTHREAD_MUTEX_INITIALIZER;

static unsigned draw(struct walk *walk) {
    walk->seed = walk->seed * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(walk->seed >> 33);
}

static void step(struct walk *walk, int depth);

#define LEAF(name)                                                                      \
    __attribute__((noinline, noclone)) static void name(struct walk *walk, int depth) { \
        size_t size = __atomic_add_fetch(&next_size, 1, __ATOMIC_RELAXED);              \
        walk->path[depth] = #name[0];                                                   \
        void *block = malloc(size);                                                     \
        __asm__ volatile("" : : "r"(block) : "memory");                                 \
        pthread_mutex_lock(&printing);                                                  \
        printf("%zu", size);                                                            \
        for (int i = depth; i >= 0; i--) {                                              \
            printf(" %c", walk->path[i]);                                               \
        }                                                                               \
        printf("\n");                                                                   \
        pthread_mutex_unlock(&printing);                                                \
        free(block);                                                                    \
    }
#define NODE(name, bytes)                                                               \
    __attribute__((noinline, noclone)) static void name(struct walk *walk, int depth) { \
        volatile char room[bytes];                                                      \
        room[0] = 0;                                                                    \
        walk->path[depth] = #name[0];                                                   \
        step(walk, depth + 1);                                                          \
        room[0] = 1;                                                                    \
    }
#define NODE_ALLOCA(name)                                                               \
    __attribute__((noinline, noclone)) static void name(struct walk *walk, int depth) { \
        volatile char *room = alloca(16 + (draw(walk) % 4) * 16);                       \
        room[0] = 0;                                                                    \
        walk->path[depth] = #name[0];                                                   \
        step(walk, depth + 1);                                                          \
        room[0] = 1;                                                                    \
    }
// clang-format off
LEAF(a)
LEAF(b) NODE(c, 16) NODE(d, 16) NODE(e, 32) NODE(f, 64) NODE_ALLOCA(g) NODE_ALLOCA(h)

/* Inlined into every node, so that the stack holds only the path. */
static inline __attribute__((always_inline)) void step_inline(struct walk *walk, int depth) {
    static void (*const nodes[])(struct walk *, int) = {a, b, c, d, e, f, g, h};
    unsigned which = depth >= walk->depth ? draw(walk) % 2 : 2 + draw(walk) % 6;
    nodes[which](walk, depth);
}
__attribute__((noinline, noclone)) static void step(struct walk *walk, int depth) {
    step_inline(walk, depth);
    __asm__ volatile("" ::: "memory"); /* no tail call */
}

static int count;
static void *work(void *seed) {
    struct walk walk = {(uint64_t)(uintptr_t)seed, 0, {0}};
    for (int i = 0; i < count; i++) {
        walk.depth = (int)(draw(&walk) % 8);
        step(&walk, 0);
    }
    return NULL;
}

int main(int argc, char **argv) {
    int threads = argc > 2 ? atoi(argv[2]) : 1;
    count = argc > 1 ? atoi(argv[1]) : 1000;
    if (threads == 1) {
        work((void *)7);
    }
    for (int done = 0; threads > 1 && done < threads; done += 4) { /* stacks are reused by later threads */
        pthread_t thread[4];
        for (uintptr_t i = 0; i < 4; i++) {
            pthread_attr_t attributes;
            pthread_attr_init(&attributes);
            pthread_attr_setstacksize(&attributes,
                                      32768 << (draw(&(struct walk){(uint64_t)done * 977 + i, 0, {0}}) % 6));
            pthread_create(&thread[i], &attributes, work, (void *)((uintptr_t)done + i));
            pthread_attr_destroy(&attributes);
        }
        for (int i = 0; i < 4; i++) {
            pthread_join(thread[i], NULL);
        }
    }
    return 0;
}
