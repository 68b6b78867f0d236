/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * Where the plan's modules are loaded. A module is known by its build-id, wherever its file lies; one without, by its file.
 */
#include "plan.h"

#include <elf.h>
#include <link.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SEGMENTS_MAX 512u

struct segment {
    uintptr_t from;
    uintptr_t to;
    uint64_t offset;
    uint32_t module;
};

/* Only grows: a reader that sees a count sees the segments below it. What is unloaded stays, and another library that is
 * loaded at its place later has an entry of its own, which is looked at first. */
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

/* The profiler's agent, which forwards the program's calls to us while a run under a plan is profiled. */
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

static int visit(struct dl_phdr_info *info, size_t size, void *data) {
    (void)size;
    unsigned long long *loads = data;
    if (info->dlpi_adds == seen_loads) {
        return 1;
    }
    *loads = info->dlpi_adds;
    find_agent(info);
    for (uint32_t i = 0; i < ft_plan.header->modules && i < FT_ENTRIES_MAX; i++) {
        bool is_new = !is_loaded[i] || bases[i] != info->dlpi_addr;
        if (is_new && is_module(info, &ft_plan.modules[i])) {
            add(info, i);
        }
    }
    return 0;
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
    /* The list has a lock, which a forked child may find held for ever. */
    if (are_all_loaded() || (attached_in != 0 && attached_in != getpid())) {
        return;
    }
    attached_in = getpid();
    /* Whoever comes while another looks goes by what is known already. */
    if (__atomic_exchange_n(&refreshing, 1, __ATOMIC_ACQUIRE) == 0) {
        unsigned long long loads = seen_loads;
        dl_iterate_phdr(visit, &loads);
        seen_loads = loads;
        __atomic_store_n(&refreshing, 0, __ATOMIC_RELEASE);
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
