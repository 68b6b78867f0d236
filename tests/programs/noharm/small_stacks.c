// SPDX-License-Identifier: Apache-2.0 OR MIT
// Allocates on stacks with little room and in places where walking frames is unsafe: threads with the smallest stack,
// coroutines (makecontext), and a frame pointer register that holds garbage.
// corpus: build = gcc -O2 -g -Wall -Wextra -Werror -fomit-frame-pointer -pthread {src} -o {out}
#include <limits.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>
#include <unistd.h>

enum { BLOCK_BYTES = 128 * 1024 };

static int allocations;

static void allocate(void) {
    char *block = malloc(BLOCK_BYTES);
    if (!block)
        abort();
    memset(block, 1, BLOCK_BYTES);
    free(block);
    allocations++;
}

static void *on_small_stack(void *argument) {
    allocate();
    return argument;
}

static ucontext_t main_context, coroutine;

static void coroutine_body(void) {
    for (int i = 0; i < 20; i++) {
        allocate();
        swapcontext(&coroutine, &main_context);
    }
}

#if defined(__x86_64__)
__attribute__((noinline)) static void with_garbage_in_frame_pointer(uintptr_t garbage) {
    void *block = NULL;
    // malloc(BLOCK_BYTES) with rbp = garbage. rbx keeps the stack pointer over the call (it is callee-saved), the red
    // zone is skipped, and the stack is aligned as the ABI wants it.
    __asm__ volatile("movq %%rsp, %%rbx\n\t"
                     "subq $256, %%rsp\n\t"
                     "andq $-16, %%rsp\n\t"
                     "pushq %%rbp\n\t"
                     "pushq %%rbp\n\t"
                     "movq %[garbage], %%rbp\n\t"
                     "call malloc@PLT\n\t"
                     "popq %%rbp\n\t"
                     "popq %%rbp\n\t"
                     "movq %%rbx, %%rsp\n\t"
                     : "=a"(block)
                     : [garbage] "r"(garbage), "D"((size_t)BLOCK_BYTES)
                     : "rbx", "rcx", "rdx", "rsi", "r8", "r9", "r10", "r11", "memory", "cc");
    if (!block)
        abort();
    memset(block, 1, BLOCK_BYTES);
    free(block);
    allocations++;
}
#endif

int main(void) {
    size_t page_bytes = (size_t)sysconf(_SC_PAGESIZE);
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    size_t smallest = ((size_t)PTHREAD_STACK_MIN + page_bytes - 1) & ~(page_bytes - 1);
    if (pthread_attr_setstacksize(&attributes, smallest) != 0)
        return 1;
    for (int i = 0; i < 50; i++) {
        pthread_t thread;
        if (pthread_create(&thread, &attributes, on_small_stack, NULL) != 0)
            return 1;
        pthread_join(thread, NULL);
    }

    char *stack = malloc(64 * 1024);
    if (!stack || getcontext(&coroutine) != 0)
        return 1;
    coroutine.uc_stack.ss_sp = stack;
    coroutine.uc_stack.ss_size = 64 * 1024;
    coroutine.uc_link = &main_context;
    makecontext(&coroutine, coroutine_body, 0);
    for (int i = 0; i < 20; i++)
        swapcontext(&main_context, &coroutine);

#if defined(__x86_64__)
    uintptr_t garbage[] = {0, 1, 8, 0xdeadbeef, UINTPTR_MAX, UINTPTR_MAX - 7, (uintptr_t)1 << 47, (uintptr_t)&garbage};
    for (size_t i = 0; i < sizeof garbage / sizeof garbage[0]; i++)
        with_garbage_in_frame_pointer(garbage[i]);
    with_garbage_in_frame_pointer((uintptr_t)stack + 64 * 1024 - 8); // readable, then not
#else
    for (int i = 0; i < 9; i++)
        allocate();
#endif
    printf("allocations %d\n", allocations);
    free(stack);
    return 0;
}
