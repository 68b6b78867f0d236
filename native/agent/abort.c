/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * Notes which rank of an MPI job calls MPI_Abort: some launchers then kill all ranks at once, and nothing else tells the one that
 * asked for it from the others.
 *
 * A symbol of that name in the agent would do, but programs may look for it to find out whether they run under MPI. So the call
 * is redirected where it is made: in the table of addresses (GOT) of each library that imports it. Only in ranks
 * (FT_FLAG_RANK), once, before main. Calls from libraries that are loaded later, or from a static MPI, are not seen.
 */
#include "agent.h"

#include <elf.h>
#include <link.h>
#include <string.h>
#include <sys/mman.h>

#if defined(__x86_64__)
#define IS_IMPORT(type) ((type) == R_X86_64_JUMP_SLOT || (type) == R_X86_64_GLOB_DAT)
#elif defined(__aarch64__)
#define IS_IMPORT(type) ((type) == R_AARCH64_JUMP_SLOT || (type) == R_AARCH64_GLOB_DAT)
#else
#define IS_IMPORT(type) 0
#endif

/* MPI_Comm is an int in one MPI and a pointer in another: either arrives in this register. */
typedef int abort_function(uintptr_t communicator, int status);

/* What the first redirected entry had: the function, or the loader's stub, which finds it. Either may be called from anywhere. */
static abort_function *real_abort;

static int hooked_abort(uintptr_t communicator, int status) {
    struct ft_ring_header *ring = ft_agent.ring;
    if (ring != NULL) {
        ring->abort_status = status;
        __atomic_store_n(&ring->has_aborted, 1, __ATOMIC_RELEASE);
    }
    return real_abort(communicator, status);
}

struct tables {
    const char *names;
    const ElfW(Sym) * symbols;
    const ElfW(Rela) * relocations[2]; /* of functions that are bound when they are called, and of all others */
    size_t bytes[2];
};

/* glibc has replaced most addresses in a dynamic section by absolute ones, but not in the kernel's vdso. */
static const void *absolute(const struct dl_phdr_info *library, uintptr_t address) {
    return (const void *)(address >= library->dlpi_addr ? address : library->dlpi_addr + address);
}

static bool find_tables(const struct dl_phdr_info *library, struct tables *tables) {
    const ElfW(Dyn) *dynamic = NULL;
    for (unsigned i = 0; i < library->dlpi_phnum; i++) {
        if (library->dlpi_phdr[i].p_type == PT_DYNAMIC) {
            dynamic = (const ElfW(Dyn) *)(library->dlpi_addr + library->dlpi_phdr[i].p_vaddr);
        }
    }
    for (; dynamic != NULL && dynamic->d_tag != DT_NULL; dynamic++) {
        const void *address = absolute(library, dynamic->d_un.d_ptr);
        switch (dynamic->d_tag) {
        case DT_STRTAB:
            tables->names = address;
            break;
        case DT_SYMTAB:
            tables->symbols = address;
            break;
        case DT_JMPREL:
            tables->relocations[0] = address;
            break;
        case DT_RELA:
            tables->relocations[1] = address;
            break;
        case DT_PLTRELSZ:
            tables->bytes[0] = dynamic->d_un.d_val;
            break;
        case DT_RELASZ:
            tables->bytes[1] = dynamic->d_un.d_val;
            break;
        default:
            break;
        }
    }
    return tables->names != NULL && tables->symbols != NULL;
}

static int protection_of(const struct dl_phdr_info *library, uintptr_t address) {
    int protection = PROT_READ | PROT_WRITE;
    for (unsigned i = 0; i < library->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &library->dlpi_phdr[i];
        uintptr_t from = library->dlpi_addr + part->p_vaddr;
        if (part->p_type == PT_GNU_RELRO && address >= from && address < from + part->p_memsz) {
            protection = PROT_READ;
        }
    }
    return protection;
}

static void redirect(const struct dl_phdr_info *library, uintptr_t *entry) {
    uintptr_t page = (uintptr_t)entry & ~(uintptr_t)(ft_agent.page_bytes - 1);
    int protection = protection_of(library, (uintptr_t)entry);
    if (*entry == 0 ||
        (protection == PROT_READ && mprotect((void *)page, ft_agent.page_bytes, PROT_READ | PROT_WRITE) != 0)) {
        return;
    }
    if (real_abort == NULL) {
        real_abort = (abort_function *)*entry;
    }
    __atomic_store_n(entry, (uintptr_t)hooked_abort, __ATOMIC_RELEASE);
    if (protection == PROT_READ) {
        mprotect((void *)page, ft_agent.page_bytes, PROT_READ);
    }
}

static int visit(struct dl_phdr_info *library, size_t size, void *unused) {
    (void)size, (void)unused;
    struct tables tables = {0};
    if (!find_tables(library, &tables)) {
        return 0;
    }
    for (int kind = 0; kind < 2; kind++) {
        for (size_t i = 0; tables.relocations[kind] != NULL && i < tables.bytes[kind] / sizeof(ElfW(Rela)); i++) {
            const ElfW(Rela) *relocation = &tables.relocations[kind][i];
            uint32_t symbol = ELF64_R_SYM(relocation->r_info);
            if (IS_IMPORT(ELF64_R_TYPE(relocation->r_info)) && symbol != 0 &&
                strcmp(tables.names + tables.symbols[symbol].st_name, "MPI_Abort") == 0) {
                redirect(library, (uintptr_t *)(library->dlpi_addr + relocation->r_offset));
            }
        }
    }
    return 0;
}

void ft_abort_prepare(void) {
    if ((ft_agent.ring->flags & FT_FLAG_RANK) != 0) {
        dl_iterate_phdr(visit, NULL);
    }
}
