/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * Where the plan's modules are loaded. A module is identified by its build-id, or by device and inode if it has none.
 */
#include "plan.h"

#include <elf.h>
#include <link.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define SEGMENTS_MAX 512u

struct segment {
    uintptr_t from;
    uintptr_t to;
    uint64_t offset;
    uint32_t module;
};

/* Only grows, so a reader that sees a count also sees the segments below it. Segments of unloaded libraries stay. A library
 * loaded later at the same addresses has a segment of its own; the search starts with the latest. */
static struct segment segments[SEGMENTS_MAX];
static uint32_t segment_count;
static uintptr_t bases[FT_ENTRIES_MAX];
static bool is_loaded[FT_ENTRIES_MAX];
static unsigned long long seen_loads;
static uint32_t refreshing;
static pid_t attached_in;

static bool has_build_id(const struct dl_phdr_info *info, const struct ft_plan_module *module) {
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *header = &info->dlpi_phdr[i];
        if (header->p_type != PT_NOTE) {
            continue;
        }
        const char *at = (const char *)(info->dlpi_addr + header->p_vaddr);
        const char *end = at + header->p_memsz;
        size_t align = header->p_align == 8 ? 8 : 4;
        while ((size_t)(end - at) >= sizeof(ElfW(Nhdr))) {
            const ElfW(Nhdr) *note = (const void *)at;
            size_t name = (note->n_namesz + align - 1) & ~(align - 1);
            size_t description = (note->n_descsz + align - 1) & ~(align - 1);
            size_t left = (size_t)(end - at) - sizeof *note;
            if (name > left || description > left - name) {
                break;
            }
            const char *text = at + sizeof *note;
            if (note->n_type == NT_GNU_BUILD_ID && note->n_namesz == 4 && memcmp(text, "GNU", 4) == 0) {
                uint32_t bytes = module->build_id_bytes;
                bool is_same = note->n_descsz == bytes || (note->n_descsz > bytes && bytes == sizeof module->build_id);
                return is_same && memcmp(text + name, module->build_id, bytes) == 0;
            }
            at = text + name + description;
        }
    }
    return false;
}

static bool is_module(const struct dl_phdr_info *info, const struct ft_plan_module *module) {
    if (module->build_id_bytes != 0) {
        return has_build_id(info, module);
    }
    struct stat status;
    const char *path = info->dlpi_name == NULL || info->dlpi_name[0] == '\0' ? "/proc/self/exe" : info->dlpi_name;
    return module->inode != 0 && stat(path, &status) == 0 && status.st_ino == module->inode &&
           status.st_dev == module->device;
}

static void add(const struct dl_phdr_info *info, uint32_t module) {
    bases[module] = info->dlpi_addr;
    is_loaded[module] = true;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *header = &info->dlpi_phdr[i];
        uint32_t count = segment_count;
        if (header->p_type != PT_LOAD || (header->p_flags & PF_X) == 0 || count == SEGMENTS_MAX) {
            continue;
        }
        uintptr_t from = info->dlpi_addr + header->p_vaddr;
        segments[count] = (struct segment){from, from + header->p_filesz, header->p_offset, module};
        __atomic_store_n(&segment_count, count + 1, __ATOMIC_RELEASE);
    }
}

/* The code of the profiler's agent, which forwards the program's calls to us when a run under a plan is profiled. */
static uintptr_t agent_from, agent_to;

static void find_agent(const struct dl_phdr_info *info) {
    if (info->dlpi_name == NULL || strstr(info->dlpi_name, "firsttouch_agent") == NULL) {
        return;
    }
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *header = &info->dlpi_phdr[i];
        if (header->p_type == PT_LOAD && (header->p_flags & PF_X) != 0) {
            agent_from = info->dlpi_addr + header->p_vaddr;
            agent_to = agent_from + header->p_memsz;
        }
    }
}

bool ft_is_agent(uintptr_t address) {
    return address >= agent_from && address < agent_to;
}

/* All code that was loaded at the last scan, the plan's modules and others. */
#define KNOWN_MAX 1024u
static struct known {
    uintptr_t from;
    uintptr_t to;
} known[KNOWN_MAX];
static uint32_t known_count;
static uint64_t scanned_ns;

