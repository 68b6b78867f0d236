/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * What a preloaded library says on standard error when the program ends: one line, put together without allocating, and written so
 * that it changes nothing of how the program ends. One source of a library includes this file.
 */
#ifndef FIRSTTOUCH_LAST_WORDS_H
#define FIRSTTOUCH_LAST_WORDS_H

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static struct stat standard_error;
static bool has_standard_error;

/* Notes which file standard error is. Call before the program runs. */
static inline void ft_words_prepare(void) {
    has_standard_error = fstat(STDERR_FILENO, &standard_error) == 0;
}

/* The program may have opened a file of its own as descriptor 2. */
static inline bool ft_is_still_standard_error(void) {
    struct stat now;
    return has_standard_error && fstat(STDERR_FILENO, &now) == 0 && now.st_dev == standard_error.st_dev &&
           now.st_ino == standard_error.st_ino;
}

struct ft_text {
    char bytes[4096];
    size_t used;
};

static inline void ft_add(struct ft_text *text, const char *words) {
    size_t length = strlen(words);
    if (length < sizeof text->bytes - text->used) {
        memcpy(text->bytes + text->used, words, length);
        text->used += length;
    }
}

static inline void ft_add_number(struct ft_text *text, uint64_t number) {
    char digits[24];
    size_t at = sizeof digits - 1;
    digits[at] = '\0';
    do {
        digits[--at] = (char)('0' + number % 10);
        number /= 10;
    } while (number != 0);
    ft_add(text, digits + at);
}

/* The write must not change how the program ends. Signals that it may raise (SIGPIPE: the reader is gone; SIGXFSZ: the file is
 * at its size limit; SIGTTOU: a background process writes to the terminal) are blocked and consumed. It does not wait for a
 * full pipe. */
static inline void ft_write_line(const struct ft_text *text) {
    struct pollfd error = {.fd = STDERR_FILENO, .events = POLLOUT};
    if (poll(&error, 1, 0) != 1 || (error.revents & POLLOUT) == 0) {
        return;
    }
    static const int numbers[] = {SIGPIPE, SIGXFSZ, SIGTTOU};
    sigset_t raised, mask_before, pending, pending_before;
    sigemptyset(&raised);
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        sigaddset(&raised, numbers[i]);
    }
    if (sigpending(&pending_before) != 0 || pthread_sigmask(SIG_BLOCK, &raised, &mask_before) != 0) {
        return;
    }
    (void)!write(STDERR_FILENO, text->bytes, text->used);
    if (sigpending(&pending) == 0) {
        for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
            if (sigismember(&pending, numbers[i]) == 1 && sigismember(&pending_before, numbers[i]) == 0) {
                sigset_t one;
                struct timespec now = {0, 0};
                sigemptyset(&one);
                sigaddset(&one, numbers[i]);
                (void)sigtimedwait(&one, NULL, &now);
            }
        }
    }
    (void)pthread_sigmask(SIG_SETMASK, &mask_before, NULL);
}

#endif
