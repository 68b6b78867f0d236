/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * The environment for a new program image that is to load the agent. Our variables are never in `environ` (the constructor
 * removes them), so a program that is started by a call we do not interpose starts as it would without us. An interposed
 * call gets a copy of its environment with the variables added, if the new image can take the agent and is to be
 * recorded: the profiled process itself, and with --follow its children. Otherwise the call is forwarded unchanged.
 *
 * Nothing here allocates: programs call exec in forked children and in signal handlers.
 */
#include "agent.h"

#include <string.h>
#include <unistd.h>

#define ENTRIES_MAX 16384u       /* environment strings; if there are more, the new image is not recorded */
#define STACK_SMALL 1024u        /* bytes that any stack has on which exec is called */
#define STACK_KEPT (32u * 1024u) /* bytes left for the real function on a stack of known size */

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

/* getpid() distinguishes a vfork child from its parent, although they share memory. */
bool ft_propagates(void) {
    return ft_agent.ring != NULL && ft_agent.can_propagate && !ft_sandboxed() &&
           __atomic_load_n(&ft_agent.ring->closed, __ATOMIC_RELAXED) == 0 &&
           (ft_agent.follow || (uint32_t)getpid() == ft_agent.root_pid);
}

/* After chroot, a change of user, or deletion of the library, the new image's loader would print an error. Where real and
 * effective user differ, the loader drops LD_PRELOAD, and our other variable would remain. access() checks for the real
 * user, without the capabilities that exec removes; opening the file would prove less. */
bool ft_library_is_accessible(void) {
    return getuid() == geteuid() && getgid() == getegid() && access(ft_agent.path, R_OK) == 0;
}

static bool preloads_sanitizer(const char *list) {
    while (*list != '\0') {
        size_t bytes = strcspn(list, ": ");
        const char *name = memrchr(list, '/', bytes);
        if (ft_is_sanitizer(name != NULL ? name + 1 : list)) {
            return true;
        }
        list += bytes;
        list += *list != '\0';
    }
    return false;
}

bool ft_exec_environment_measure(struct ft_exec_environment *copy, char *const environment[]) {
    struct ft_last_readable of_entries = {0}, of_strings = {0};
    *copy = (struct ft_exec_environment){.environment = environment};
    for (size_t i = 0; environment != NULL; i++) {
        if (i == ENTRIES_MAX || !ft_readable(&of_entries, &environment[i], sizeof *environment)) {
            return false;
        }
        if (environment[i] == NULL) {
            break;
        }
        if (!ft_readable_string(&of_strings, environment[i])) {
            return false;
        }
        const char *value = value_of(environment[i], "LD_PRELOAD");
        copy->preload = value != NULL ? value : copy->preload; /* the last one counts */
        copy->entries++;
    }
    if (copy->preload != NULL && preloads_sanitizer(copy->preload)) {
        return false;
    }
    size_t preload_bytes = copy->preload != NULL ? strlen(copy->preload) : 0;
    copy->bytes = (copy->entries + 3) * sizeof(char *) + sizeof "LD_PRELOAD=:" + strlen(ft_agent.path) + preload_bytes;
    return true;
}

/* A stack of unknown bounds, such as one passed to clone, may be small: a copy takes at most STACK_SMALL of it. */
bool ft_exec_environment_fits_stack(const struct ft_exec_environment *copy) {
    uintptr_t here = (uintptr_t)__builtin_frame_address(0);
    return copy->bytes <= STACK_SMALL ||
           (ft_on_native_stack(here) && here - ft_thread.native_low > copy->bytes + STACK_KEPT);
}

/* Puts our entry before the user's. An empty value keeps a colon, so that removing our entry restores it. */
static char *compose_preload(char *out, const char *value) {
    char *end = stpcpy(out, "LD_PRELOAD=");
    if (value != NULL && ft_own_preload_entry(value) != NULL) {
        strcpy(end, value);
        return out;
    }
    end = stpcpy(end, ft_agent.path);
    if (value != NULL) {
        strcpy(stpcpy(end, ":"), value);
    }
    return out;
}

char **ft_exec_environment_compose(const struct ft_exec_environment *copy, void *block) {
    char **out = block;
    char *preload = compose_preload((char *)(out + copy->entries + 3), copy->preload);
    bool added = false;
    for (size_t i = 0; i < copy->entries; i++) {
        char *entry = copy->environment[i];
        if (value_of(entry, FT_AGENT_ENV) != NULL) {
            continue;
        }
        if (value_of(entry, "LD_PRELOAD") == copy->preload && copy->preload != NULL) {
            entry = preload;
            added = true;
        }
        *out++ = entry;
    }
    if (!added) {
        *out++ = preload;
    }
    *out++ = ft_agent.environment;
    *out = NULL;
    return block;
}
