/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * Children started in one call, with --follow: posix_spawn, system and popen of the C library do not go through the exec
 * that we interpose.
 */
#include "agent.h"

#include <errno.h>
#include <string.h>

extern char **environ;

typedef int (*spawn_function)(pid_t *, const char *, const posix_spawn_file_actions_t *, const posix_spawnattr_t *,
                              char *const[], char *const[]);

struct spawn {
    spawn_function real;
    bool searches;
    pid_t *child;
    const char *file;
    const posix_spawn_file_actions_t *actions;
    const posix_spawnattr_t *attributes;
    char *const *arguments;
};

/* The file actions may change the directory that a relative path starts from: such an image is not known. */
static bool takes_agent(const struct spawn *spawn) {
    bool has_slash = strchr(spawn->file, '/') != NULL;
    if (has_slash && spawn->file[0] != '/' && spawn->actions != NULL && spawn->actions->__used != 0) {
        return false;
    }
    return has_slash || !spawn->searches ? ft_image_takes_agent(spawn->file)
                                         : ft_searched_image_takes_agent(spawn->file);
}

static FT_NOINLINE bool carries_agent(const struct spawn *spawn, char *const environment[], struct ft_carry *carry) {
    struct ft_probe probe = {0};
    int saved_errno = errno;
    bool carries = ft_readable_string(&probe, spawn->file) && takes_agent(spawn) && ft_library_is_within_reach() &&
                   ft_carry_measure(carry, environment) && ft_carry_fits_stack(carry);
    errno = saved_errno;
    return carries;
}

static FT_NOINLINE int spawn_carrying(const struct spawn *spawn, const struct ft_carry *carry) {
    char *block[carry->bytes / sizeof(char *) + 1];
    return spawn->real(spawn->child, spawn->file, spawn->actions, spawn->attributes, spawn->arguments,
                       ft_carry_compose(carry, block));
}

static FT_NOINLINE int spawn_followed(struct spawn spawn, char *const environment[]) {
    struct ft_carry carry;
    if (!ft_hands_on() || !carries_agent(&spawn, environment, &carry)) {
        return spawn.real(spawn.child, spawn.file, spawn.actions, spawn.attributes, spawn.arguments, environment);
    }
    return spawn_carrying(&spawn, &carry);
}

FT_EXPORT int posix_spawn(pid_t *restrict child, const char *restrict file,
                          const posix_spawn_file_actions_t *restrict actions,
                          const posix_spawnattr_t *restrict attributes, char *const arguments[restrict],
                          char *const environment[restrict]) {
    if (!ft_agent.follow) {
        return FT_REAL(posix_spawn)(child, file, actions, attributes, arguments, environment);
    }
    return spawn_followed((struct spawn){FT_REAL(posix_spawn), false, child, file, actions, attributes, arguments},
                          environment);
}

FT_EXPORT int posix_spawnp(pid_t *restrict child, const char *restrict file,
                           const posix_spawn_file_actions_t *restrict actions,
                           const posix_spawnattr_t *restrict attributes, char *const arguments[restrict],
                           char *const environment[restrict]) {
    if (!ft_agent.follow) {
        return FT_REAL(posix_spawnp)(child, file, actions, attributes, arguments, environment);
    }
    return spawn_followed((struct spawn){FT_REAL(posix_spawnp), true, child, file, actions, attributes, arguments},
                          environment);
}

/* system and popen take the environment from `environ`, which is set for the time of the call. While there are other
 * threads that must not be: what one of them put into it meanwhile would be lost. Then the child is not followed. */
static bool shell_carries_agent(struct ft_carry *carry) {
    int saved_errno = errno;
    bool carries = ft_agent.follow && ft_agent.is_single_threaded != NULL && *ft_agent.is_single_threaded != 0 &&
                   ft_hands_on() && ft_image_takes_agent("/bin/sh") && ft_library_is_within_reach() &&
                   ft_carry_measure(carry, environ) && ft_carry_fits_stack(carry);
    errno = saved_errno;
    return carries;
}

static void restore_environment(void *environment) {
    environ = environment;
}

/* system can be cancelled. */
static FT_NOINLINE int system_carrying(const char *command, const struct ft_carry *carry) {
    char *block[carry->bytes / sizeof(char *) + 1];
    int status;
    pthread_cleanup_push(restore_environment, environ);
    environ = ft_carry_compose(carry, block);
    status = FT_REAL(system)(command);
    pthread_cleanup_pop(1);
    return status;
}

FT_EXPORT int system(const char *command) {
    struct ft_carry carry;
    if (command == NULL || !shell_carries_agent(&carry)) {
        return FT_REAL(system)(command);
    }
    return system_carrying(command, &carry);
}

static FT_NOINLINE FILE *popen_carrying(const char *command, const char *type, const struct ft_carry *carry) {
    char *block[carry->bytes / sizeof(char *) + 1];
    char **environment = environ;
    environ = ft_carry_compose(carry, block);
    FILE *stream = FT_REAL(popen)(command, type);
    environ = environment;
    return stream;
}

FT_EXPORT FILE *popen(const char *command, const char *type) {
    struct ft_carry carry;
    if (!shell_carries_agent(&carry)) {
        return FT_REAL(popen)(command, type);
    }
    return popen_carrying(command, type, &carry);
}
