// SPDX-License-Identifier: Apache-2.0 OR MIT
// A write barrier as garbage collectors use it: pages of a heap array are protected, the SIGSEGV handler opens the
// page and counts it, and the program goes on.
// corpus: build = gcc -O2 -g -Wall -Wextra -Werror {src} -o {out}
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

enum { ARRAY_BYTES = 1 << 20, ROUNDS = 5 };

static uintptr_t page_bytes;
static uintptr_t array_begin;
static volatile sig_atomic_t fault_count;

static void on_fault(int signal_number, siginfo_t *info, void *context) {
    (void)signal_number;
    (void)context;
    uintptr_t address = (uintptr_t)info->si_addr;
    if (address < array_begin || address >= array_begin + ARRAY_BYTES)
        _exit(2);
    if (mprotect((void *)(address & ~(page_bytes - 1)), page_bytes, PROT_READ | PROT_WRITE) != 0)
        _exit(3);
    fault_count++;
}

int main(void) {
    page_bytes = (uintptr_t)sysconf(_SC_PAGESIZE);
    struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO};
    sigaction(SIGSEGV, &action, NULL);

    char *block = malloc(ARRAY_BYTES + page_bytes);
    if (!block)
        return 1;
    array_begin = ((uintptr_t)block + page_bytes - 1) & ~(page_bytes - 1);
    volatile unsigned char *array = (volatile unsigned char *)array_begin;
    int pages = (int)(ARRAY_BYTES / page_bytes);
    for (int round = 0; round < ROUNDS; round++) {
        if (mprotect((void *)array_begin, ARRAY_BYTES, PROT_NONE) != 0)
            return 1;
        for (int i = 0; i < ARRAY_BYTES; i += 64)
            array[i]++;
    }
    int wrong = 0;
    for (int i = 0; i < ARRAY_BYTES; i += 64)
        wrong += array[i] != ROUNDS;
    printf("every page faulted once a round: %s, wrong bytes %d\n", fault_count == pages * ROUNDS ? "yes" : "no",
           wrong);
    free(block);
    return fault_count == pages * ROUNDS && wrong == 0 ? 0 : 1;
}
