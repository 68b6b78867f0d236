/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * The exec family. The profiled process may replace its image (a shell script's last command, `env`, a launcher). The new
 * image must be recorded too, and with --follow those of its children.
 *
 * A child of clone may call these functions on a few kilobytes of stack: they need less than 2 KiB.
 */
#include "agent.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <sys/syscall.h>
#include <unistd.h>

extern char **environ;

enum how { BY_PATH, BY_SEARCH, BY_FD, BY_PATH_AT };

struct target {
    enum how how;
    const char *name;
    int fd;
    int flags;
};

static int forward(const struct target *target, char *const arguments[], char *const environment[]) {
    switch (target->how) {
    case BY_PATH:
        return FT_REAL(execve)(target->name, arguments, environment);
    case BY_SEARCH:
        return FT_REAL(execvpe)(target->name, arguments, environment);
    case BY_FD:
        return FT_REAL(fexecve)(target->fd, arguments, environment);
    default:
        if (FT_REAL(execveat) == NULL) { /* glibc before 2.34 */
            return (int)syscall(SYS_execveat, target->fd, target->name, arguments, environment, target->flags);
        }
        return ft_real.execveat(target->fd, target->name, arguments, environment, target->flags);
    }
}

static bool takes_agent(const struct target *target) {
    switch (target->how) {
    case BY_PATH:
        return ft_image_takes_agent(target->name);
    case BY_SEARCH:
        return ft_searched_image_takes_agent(target->name);
    case BY_FD:
        return ft_open_image_takes_agent(target->fd);
    default:
        return ft_image_at_takes_agent(target->fd, target->name, target->flags);
    }
}

/* The checks must not change errno for the caller. */
static FT_NOINLINE bool gets_agent(const struct target *target, char *const environment[],
                                   struct ft_exec_environment *copy) {
    int saved_errno = errno;
    bool gets = takes_agent(target) && ft_library_is_accessible() && ft_exec_environment_measure(copy, environment) &&
                ft_exec_environment_fits_stack(copy);
    errno = saved_errno;
    return gets;
}

static FT_NOINLINE int forward_with_agent(const struct target *target, char *const arguments[],
                                          const struct ft_exec_environment *copy) {
    char *block[copy->bytes / sizeof(char *) + 1];
    return forward(target, arguments, ft_exec_environment_compose(copy, block));
}

static int replace_image(struct target target, char *const arguments[], char *const environment[]) {
    struct ft_exec_environment copy;
    if (!ft_propagates() || !gets_agent(&target, environment, &copy)) {
        return forward(&target, arguments, environment);
    }
    return forward_with_agent(&target, arguments, &copy);
}

FT_EXPORT int execve(const char *path, char *const arguments[], char *const environment[]) {
    return replace_image((struct target){.how = BY_PATH, .name = path}, arguments, environment);
}

FT_EXPORT int execv(const char *path, char *const arguments[]) {
    return replace_image((struct target){.how = BY_PATH, .name = path}, arguments, environ);
}

FT_EXPORT int execvpe(const char *file, char *const arguments[], char *const environment[]) {
    return replace_image((struct target){.how = BY_SEARCH, .name = file}, arguments, environment);
}

FT_EXPORT int execvp(const char *file, char *const arguments[]) {
    return replace_image((struct target){.how = BY_SEARCH, .name = file}, arguments, environ);
}

FT_EXPORT int fexecve(int fd, char *const arguments[], char *const environment[]) {
    return replace_image((struct target){.how = BY_FD, .fd = fd}, arguments, environment);
}

FT_EXPORT int execveat(int directory, const char *path, char *const arguments[], char *const environment[], int flags) {
    return replace_image((struct target){.how = BY_PATH_AT, .name = path, .fd = directory, .flags = flags}, arguments,
                         environment);
}

/* execl, execlp and execle need their arguments as a vector. It lies on the stack, as in glibc. Consumes `list`. */
static int count_arguments(const char *first, va_list list) {
    int count = 0;
    for (const char *argument = first; argument != NULL; argument = va_arg(list, const char *)) {
        count++;
    }
    return count;
}

#define LIST_TO_VECTOR(vector, first)         \
    va_list list;                             \
    va_start(list, first);                    \
    int count = count_arguments(first, list); \
    va_end(list);                             \
    char *vector[count + 1];                  \
    va_start(list, first);                    \
    vector[0] = (char *)(uintptr_t)first;     \
    for (int i = 1; i <= count; i++) {        \
        vector[i] = va_arg(list, char *);     \
    }

FT_EXPORT int execl(const char *path, const char *first, ...) {
    LIST_TO_VECTOR(arguments, first)
    va_end(list);
    return execv(path, arguments);
}

FT_EXPORT int execlp(const char *file, const char *first, ...) {
    LIST_TO_VECTOR(arguments, first)
    va_end(list);
    return execvp(file, arguments);
}

FT_EXPORT int execle(const char *path, const char *first, ...) {
    LIST_TO_VECTOR(arguments, first)
    char *const *environment = va_arg(list, char *const *);
    va_end(list);
    return execve(path, arguments, environment);
}
