/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * What the last call of a thread could not do, or assumed. Each thread has a text of its own.
 */
#include "library.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

#define DOUBT_BYTES 512

static _Thread_local char written[DOUBT_BYTES];
static _Thread_local const char *last;

void ftl_doubt(const char *format, ...) {
    int error = errno;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(written, sizeof written, format, arguments);
    va_end(arguments);
    last = written;
    errno = error;
}

void ftl_doubt_text(const char *text) {
    last = text;
}

const char *ft_last_doubt(void) {
    return last;
}

void ft_clear_doubt(void) {
    last = NULL;
}

const char *ftl_advice(int error) {
    switch (error) {
    case EPERM:
    case EACCES:
        return "containers forbid it without CAP_SYS_NICE: start the container with --cap-add SYS_NICE, or a seccomp "
               "profile "
               "that allows mbind, set_mempolicy, get_mempolicy and move_pages";
    case ENOSYS:
        return "this kernel has no NUMA support (CONFIG_NUMA), or a sandbox hides it: run outside of the sandbox";
    case ENOMEM:
        return "the process has too many mappings, or memory is short: raise vm.max_map_count, or use fewer parts";
    case EINVAL:
        return "the kernel does not know the node, or this process may not use it: compare ft_nodes with the partition";
    case EFAULT:
        return "the range, or a part of it, is not mapped: give memory that has been allocated";
    default:
        return "run `firsttouch doctor` to see what this system allows";
    }
}

#define TEXT(number) #number
#define VERSION(major, minor, patch) TEXT(major) "." TEXT(minor) "." TEXT(patch)

const char *ft_version(void) {
    return VERSION(FT_VERSION_MAJOR, FT_VERSION_MINOR, FT_VERSION_PATCH);
}
