/* Allocations on coroutine stacks that are unmapped and mapped again, smaller and larger, at the same place. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <ucontext.h>

static ucontext_t home, other;
static jmp_buf back;
__attribute__((noinline)) static void allocate(int depth) {
    volatile char room[512];
    room[0] = 0;
    if (depth > 0) {
        allocate(depth - 1);
    } else {
        void *p = malloc(72000);
        __asm__ volatile("" : : "r"(p) : "memory");
        free(p);
    }
    room[1] = 1;
}
static void coroutine(void) {
    allocate(1);
    allocate(5);
    swapcontext(&other, &home);
}
__attribute__((noinline)) static void jump(int depth) {
    void *p = malloc(71000 + (size_t)depth);
    __asm__ volatile("" : : "r"(p) : "memory");
    free(p);
    if (depth == 0) {
        longjmp(back, 1);
    }
    jump(depth - 1);
    __asm__ volatile("");
}
int main(void) {
    char *area = mmap(NULL, 1 << 20, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (int i = 0; i < 3000; i++) {
        size_t bytes = (size_t)(4 + i % 13) * 4096;
        munmap(area, 1 << 20);
        mmap(area, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
        getcontext(&other);
        other.uc_stack.ss_sp = area;
        other.uc_stack.ss_size = bytes;
        other.uc_link = &home;
        makecontext(&other, coroutine, 0);
        swapcontext(&home, &other);
        if (setjmp(back) == 0) {
            jump(i % 7);
        }
    }
    puts("coroutines done");
    return 0;
}
