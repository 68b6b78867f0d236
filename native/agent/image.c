/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * Can a program image take the agent? It must be dynamically linked for our machine and loaded by glibc's loader, without
 * privileges and without a sanitizer's runtime as a library. A static program would pass our variables on to its children.
 * Other loaders print an error about a preload that they cannot use, or refuse to start.
 *
 * This code runs in forked children and in signal handlers, on stacks of any size: it makes only async-signal-safe calls,
 * allocates nothing, and needs less than 1 KiB of stack.
 */
#include "agent.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#if defined(__x86_64__)
#define OWN_MACHINE EM_X86_64
#elif defined(__aarch64__)
#define OWN_MACHINE EM_AARCH64
#else
#define OWN_MACHINE EM_NONE
#endif

#define SCRIPT_DEPTH_MAX 5 /* the kernel's limit on scripts that run scripts */
#define HEAD_BYTES 256     /* how much the kernel reads of a #! line */
#define LOADER_BYTES 63    /* from the end of the loader's path */
#define CANDIDATE_BYTES \
    512 /* longest path that the search of PATH forms; the search ends without a result at a longer one */
#define DYNAMIC_MAX 4096 /* entries read from a dynamic section; typical ones have some 30 */

static bool read_segment(int fd, const Elf64_Ehdr *header, unsigned index, Elf64_Phdr *segment) {
    off_t at = (off_t)(header->e_phoff + (uint64_t)index * header->e_phentsize);
    return pread(fd, segment, sizeof *segment, at) == (ssize_t)sizeof *segment;
}

/* Reads only the end of the loader's path: a buffer of PATH_MAX would not fit on every stack. */
static bool names_glibc_loader(int fd, const Elf64_Phdr *segment) {
    char end[LOADER_BYTES + 1];
    uint64_t bytes = segment->p_filesz < LOADER_BYTES ? segment->p_filesz : LOADER_BYTES;
    ssize_t got = pread(fd, end, bytes, (off_t)(segment->p_offset + segment->p_filesz - bytes));
    if (got <= 0) {
        return false;
    }
    end[got] = '\0';
    const char *slash = strrchr(end, '/');
    return strncmp(slash != NULL ? slash + 1 : end, "ld-linux", sizeof "ld-linux" - 1) == 0;
}

static bool interpreter_is_glibc(int fd, const Elf64_Ehdr *header) {
    for (unsigned i = 0; i < header->e_phnum; i++) {
        Elf64_Phdr segment;
        if (!read_segment(fd, header, i, &segment)) {
            return false;
        }
        if (segment.p_type == PT_INTERP) {
            return names_glibc_loader(fd, &segment);
        }
    }
    return false;
}

/* The file offset of a virtual address, or -1. */
static off_t file_offset(int fd, const Elf64_Ehdr *header, uint64_t address) {
    for (unsigned i = 0; i < header->e_phnum; i++) {
        Elf64_Phdr segment;
        if (read_segment(fd, header, i, &segment) && segment.p_type == PT_LOAD && address >= segment.p_vaddr &&
            address - segment.p_vaddr < segment.p_filesz) {
            return (off_t)(segment.p_offset + (address - segment.p_vaddr));
        }
    }
    return -1;
}

bool ft_is_sanitizer(const char *library) {
    static const char prefixes[][14] = {"libasan.so", "libtsan.so", "liblsan.so", "libhwasan.so", "libclang_rt."};
    for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++) {
        if (strncmp(library, prefixes[i], strlen(prefixes[i])) == 0) {
            return true;
        }
    }
    return false;
}

static bool is_sanitizer_at(int fd, off_t name_at) {
    char name[16] = "";
    return pread(fd, name, sizeof name - 1, name_at) > 0 && ft_is_sanitizer(name);
}

/* A sanitizer's runtime library must be the first in the process: it ends the program if another one is. */
static FT_NOINLINE bool needs_sanitizer(int fd, const Elf64_Ehdr *header) {
    Elf64_Phdr dynamic = {0};
    for (unsigned i = 0; i < header->e_phnum && dynamic.p_type != PT_DYNAMIC; i++) {
        if (!read_segment(fd, header, i, &dynamic)) {
            return false;
        }
    }
    if (dynamic.p_type != PT_DYNAMIC) {
        return false;
    }
    off_t names = -1;
    for (int pass = 0; pass < 2; pass++) { /* DT_STRTAB may come after the DT_NEEDED entries */
        Elf64_Dyn entry;
        for (uint64_t at = 0; at + sizeof entry <= dynamic.p_filesz && at < DYNAMIC_MAX * sizeof entry;
             at += sizeof entry) {
            if (pread(fd, &entry, sizeof entry, (off_t)(dynamic.p_offset + at)) != (ssize_t)sizeof entry ||
                entry.d_tag == DT_NULL) {
                break;
            }
            if (pass == 0 && entry.d_tag == DT_STRTAB) {
                names = file_offset(fd, header, entry.d_un.d_ptr);
            }
            if (pass == 1 && names >= 0 && entry.d_tag == DT_NEEDED &&
                is_sanitizer_at(fd, names + (off_t)entry.d_un.d_val)) {
                return true;
            }
        }
    }
    return false;
}

