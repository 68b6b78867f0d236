/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * The producer side of the ring. Reservation is lock-free and reentrant: a signal handler that records between the
 * reservation and the publication of another record only makes the reader wait at the earlier slot. Nothing here
 * allocates, waits, or changes errno (gettid cannot fail).
 */
#include "agent.h"

#include <errno.h>
#include <linux/futex.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define FAULT_AROUND 65536u /* bytes that the kernel maps at a read fault, unless it was told otherwise */

_Thread_local struct ft_thread ft_thread __attribute__((tls_model("initial-exec")));
struct ft_agent ft_agent;
_Alignas(FT_PAGE_MAX) struct ft_wiped ft_wiped;

uint32_t ft_tid(void) {
    if (ft_unlikely(ft_thread.tid == 0)) {
        ft_thread.tid = (uint32_t)syscall(SYS_gettid);
    }
    return ft_thread.tid;
}

static void count_lost(void) {
    __atomic_fetch_add(&ft_agent.ring->lost, 1, __ATOMIC_RELAXED);
}

/* `tail` is read again only if the ring is full by its last known value: the reader writes it constantly, and each load
 * would fetch its cache line. An old value is safe, because tail only grows. */
static uint64_t known_tail;

/* `head` may have been loaded before `tail`, and be smaller: then the ring is not full. */
static bool is_full(uint64_t head, uint64_t count) {
    if (ft_likely(head + count - __atomic_load_n(&known_tail, __ATOMIC_ACQUIRE) <= ft_agent.capacity)) {
        return false;
    }
    uint64_t tail = __atomic_load_n(&ft_agent.ring->tail, __ATOMIC_ACQUIRE);
    __atomic_store_n(&known_tail, tail, __ATOMIC_RELEASE);
    return head >= tail && head + count - tail > ft_agent.capacity;
}

/* Never waits; without a waiter it does nothing. */
static FT_NOINLINE void wake(void) {
    if (!ft_sandboxed()) {
        int saved_errno = errno;
        __atomic_fetch_add(&ft_agent.ring->wakes, 1, __ATOMIC_RELEASE);
        syscall(SYS_futex, &ft_agent.ring->wakes, FUTEX_WAKE, 1, NULL, NULL, 0);
        errno = saved_errno;
    }
}

/* The reader looks rarely while little happens: it is woken each time that another half of the ring is taken. */
static bool fills_half(uint64_t head, uint64_t count) {
    return ((head ^ (head + count)) & (ft_agent.capacity / 2)) != 0;
}

static void *slot_at(uint64_t number) {
    return ft_agent.slots + (number & (ft_agent.capacity - 1)) * FT_SLOT_BYTES;
}

/* The ring's memory exists already (firsttouch made it), but each of its pages would fault once in this process, and a page fault of
 * ours is recorded as the program's are. Where a page of a file is read first, the kernel maps those around it with it: one fault
 * instead of FAULT_AROUND / 4 KiB. Where it maps only one, nothing changes. */
static void map_window(uint64_t head, uint64_t count) {
    const volatile unsigned char *last = slot_at(head + count - 1);
    if (ft_unlikely(((uintptr_t)last & (FAULT_AROUND - 1)) < count * FT_SLOT_BYTES)) {
        (void)*last;
    }
}

static bool reserve(uint64_t count, uint64_t *first) {
    struct ft_ring_header *ring = ft_agent.ring;
    uint64_t head = __atomic_load_n(&ring->head, __ATOMIC_RELAXED);
    do {
        if (ft_unlikely(is_full(head, count))) {
            ft_thread.unpublished = 0;
            count_lost();
            return false;
        }
        ft_thread.reserved = head;
        ft_thread.unpublished = (uint32_t)count | FT_ATTEMPT;
    } while (!__atomic_compare_exchange_n(&ring->head, &head, head + count, true, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED));
    ft_thread.unpublished = (uint32_t)count;
    *first = head;
    map_window(head, count);
    if (ft_unlikely(fills_half(head, count))) {
        wake();
    }
    return true;
}

static void publish(void *slot, uint64_t number) {
    __atomic_store_n((uint32_t *)slot, (uint32_t)(number + 1), __ATOMIC_RELEASE);
}

static void fill(uint64_t number, const struct ft_record *record, uint64_t stack_id, uint64_t python_id) {
    struct ft_record *slot = slot_at(number);
    slot->type = record->type;
    slot->kind = record->kind;
    slot->depth = 0;
    slot->pid = ft_wiped.pid;
    slot->tid = ft_tid();
    slot->time_ns = record->time_ns;
    slot->address = record->address;
    slot->size = record->size;
    slot->stack_id = stack_id;
    slot->aux = record->aux;
    slot->python_id = python_id;
    publish(slot, number);
    ft_thread.unpublished = 0;
}

static void write_record(const struct ft_record *record, uint64_t stack_id, uint64_t python_id) {
    uint64_t number;
    if (reserve(1, &number)) {
        fill(number, record, stack_id, python_id);
    }
}

