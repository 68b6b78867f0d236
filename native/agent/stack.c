/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * Call stacks. Unwinding costs microseconds, so stacks are cached, and a cached stack is used only after it has been
 * checked word by word.
 *
 * A cached stack is found by the caller's return address and stack pointer. It remembers the stack words that its
 * shape rests on, and is the present stack if each still holds its value:
 *   - the return address of every frame, in the word below the canonical frame address (CFA) on x86-64;
 *   - where a frame is found by the frame pointer (rbp), as in functions that use alloca, realign their stack, or
 *     are compiled with frame pointers: the word where the callee saved that rbp, or the caller's rbp itself. Without
 *     it, a frame of variable size could move while stale words of an earlier call keep their places.
 * Proof by induction: a return address and the stack pointer (and rbp, where it matters) of a frame fix
 * where its own return address lies, and that word has been compared.
 *
 * Why the reads cannot fault: the caller's stack pointer and every remembered word must lie on the native stack of
 * the running thread, [native_low, native_top). That is one mapping (of the thread, or the main thread's growing
 * one), and what lies above the stack pointer in it is mapped for as long as the thread runs. On any other stack
 * (signal, coroutine) the cache is not used.
 *
 * Entries are shared by all threads, each under a sequence lock; a writer that meets another writer gives up.
 */
#include "agent.h"

#include "../preload/unwind.h"

static uint64_t hash_of(const uintptr_t *ips, uint32_t depth) {
    uint64_t hash = depth;
    for (uint32_t i = 0; i < depth; i++) {
        hash = (hash ^ ips[i]) * 0x9e3779b97f4a7c15ull;
        hash ^= hash >> 32;
    }
    return hash == 0 ? 1 : hash; /* 0 means none */
}

/* Writes the frames of each stack once. An id is entered after its frames are in the ring, so that a full ring leaves it
 * unknown. Two threads may both write them, which is harmless. */