static bool elf_takes_agent(int fd, const char *head, ssize_t head_bytes) {
    Elf64_Ehdr header;
    if (head_bytes < (ssize_t)sizeof header) {
        return false;
    }
    memcpy(&header, head, sizeof header);
    struct stat status;
    return header.e_ident[EI_CLASS] == ELFCLASS64 && header.e_machine == OWN_MACHINE &&
           (header.e_type == ET_EXEC || header.e_type == ET_DYN) && header.e_phentsize >= sizeof(Elf64_Phdr) &&
           fstat(fd, &status) == 0 && (status.st_mode & (S_ISUID | S_ISGID)) == 0 &&
           fgetxattr(fd, "security.capability", NULL, 0) <= 0 && interpreter_is_glibc(fd, &header) &&
           !needs_sanitizer(fd, &header);
}

/* The interpreter of a "#!" line, in place, or NULL. */
static char *script_interpreter(char *head, ssize_t head_bytes) {
    if (head_bytes < 3 || head[0] != '#' || head[1] != '!') {
        return NULL;
    }
    char *name = head + 2;
    name += strspn(name, " \t");
    name[strcspn(name, " \t\n")] = '\0';
    return name;
}

/* Opens regular files only. Opening a device or a named pipe can have effects, and neither can be executed. */
static int open_file(int directory, const char *path, int no_follow) {
    struct stat status;
    if (fstatat(directory, path, &status, no_follow != 0 ? AT_SYMLINK_NOFOLLOW : 0) != 0 || !S_ISREG(status.st_mode)) {
        return -1;
    }
    return openat(directory, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | no_follow);
}

/* Closes `fd`. An executable file that is neither ELF nor a script fails with ENOEXEC in execve, and is run by
 * /bin/sh in execvp: `shell_runs_text` selects execvp's behaviour. */
static FT_NOINLINE bool open_image_takes_agent(int fd, bool shell_runs_text) {
    char head[HEAD_BYTES + 1];
    for (int depth = 0; fd >= 0 && depth <= SCRIPT_DEPTH_MAX; depth++) {
        ssize_t got = pread(fd, head, HEAD_BYTES, 0);
        head[got > 0 ? got : 0] = '\0';
        if (got >= SELFMAG && memcmp(head, ELFMAG, SELFMAG) == 0) {
            bool takes = elf_takes_agent(fd, head, got);
            close(fd);
            return takes;
        }
        close(fd);
        const char *interpreter = script_interpreter(head, got);
        if (interpreter == NULL) {
            if (!shell_runs_text || got < 0) {
                return false;
            }
            interpreter = "/bin/sh";
        }
        shell_runs_text = false;
        fd = open_file(AT_FDCWD, interpreter, 0);
    }
    if (fd >= 0) {
        close(fd);
    }
    return false;
}

bool ft_image_at_takes_agent(int directory, const char *path, int flags) {
    struct ft_last_readable last = {0};
    if ((flags & AT_EMPTY_PATH) != 0 && (path == NULL || (ft_readable(&last, path, 1) && path[0] == '\0'))) {
        return ft_open_image_takes_agent(directory);
    }
    int no_follow = (flags & AT_SYMLINK_NOFOLLOW) != 0 ? O_NOFOLLOW : 0;
    return open_image_takes_agent(open_file(directory, path, no_follow), false);
}

bool ft_image_takes_agent(const char *path) {
    return ft_image_at_takes_agent(AT_FDCWD, path, 0);
}

bool ft_open_image_takes_agent(int fd) {
    return open_image_takes_agent(fcntl(fd, F_DUPFD_CLOEXEC, 0), false);
}

/* Searches as execvp does: opens the first executable file in PATH. -1 if there is none, or a path is too long to check. Not
 * inlined, so that the buffer is on the stack only during the search. */
static FT_NOINLINE int open_searched(const char *file) {
    const char *path = getenv("PATH");
    if (path == NULL) {
        path = "/bin:/usr/bin";
    }
    size_t file_bytes = strlen(file);
    char candidate[CANDIDATE_BYTES];
    for (const char *directory = path; file_bytes != 0; directory++) {
        size_t bytes = strcspn(directory, ":");
        if (bytes + file_bytes + 2 > sizeof candidate) {
            return -1;
        }
        memcpy(candidate, directory, bytes);
        candidate[bytes] = '/';
        memcpy(candidate + bytes + (bytes != 0), file, file_bytes + 1); /* an empty entry means the current directory */
        if (access(candidate, X_OK) == 0) {
            int fd = open_file(AT_FDCWD, candidate, 0);
            if (fd >= 0) {
                return fd;
            }
        }
        directory += bytes;
        if (*directory == '\0') {
            return -1;
        }
    }
    return -1;
}

bool ft_searched_image_takes_agent(const char *file) {
    return open_image_takes_agent(strchr(file, '/') != NULL ? open_file(AT_FDCWD, file, 0) : open_searched(file), true);
}
