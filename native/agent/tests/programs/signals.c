/* A 10 kHz timer whose handler maps and unmaps memory (async-signal-safe), while the program does the same, on the
 * native and on an alternate stack, and with handlers left by siglongjmp. Prints the balance. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <unistd.h>

static volatile sig_atomic_t fired, jumping;
static sigjmp_buf out;
static void on_timer(int number) {
    (void)number;
    fired++;
    void *p = mmap(NULL, 69632, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    munmap(p, 69632);
    if (jumping) {
        /* siglongjmp unblocks the signal while it is still on this stack: another one that is due must not jump as well, and so on until
         * the stack is full. */
        jumping = 0;
        siglongjmp(out, 1);
    }
}
static void run(int flags, int jump, void (*work)(void)) {
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = on_timer;
    action.sa_flags = flags;
    sigaction(SIGALRM, &action, NULL);
    struct itimerval timer = {{0, 100}, {0, 100}}, off = {{0, 0}, {0, 0}};
    int until = fired + 3000;
    setitimer(ITIMER_REAL, &timer, NULL);
    if (sigsetjmp(out, 1) != 0) {
        jumping = 0;
    }
    while (fired < until) {
        jumping = jump && fired % 2;
        work();
        jumping = 0;
    }
    setitimer(ITIMER_REAL, &off, NULL);
}
static void map(void) {
    void *p = mmap(NULL, 73728, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    munmap(p, 73728);
}
static void allocate(void) {
    void *p = malloc(75000);
    __asm__ volatile("" : : "r"(p) : "memory");
    free(p);
}
int main(void) {
    stack_t alternate = {.ss_sp = malloc(65536), .ss_size = 65536};
    sigaltstack(&alternate, NULL);
    run(SA_RESTART, 0, allocate);
    run(SA_RESTART | SA_ONSTACK, 0, allocate);
    run(SA_RESTART, 0, map);
    run(SA_RESTART, 1, map);
    run(SA_RESTART | SA_ONSTACK, 1, map);
    for (int i = 0; i < 20; i++) { /* gives the reader time to skip slots that a jump left unpublished */
        usleep(100000);
        map();
    }
    void *last = malloc(77777); /* must still be recorded */
    __asm__ volatile("" : : "r"(last) : "memory");
    free(last);
    puts("signals done");
    return 0;
}
