/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * posix_spawn, system and popen, for --follow: in the C library they do not call the exec functions that we interpose.
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

/* File actions may change the current directory: then a relative path names an unknown image. */
static bool takes_agent(const struct spawn *spawn) {
    bool has_slash = strchr(spawn->file, '/') != NULL;
    if (has_slash && spawn->file[0] != '/' && spawn->actions != NULL && spawn->actions->__used != 0) {
        return false;
    }
    return has_slash || !spawn->searches ? ft_image_takes_agent(spawn->file)
                                         : ft_searched_image_takes_agent(spawn->file);
}

static FT_NOINLINE bool gets_agent(const struct spawn *spawn, char *const environment[],
                                   struct ft_exec_environment *copy) {
    struct ft_last_readable last = {0};
    int saved_errno = errno;
    bool gets = ft_readable_string(&last, spawn->file) && takes_agent(spawn) && ft_library_is_accessible() &&
                ft_exec_environment_measure(copy, environment) && ft_exec_environment_fits_stack(copy);
    errno = saved_errno;
    return gets;
}

static FT_NOINLINE int spawn_with_agent(const struct spawn *spawn, const struct ft_exec_environment *copy) {
    char *block[copy->bytes / sizeof(char *) + 1];
    return spawn->real(spawn->child, spawn->file, spawn->actions, spawn->attributes, spawn->arguments,
                       ft_exec_environment_compose(copy, block));
}

static FT_NOINLINE int spawn_followed(struct spawn spawn, char *const environment[]) {
    struct ft_exec_environment copy;
    if (!ft_propagates() || !gets_agent(&spawn, environment, &copy)) {
        return spawn.real(spawn.child, spawn.file, spawn.actions, spawn.attributes, spawn.arguments, environment);
    }
    return spawn_with_agent(&spawn, &copy);
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

/* system and popen use `environ`, so the hooks replace it during the call. With other threads that is unsafe: a variable that
 * one of them sets meanwhile would be lost. Then the child is not followed. */
static bool shell_gets_agent(struct ft_exec_environment *copy) {
    int saved_errno = errno;
    bool gets = ft_agent.follow && ft_agent.is_single_threaded != NULL && *ft_agent.is_single_threaded != 0 &&
                ft_propagates() && ft_image_takes_agent("/bin/sh") && ft_library_is_accessible() &&
                ft_exec_environment_measure(copy, environ) && ft_exec_environment_fits_stack(copy);
    errno = saved_errno;
    return gets;
}

static void restore_environment(void *environment) {
    environ = environment;
}

/* system can be cancelled. */
static FT_NOINLINE int system_with_agent(const char *command, const struct ft_exec_environment *copy) {
    char *block[copy->bytes / sizeof(char *) + 1];
    int status;
    pthread_cleanup_push(restore_environment, environ);
    environ = ft_exec_environment_compose(copy, block);
    status = FT_REAL(system)(command);
    pthread_cleanup_pop(1);
    return status;
}

FT_EXPORT int system(const char *command) {
    struct ft_exec_environment copy;
    if (command == NULL || !shell_gets_agent(&copy)) {
        return FT_REAL(system)(command);
    }
    return system_with_agent(command, &copy);
}

static FT_NOINLINE FILE *popen_with_agent(const char *command, const char *type,
                                          const struct ft_exec_environment *copy) {
    char *block[copy->bytes / sizeof(char *) + 1];
    char **environment = environ;
    environ = ft_exec_environment_compose(copy, block);
    FILE *stream = FT_REAL(popen)(command, type);
    environ = environment;
    return stream;
}

FT_EXPORT FILE *popen(const char *command, const char *type) {
    struct ft_exec_environment copy;
    if (!shell_gets_agent(&copy)) {
        return FT_REAL(popen)(command, type);
    }
    return popen_with_agent(command, type, &copy);
}
