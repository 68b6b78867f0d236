/* To preload: a guarded read, as the agent reads the Python stack, takes 10 ms. */
#include <dlfcn.h>
#include <stdarg.h>
#include <sys/syscall.h>
#include <time.h>

long syscall(long number, ...) {
    static long (*libc_syscall)(long, ...);
    long word[6];
    va_list words;
    va_start(words, number);
    for (int i = 0; i < 6; i++) {
        word[i] = va_arg(words, long);
    }
    va_end(words);
    if (number == SYS_process_vm_readv) {
        nanosleep(&(struct timespec){0, 10000000}, NULL);
    }
    if (libc_syscall == NULL) {
        libc_syscall = (long (*)(long, ...))dlsym(RTLD_NEXT, "syscall");
    }
    return libc_syscall(number, word[0], word[1], word[2], word[3], word[4], word[5]);
}