/* siglongjmp out of a signal handler can leave reserved slots that nobody would publish, and the reader would wait at them:
 * publish them as FT_REC_NONE. After a jump out of the reservation itself, the slots may be another thread's: the reader is only
 * advised not to wait long for them. */
static FT_NOINLINE void abandon_reservation(void) {
    uint32_t count = ft_thread.unpublished;
    uint64_t number = ft_thread.reserved;
    ft_thread.unpublished = 0;
    if (count > FT_ATTEMPT) {
        struct ft_ring_header *ring = ft_agent.ring;
        uint64_t end = number + (count - FT_ATTEMPT);
        if (__atomic_load_n(&ring->head, __ATOMIC_RELAXED) >= end) {
            for (uint64_t i = number; i < end; i++) {
                __atomic_store_n(&ring->doubtful[i % FT_RING_DOUBTFUL], i + 1, __ATOMIC_RELEASE);
            }
        }
        count_lost();
        return;
    }
    for (uint64_t i = number; i < number + count; i++) {
        struct ft_record *slot = slot_at(i);
        slot->type = FT_REC_NONE;
        publish(slot, i);
    }
    if (count != 0) {
        count_lost();
    }
}

/* The mark is set: was a recorder interrupted by the signal whose handler runs now? Not if this hook runs on the native stack
 * and the marked recorder ran on another stack, or deeper on this one (at a lower address): then its frame is gone. */
static FT_NOINLINE bool interrupted_recording(uintptr_t stack_pointer) {
    uintptr_t mark = ft_thread.recording;
    bool left_behind = ft_on_native_stack(stack_pointer) && (!ft_on_native_stack(mark) || stack_pointer >= mark);
    if (left_behind) {
        abandon_reservation();
    }
    return !left_behind;
}

/* Is this thread free to record? A hook in a signal handler that interrupted a recorder of the same thread is skipped and
 * counted as lost. The mark is the recorder's stack pointer, which exposes a mark left behind by longjmp or by a vfork
 * child that was killed (it shares the parent's thread data). */
static bool begin(uintptr_t stack_pointer) {
    if (ft_unlikely(__atomic_load_n(&ft_agent.ring->closed, __ATOMIC_RELAXED) != 0)) {
        __atomic_store_n(&ft_wiped.min_size, 0, __ATOMIC_RELAXED);
        return false;
    }
    if (ft_unlikely(ft_thread.recording != 0) && interrupted_recording(stack_pointer)) {
        count_lost();
        return false;
    }
    ft_thread.recording = stack_pointer;
    return true;
}

/* Fills and publishes continuation slots. */
static void write_words(uint64_t first, const uint64_t *words, uint32_t count) {
    for (uint64_t at = first; count > 0; at++) {
        uint32_t here = count < FT_IPS_PER_SLOT ? count : FT_IPS_PER_SLOT;
        struct ft_record_frames *slot = slot_at(at);
        slot->pad = 0;
        for (uint32_t i = 0; i < FT_IPS_PER_SLOT; i++) {
            slot->ip[i] = i < here ? words[i] : 0;
        }
        publish(slot, at);
        words += here;
        count -= here;
    }
}

static void end(void) {
    ft_thread.recording = 0;
}

/* Wakes firsttouch, if it asked for an allocation of this size: it has closed its page-fault events, and opens them for the new memory.
 * The first thread that takes the request back makes the call. */