static bool make_known(uint64_t stack_id, const uintptr_t *ips, uint32_t depth) {
    uint64_t *vacant = NULL;
    for (uint32_t probe = 0; probe < 16; probe++) {
        uint64_t *entry = &ft_wiped.known[(stack_id + probe) & (FT_KNOWN_STACKS - 1)];
        uint64_t id = __atomic_load_n(entry, __ATOMIC_RELAXED);
        if (id == stack_id) {
            return true;
        }
        if (id == 0) {
            vacant = entry;
            break;
        }
    }
    if (!ft_write_stack(stack_id, ips, depth)) {
        return false;
    }
    uint64_t zero = 0;
    if (vacant != NULL) {
        __atomic_compare_exchange_n(vacant, &zero, stack_id, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
    }
    return true;
}

#if defined(__x86_64__)

#define LOAD(field) __atomic_load_n(&(field), __ATOMIC_RELAXED)
#define STORE(field, value) __atomic_store_n(&(field), value, __ATOMIC_RELAXED)

static uintptr_t word_at(uintptr_t address) {
    return *(const volatile uintptr_t *)address;
}

static struct ft_cached_stack *cache_entry(struct ft_caller caller) {
    uint64_t key = (caller.ip ^ (caller.stack_pointer << 20)) * 0x9e3779b97f4a7c15ull;
    key ^= caller.stack_pointer >> 4;
    return &ft_wiped.cached[(key >> 32 ^ key) & (FT_CACHED_STACKS - 1)];
}

static uint64_t cached_stack_id(struct ft_caller caller) {
    if (!ft_on_native_stack(caller.stack_pointer)) {
        return 0;
    }
    const struct ft_cached_stack *entry = cache_entry(caller);
    uint32_t sequence = __atomic_load_n(&entry->sequence, __ATOMIC_ACQUIRE);
    uintptr_t frame_pointer = LOAD(entry->frame_pointer);
    if ((sequence & 1) != 0 || LOAD(entry->stack_pointer) != caller.stack_pointer || LOAD(entry->ip) != caller.ip ||
        (frame_pointer != 0 && frame_pointer != caller.frame_pointer)) {
        return 0;
    }
    uint32_t count = LOAD(entry->count);
    for (uint32_t i = 0; i < count; i++) {
        /* Checked at each use: a torn entry, or one of an ended thread, may hold any address. */
        uintptr_t address = LOAD(entry->words[i].address);
        if (address < caller.stack_pointer || address >= ft_thread.native_top ||
            word_at(address) != LOAD(entry->words[i].value)) {
            return 0;
        }
    }
    uint64_t stack_id = LOAD(entry->stack_id);
    __atomic_thread_fence(__ATOMIC_ACQUIRE);
    return LOAD(entry->sequence) == sequence ? stack_id : 0;
}

struct words {
    uint32_t count;
    struct ft_word words[FT_CACHED_WORDS];
};

/* Adds a word of the stack above `lowest` if it holds `value`. */
static bool remember(struct words *words, uintptr_t lowest, uintptr_t address, uintptr_t value) {
    if (address < lowest || address >= ft_thread.native_top || address % 8 != 0 || words->count == FT_CACHED_WORDS ||
        word_at(address) != value) {
        return false;
    }
    words->words[words->count++] = (struct ft_word){address, value};
    return true;
}

/* Where frame `callee` saved the rbp of its caller: where its own rbp points, if that is a frame pointer; else among
 * the six callee-saved registers that the compilers push, just below the return address. */
static bool remember_saved_frame_pointer(struct words *words, const struct ft_unwound *unwound, uint32_t callee) {
    uintptr_t frame_low = unwound->stack_pointers[callee];
    uintptr_t cfa = unwound->stack_pointers[callee + 1];
    uintptr_t value = unwound->frame_pointers[callee + 1];
    if (unwound->frame_pointers[callee] < cfa && remember(words, frame_low, unwound->frame_pointers[callee], value)) {
        return true;
    }
    for (uintptr_t address = cfa - 16; address >= cfa - 56; address -= 8) {
        if (remember(words, frame_low, address, value)) {
            return true;
        }
    }
    return false;
}

/* Collects the words that the shape of the stack rests on. False: unknown, so do not cache this stack. */
static bool collect_words(struct ft_caller caller, const struct ft_unwound *unwound, struct words *words,
                          bool *needs_caller_frame_pointer) {
    uint32_t saved_by = 0; /* the frame whose callee saved the present rbp; 0: no callee did, it is the caller's own */
    bool remembered = true;
    *needs_caller_frame_pointer = false;
    words->count = 0;
    for (uint32_t i = 0; i < unwound->depth; i++) {
        uintptr_t stack_pointer = unwound->stack_pointers[i];
        uintptr_t frame_pointer = unwound->frame_pointers[i];
        if (i > 0) {
            if (!remember(words, caller.stack_pointer, stack_pointer - 8, unwound->ips[i])) {
                return false;
            }
            if (frame_pointer != unwound->frame_pointers[i - 1]) {
                saved_by = i;
                remembered = false;
            }
        }
        if (i + 1 == unwound->depth) {
            break;
        }
        /* CFA = rbp + 16 with a frame pointer. A realigned stack keeps its CFA in the word below the saved rbp. */
        uintptr_t cfa = unwound->stack_pointers[i + 1];
        bool realigned = cfa != frame_pointer + 16 && frame_pointer > stack_pointer && frame_pointer < cfa &&
                         remember(words, stack_pointer, frame_pointer - 8, cfa);
        if (cfa != frame_pointer + 16 && !realigned) {
            continue;
        }
        if (saved_by == 0) {
            *needs_caller_frame_pointer = true;
        } else if (!remembered) {
            remembered = remember_saved_frame_pointer(words, unwound, saved_by - 1);
            if (!remembered) {
                return false;
            }
        }
    }
    return true;
}

/* Not inlined, so that `words` and the unwinder's data are not on the stack at the same time. */
static FT_NOINLINE void cache_stack(struct ft_caller caller, uint64_t stack_id, const struct ft_unwound *unwound) {
    struct words words;
    bool needs_frame_pointer;
    if (unwound->interrupted || !ft_on_native_stack(caller.stack_pointer) ||
        unwound->stack_pointers[0] != caller.stack_pointer ||
        !collect_words(caller, unwound, &words, &needs_frame_pointer) ||
        (needs_frame_pointer && caller.frame_pointer != unwound->frame_pointers[0])) {
        return;
    }
    struct ft_cached_stack *entry = cache_entry(caller);
    uint32_t sequence = LOAD(entry->sequence);
    if ((sequence & 1) != 0 || !__atomic_compare_exchange_n(&entry->sequence, &sequence, sequence + 1, false,
                                                            __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) {
        return;
    }
    __atomic_thread_fence(__ATOMIC_RELEASE);
    STORE(entry->ip, caller.ip);
    STORE(entry->stack_pointer, caller.stack_pointer);
    STORE(entry->frame_pointer, needs_frame_pointer ? caller.frame_pointer : 0);
    STORE(entry->stack_id, stack_id);
    STORE(entry->count, words.count);
    for (uint32_t i = 0; i < words.count; i++) {
        STORE(entry->words[i].address, words.words[i].address);
        STORE(entry->words[i].value, words.words[i].value);
    }
    __atomic_store_n(&entry->sequence, sequence + 2, __ATOMIC_RELEASE);
}

#else /* Only unwinding finds the return address in a frame: unwind every time. */

static uint64_t cached_stack_id(struct ft_caller caller) {
    (void)caller;
    return 0;
}

static void cache_stack(struct ft_caller caller, uint64_t stack_id, const struct ft_unwound *unwound) {
    (void)caller, (void)stack_id, (void)unwound;
}

#endif

static FT_NOINLINE uint64_t unwind(struct ft_caller caller) {
    struct ft_unwound unwound;
    ft_unwind_from(caller.ip, &unwound);
    uint64_t stack_id = hash_of(unwound.ips, unwound.depth);
    if (make_known(stack_id, unwound.ips, unwound.depth)) {
        cache_stack(caller, stack_id, &unwound);
    }
    return stack_id;
}

uint64_t ft_stack_id(struct ft_caller caller) {
    uint64_t stack_id = cached_stack_id(caller);
    if (ft_likely(stack_id != 0)) {
        return stack_id;
    }
    return ft_stack_has_room() ? unwind(caller) : 0;
}

void ft_stack_prepare(void) {
    ft_unwind_prepare();
}