static void collect(const struct dl_phdr_info *info, uint32_t *count) {
    for (int i = 0; i < info->dlpi_phnum && *count < KNOWN_MAX; i++) {
        const ElfW(Phdr) *header = &info->dlpi_phdr[i];
        if (header->p_type == PT_LOAD && (header->p_flags & PF_X) != 0) {
            uintptr_t from = info->dlpi_addr + header->p_vaddr;
            known[(*count)++] = (struct known){from, from + header->p_memsz};
        }
    }
}

static bool is_known(uintptr_t address) {
    static _Thread_local struct known last __attribute__((tls_model("initial-exec")));
    static _Thread_local unsigned long long last_loads __attribute__((tls_model("initial-exec")));
    unsigned long long loads = seen_loads;
    if (last_loads == loads && address >= last.from && address < last.to) {
        return true;
    }
    for (uint32_t i = 0; i < __atomic_load_n(&known_count, __ATOMIC_ACQUIRE); i++) {
        if (address >= known[i].from && address < known[i].to) {
            last = known[i];
            last_loads = loads;
            return true;
        }
    }
    return false;
}

struct scan {
    unsigned long long loads;
    uint32_t count;
};

static int visit(struct dl_phdr_info *info, size_t size, void *data) {
    (void)size;
    struct scan *scan = data;
    if (info->dlpi_adds == seen_loads) {
        return 1;
    }
    scan->loads = info->dlpi_adds;
    collect(info, &scan->count);
    find_agent(info);
    for (uint32_t i = 0; i < ft_plan.header->modules && i < FT_ENTRIES_MAX; i++) {
        bool is_new = !is_loaded[i] || bases[i] != info->dlpi_addr;
        if (is_new && is_module(info, &ft_plan.modules[i])) {
            add(info, i);
        }
    }
    return 0;
}

/* Did the last scan find every module of the plan? */
static bool is_complete;

unsigned long long ft_complete_loads(void) {
    return __atomic_load_n(&is_complete, __ATOMIC_ACQUIRE) ? __atomic_load_n(&seen_loads, __ATOMIC_ACQUIRE) : 0;
}

static bool are_all_loaded(void) {
    for (uint32_t i = 0; i < ft_plan.header->modules && i < FT_ENTRIES_MAX; i++) {
        if (!is_loaded[i]) {
            return false;
        }
    }
    return true;
}

void ft_modules_refresh(void) {
    /* dl_iterate_phdr takes a lock, which in a forked child may be held for ever. */
    if (attached_in != 0 && attached_in != getpid()) {
        return;
    }
    attached_in = getpid();
    /* While another thread scans, use what is known already. */
    if (__atomic_exchange_n(&refreshing, 1, __ATOMIC_ACQUIRE) == 0) {
        struct scan scan = {seen_loads, 0};
        dl_iterate_phdr(visit, &scan);
        if (scan.count != 0) {
            __atomic_store_n(&known_count, scan.count, __ATOMIC_RELEASE);
        }
        __atomic_store_n(&is_complete, are_all_loaded(), __ATOMIC_RELEASE);
        __atomic_store_n(&seen_loads, scan.loads, __ATOMIC_RELEASE);
        __atomic_store_n(&refreshing, 0, __ATOMIC_RELEASE);
    }
}

void ft_modules_refresh_for(uintptr_t caller_ip) {
    if (!is_known(caller_ip)) {
        ft_modules_refresh();
        return;
    }
    /* The caller may be an older library (libstdc++) that was called by new code. */
    if (!is_complete) {
        ft_modules_refresh_periodically();
    }
}

void ft_modules_refresh_periodically(void) {
    struct timespec now;
    if (clock_gettime(CLOCK_MONOTONIC_COARSE, &now) == 0) {
        uint64_t ns = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
        if (__atomic_exchange_n(&scanned_ns, ns, __ATOMIC_RELAXED) != ns) {
            ft_modules_refresh();
        }
    }
}

uint32_t ft_module_of(uintptr_t address, uint64_t *offset) {
    for (uint32_t i = __atomic_load_n(&segment_count, __ATOMIC_ACQUIRE); i-- > 0;) {
        const struct segment *segment = &segments[i];
        if (address >= segment->from && address < segment->to) {
            *offset = address - segment->from + segment->offset;
            return segment->module;
        }
    }
    return UINT32_MAX;
}

uintptr_t ft_module_address(uint32_t module, uint64_t elf_address) {
    return module < FT_ENTRIES_MAX && is_loaded[module] ? bases[module] + elf_address : 0;
}
