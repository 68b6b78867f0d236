/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * Handing the agent on. Our variables are never in `environ` (the constructor takes them out), so that whatever starts
 * a program by a way we do not know of starts it as it would run without us. A call that we do know gets a copy of its
 * environment with the variables in it, if the new image can take the agent and ought to have it: the profiled process
 * itself, and with --follow its children. In every other case the call is forwarded as it came.
 *
 * Nothing is allocated: exec is called between fork and exec, and from signal handlers.
 */
#include "agent.h"

#include <string.h>
#include <unistd.h>

#define ENTRIES_MAX 16384u       /* environment strings; with more, the new image is not recorded */
#define STACK_SMALL 1024u        /* bytes that any stack an exec is called on must have */
#define STACK_KEPT (32u * 1024u) /* left of a known stack, for the real function */

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

/* getpid() tells a vfork child from its parent, although they share memory. */
bool ft_hands_on(void) {
    return ft_agent.ring != NULL && ft_agent.can_carry && !ft_sandboxed() &&
           __atomic_load_n(&ft_agent.ring->closed, __ATOMIC_RELAXED) == 0 &&
           (ft_agent.follow || (uint32_t)getpid() == ft_agent.root_pid);
}

/* After chroot or a change of user, or once the library is gone, the new image's loader would complain. Where real and
 * effective user differ it would drop LD_PRELOAD, and our other variable would stay. access() asks for the real user
 * without the capabilities that an exec takes away; to open the file would prove less. */
bool ft_library_is_within_reach(void) {
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

/* Reads an environment and finds the room that its copy takes. False: leave it as it is; it may be no environment. */
bool ft_carry_measure(struct ft_carry *carry, char *const environment[]) {
    struct ft_probe of_entries = {0}, of_strings = {0};
    *carry = (struct ft_carry){.environment = environment};
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
        carry->preload = value != NULL ? value : carry->preload; /* the last one counts */
        carry->entries++;
    }
    if (carry->preload != NULL && preloads_sanitizer(carry->preload)) {
        return false;
    }
    size_t preload_bytes = carry->preload != NULL ? strlen(carry->preload) : 0;
    carry->bytes =
        (carry->entries + 3) * sizeof(char *) + sizeof "LD_PRELOAD=:" + strlen(ft_agent.path) + preload_bytes;
    return true;
}

/* Where the stack's bounds are not known, as on one that was handed to clone, it may be small: little is taken. */
bool ft_carry_fits_stack(const struct ft_carry *carry) {
    uintptr_t here = (uintptr_t)__builtin_frame_address(0);
    return carry->bytes <= STACK_SMALL ||
           (ft_on_native_stack(here) && here - ft_thread.native_low > carry->bytes + STACK_KEPT);
}

/* Before the user's own entries. An empty value keeps a colon, so that taking our entry out again restores it. */
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

/* Writes the environment with our variables into `carry->bytes` bytes. */
char **ft_carry_compose(const struct ft_carry *carry, void *block) {
    char **out = block;
    char *preload = compose_preload((char *)(out + carry->entries + 3), carry->preload);
    bool placed = false;
    for (size_t i = 0; i < carry->entries; i++) {
        char *entry = carry->environment[i];
        if (value_of(entry, FT_AGENT_ENV) != NULL) {
            continue;
        }
        if (value_of(entry, "LD_PRELOAD") == carry->preload && carry->preload != NULL) {
            entry = preload;
            placed = true;
        }
        *out++ = entry;
    }
    if (!placed) {
        *out++ = preload;
    }
    *out++ = ft_agent.environment;
    *out = NULL;
    return block;
}