static FT_NOINLINE void wake_reader(uint64_t size) {
    struct ft_ring_header *ring = ft_agent.ring;
    uint64_t least = __atomic_load_n(&ring->wake_size, __ATOMIC_RELAXED);
    if (least != 0 && size >= least &&
        __atomic_compare_exchange_n(&ring->wake_size, &least, 0, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) {
        wake();
    }
}

void ft_record_plain(const struct ft_record *record) {
    if (begin((uintptr_t)__builtin_frame_address(0))) {
        write_record(record, record->stack_id, 0);
        end();
    }
}

void ft_record_with_stack(const struct ft_record *record, struct ft_caller caller) {
    if (begin((uintptr_t)__builtin_frame_address(0))) {
        uint64_t stack_id = ft_stack_id(caller);
        if (stack_id != 0) {
            write_record(record, stack_id, ft_unlikely(ft_agent.runs_python) ? ft_python_id() : 0);
        } else {
            count_lost();
        }
        end();
        if (ft_unlikely(__atomic_load_n(&ft_agent.ring->wake_size, __ATOMIC_RELAXED) != 0) &&
            record->kind != FT_KIND_MMAP_FILE) {
            wake_reader(record->size);
        }
    }
}

void ft_record_sample(const struct ft_record *record, const uint64_t *words, uint32_t count) {
    uintptr_t here = (uintptr_t)__builtin_frame_address(0);
    uint32_t continuations = (count + FT_IPS_PER_SLOT - 1) / FT_IPS_PER_SLOT;
    uint64_t number;
    bool is_free = ft_thread.recording == 0 || !interrupted_recording(here);
    uint64_t head = __atomic_load_n(&ft_agent.ring->head, __ATOMIC_RELAXED);
    if (!is_free || is_full(head, 1 + continuations)) {
        __atomic_fetch_add(&ft_agent.ring->skipped_samples, 1, __ATOMIC_RELAXED);
        return;
    }
    ft_thread.recording = here;
    bool has_room_for_text = !is_full(head, 2 + continuations + FT_PYTHON_TEXT_MAX / FT_TEXT_PER_SLOT);
    uint64_t python_id = ft_unlikely(ft_agent.runs_python) && has_room_for_text
                             ? ft_python_id_of_sample(words[FT_SAMPLE_STACK_POINTER])
                             : 0;
    if (reserve(1 + continuations, &number)) {
        struct ft_record *slot = slot_at(number);
        *slot = (struct ft_record){.type = FT_REC_SAMPLE,
                                   .depth = (uint8_t)count,
                                   .pid = ft_wiped.pid,
                                   .tid = ft_tid(),
                                   .time_ns = record->time_ns,
                                   .address = record->address,
                                   .size = record->size,
                                   .stack_id = record->stack_id,
                                   .aux = record->aux,
                                   .python_id = python_id};
        publish(slot, number);
        write_words(number + 1, words, count);
        ft_thread.unpublished = 0;
    }
    end();
}

bool ft_open_record(uint64_t *number) {
    if (!begin((uintptr_t)__builtin_frame_address(0))) {
        return false;
    }
    if (!reserve(1, number)) {
        end();
        return false;
    }
    return true;
}

void ft_close_record(uint64_t number, const struct ft_record *record) {
    static const struct ft_record none = {.type = FT_REC_NONE};
    /* A reader that did not wait has passed the slot, and another record may own it by now. */
    if (__atomic_load_n(&ft_agent.ring->tail, __ATOMIC_ACQUIRE) <= number) {
        fill(number, record != NULL ? record : &none, 0, 0);
    }
    ft_thread.unpublished = 0;
    end();
}

bool ft_stack_has_room(void) {
    uint64_t head = __atomic_load_n(&ft_agent.ring->head, __ATOMIC_RELAXED);
    return !is_full(head, 2 + (FT_STACK_MAX + FT_IPS_PER_SLOT - 1) / FT_IPS_PER_SLOT);
}

/* Reserves the slots of a definition and writes its first one. */
static bool begin_definition(uint16_t type, uint32_t continuations, const struct ft_record *record, uint64_t *number) {
    if (!reserve(1 + continuations, number)) {
        return false;
    }
    struct ft_record *slot = slot_at(*number);
    slot->type = type;
    slot->kind = record->kind;
    slot->depth = record->depth;
    slot->pid = ft_wiped.pid;
    slot->tid = ft_tid();
    slot->time_ns = ft_now();
    slot->address = 0;
    slot->size = record->size;
    slot->stack_id = record->stack_id;
    slot->aux = 0;
    slot->python_id = record->python_id;
    publish(slot, *number);
    return true;
}

bool ft_write_stack(uint64_t stack_id, const uintptr_t *ips, uint32_t depth) {
    uint32_t continuations = (depth + FT_IPS_PER_SLOT - 1) / FT_IPS_PER_SLOT;
    struct ft_record record = {.depth = (uint8_t)depth, .stack_id = stack_id};
    uint64_t number;
    if (!begin_definition(FT_REC_STACK, continuations, &record, &number)) {
        return false;
    }
    for (uint32_t k = 0; k < continuations; k++) {
        uint64_t at = number + 1 + k;
        struct ft_record_frames *slot = slot_at(at);
        slot->pad = 0;
        for (uint32_t i = 0; i < FT_IPS_PER_SLOT; i++) {
            uint32_t frame = k * FT_IPS_PER_SLOT + i;
            slot->ip[i] = frame < depth ? ips[frame] : 0;
        }
        publish(slot, at);
    }
    ft_thread.unpublished = 0;
    return true;
}

bool ft_write_python(uint64_t python_id, bool of_sample, const char *text, uint32_t bytes) {
    uint32_t continuations = (bytes + FT_TEXT_PER_SLOT - 1) / FT_TEXT_PER_SLOT;
    struct ft_record record = {.kind = of_sample, .size = bytes, .python_id = python_id};
    uint64_t number;
    if (!begin_definition(FT_REC_PYTHON, continuations, &record, &number)) {
        return false;
    }
    for (uint32_t k = 0; k < continuations; k++) {
        uint64_t at = number + 1 + k;
        struct ft_record_text *slot = slot_at(at);
        uint32_t rest = bytes - k * FT_TEXT_PER_SLOT;
        slot->pad = 0;
        memset(slot->text, 0, sizeof slot->text);
        memcpy(slot->text, text + k * FT_TEXT_PER_SLOT, rest < FT_TEXT_PER_SLOT ? rest : FT_TEXT_PER_SLOT);
        publish(slot, at);
    }
    ft_thread.unpublished = 0;
    return true;
}
