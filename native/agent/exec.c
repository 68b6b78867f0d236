/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * exec: the profiled process may replace its image (a shell script's last command, `env`, a launcher), and the new
 * image must be recorded too. Our variables are no longer in `environ`, so they are put into the environment handed
 * to the new image; its constructor takes them out again. Other processes' calls are forwarded unchanged.
 *
 * Nothing is allocated: these functions are called between fork and exec and from signal handlers.
 */
#include "agent.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

extern char **environ;

#define ENTRIES_MAX 16384 /* environment strings; with more, the new image is not recorded */

/* Where the value of LD_PRELOAD names this library, or NULL. */
const char *ft_own_preload_entry(const char *list) {
    size_t own = strlen(ft_agent.path);
    while (*list != '\0') {
        size_t bytes = strcspn(list, ": ");
        if (bytes == own && memcmp(list, ft_agent.path, own) == 0) {
            return list;
        }
        list += bytes;
        list += *list != '\0';
    }
    return NULL;
}

static const char *value_of(const char *entry, const char *name) {
    size_t bytes = strlen(name);
    return strncmp(entry, name, bytes) == 0 && entry[bytes] == '=' ? entry + bytes + 1 : NULL;
}

struct wish {
    bool rewrite; /* hand over another environment than the caller's */
    bool carry;   /* with our variables; else without them */
};

/* getpid() tells a vfork child from its parent, although they share memory. After chroot, or once the library is
 * gone, the new image's loader would complain. */
static struct wish wish_for(bool takes_agent) {
    bool carry = takes_agent && ft_agent.can_carry && access(ft_agent.path, R_OK) == 0;
    /* With FOLLOW the variables are in `environ`, and must not reach an image that cannot take them. */
    return (struct wish){carry || ft_agent.follow, carry};
}

static bool concerned(void) {
    return ft_agent.ring != NULL && __atomic_load_n(&ft_agent.ring->closed, __ATOMIC_RELAXED) == 0 &&
           (ft_agent.follow || (uint32_t)getpid() == ft_agent.root_pid);
}

/* Calls made while probing an image must leave errno as the caller had it. */
#define WISH(probe)                        \
    ({                                     \
        struct wish wish = {false, false}; \
        if (concerned()) {                 \
            int saved_errno = errno;       \
            wish = wish_for(probe);        \
            errno = saved_errno;           \
        }                                  \
        wish;                              \
    })

static size_t count_entries(char *const entries[]) {
    size_t count = 0;
    while (entries != NULL && entries[count] != NULL) {
        count++;
    }
    return count;
}

/* The bytes of the LD_PRELOAD string that `compose` writes. */
static size_t preload_bytes(char *const environment[]) {
    size_t longest = 0;
    for (size_t i = 0; environment != NULL && environment[i] != NULL; i++) {
        const char *value = value_of(environment[i], "LD_PRELOAD");
        size_t bytes = value != NULL ? strlen(value) : 0;
        longest = bytes > longest ? bytes : longest;
    }
    return sizeof "LD_PRELOAD=" + strlen(ft_agent.path) + 1 + longest;
}

/* Writes the LD_PRELOAD entry with or without ours. The last LD_PRELOAD of an environment is the one that counts. An
 * empty value keeps a colon, so that taking our entry out again restores it. */
static void compose_preload(char *out, const char *value, bool carry) {
    const char *own = value != NULL ? ft_own_preload_entry(value) : NULL;
    char *end = stpcpy(out, "LD_PRELOAD=");
    if (carry && own == NULL) {
        end = stpcpy(end, ft_agent.path);
        if (value != NULL) {
            stpcpy(stpcpy(end, ":"), value);
        }
    } else if (!carry && own != NULL) {
        size_t before = (size_t)(own - value);
        const char *after = own + strlen(ft_agent.path);
        memcpy(end, value, before);
        stpcpy(end + before, *after != '\0' ? after + 1 : after);
    } else {
        stpcpy(end, value);
    }
}

static void compose(char **out, char *preload, char *const environment[], bool carry) {
    char **preload_entry = NULL;
    const char *preload_value = NULL;
    for (size_t i = 0; environment != NULL && environment[i] != NULL; i++) {
        if (value_of(environment[i], FT_AGENT_ENV) != NULL) {
            continue;
        }
        const char *value = value_of(environment[i], "LD_PRELOAD");
        if (value != NULL) {
            preload_entry = out;
            preload_value = value;
        }
        *out++ = environment[i];
    }
    if (carry || (preload_value != NULL && ft_own_preload_entry(preload_value) != NULL)) {
        compose_preload(preload, preload_value, carry);
        if (preload_entry != NULL) {
            *preload_entry = preload;
        } else {
            *out++ = preload;
        }
    }
    if (carry) {
        *out++ = ft_agent.environment;
    }
    *out = NULL;
}

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

static FT_NOINLINE int forward_rewritten(const struct target *target, char *const arguments[],
                                         char *const environment[], size_t entries, bool carry) {
    char *rewritten[entries + 3];
    char preload[preload_bytes(environment)];
    compose(rewritten, preload, environment, carry);
    return forward(target, arguments, rewritten);
}

static int replace_image(struct target target, char *const arguments[], char *const environment[]) {
    struct wish wish = WISH(takes_agent(&target));
    size_t entries = wish.rewrite ? count_entries(environment) : 0;
    if (!wish.rewrite || entries > ENTRIES_MAX) {
        return forward(&target, arguments, environment);
    }
    return forward_rewritten(&target, arguments, environment, entries, wish.carry);
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

/* The arguments of execl and its kin as a vector, on the stack as glibc's own do it. `list` is consumed. */
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
