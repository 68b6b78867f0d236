/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * The Python call stack of an allocation, in CPython 3.11 to 3.13. No Python code is run: three getters of a few loads each
 * return this thread's state, and the rest is read from memory by the tables below.
 *
 * What keeps a read from faulting:
 *   - All objects read are held by the interpreter: the thread's state, its frames, their code. They live while the thread is
 *     attached, and also while it has released the interpreter, until Python finalizes. During finalization, and where
 *     that state is unknown, each read goes through process_vm_readv.
 *   - A page is read directly only after process_vm_readv has read from it, so that a field that
 *     contradicts the table causes an error, not a fault. An munmap by the program invalidates all pages.
 *   - A sample interrupts the thread anywhere, such as between the release of a frame and the note that it is gone: for samples each
 *     read goes through process_vm_readv.
 *   - Code, text and line tables must be of their types, by address: in a build with other objects (free threading,
 *     reference tracing) the first check fails.
 */
#include "agent.h"

#include <dlfcn.h>
#include <errno.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#define FRAMES_MAX 24u /* pandas and scikit-learn have ten and more of their own before the program's */
#define STEPS_MAX 64u  /* including the interpreter's own frames */
#define FILE_BYTES 200u
#define FUNCTION_BYTES 56u
#define FRAME_BYTES (FILE_BYTES + 1 + FUNCTION_BYTES + 1 + 10 + 1 + 10 + 1 + 5 + 1)
_Static_assert(FRAMES_MAX *FRAME_BYTES <= FT_PYTHON_TEXT_MAX, "the text of all frames");

#define FRAME_OWNED_BY_INTERPRETER 3 /* FRAME_OWNED_BY_CSTACK, since 3.12 */

/* Offsets in bytes. The three versions have in common: objects begin with {reference count, type}; bytes and text have
 * their length at 16; the bytes of a line table start at 32. */
struct layout {
    uint8_t thread_frame; /* of PyThreadState: cframe, or current_frame */
    uint8_t cframe_frame; /* of _PyCFrame: current_frame; NO_CFRAME */
    uint8_t thread_id;    /* of PyThreadState: pthread_self() */
    uint8_t frame_code;   /* of _PyInterpreterFrame */
    uint8_t frame_previous;
    uint8_t frame_instruction;
    uint8_t frame_owner;
    uint8_t code_first_line; /* of PyCodeObject */
    uint8_t code_version;    /* a number of its own, or NO_VERSION */
    uint8_t code_instructions;
    uint8_t ascii_bytes;   /* size of PyASCIIObject */
    uint8_t compact_bytes; /* size of PyCompactUnicodeObject */
    bool
        thread_current; /* the current state is this thread's, or NULL; else it is that of whichever thread runs Python */
};
#define NO_CFRAME 0xff
#define NO_VERSION 0xff
#define CODE_FILE 112u
#define CODE_NAME 120u
#define CODE_QUALIFIED_NAME 128u
#define CODE_LINES 136u
#define OBJECT_TYPE 8u
#define OBJECT_LENGTH 16u
#define TEXT_STATE 32u
#define BYTES_DATA 32u
#define FRAME_READ 72u
#define CODE_READ 144u

static const struct layout layouts[] = {
    /* 3.11 */ {56, 8, 152, 32, 48, 56, 69, 72, NO_VERSION, 184, 48, 72, false},
    /* 3.12 */ {56, 0, 136, 0, 8, 56, 70, 68, 92, 192, 40, 56, true},
    /* 3.13 */ {72, NO_CFRAME, 152, 0, 8, 56, 70, 68, 92, 200, 40, 56, true},
};

/* The stack that a thread must have left where its Python stack is read for a sample: three times what reading and writing it takes. */
#define STACK_LEFT 32768u
/* Between the interrupted stack pointer and the handler's: the red zone, the registers with those of the vector units, the sample. */
#define SIGNAL_FRAME_MAX 32768u
/* Of a sample's stack: its innermost line in the program's own code is what counts. */
#define SAMPLED_FRAMES 16u
/* A known stack costs up to 25 us, a new one some 100 us (1.4 us a read in a virtual machine). Together they may take 1 / PART_OF_TIME of the time since
 * the thread's first sample, plus 50 ms: the initialisation of a program is short, and all of its stacks are new. */
#define PART_OF_TIME 100u
#define FIRST_READS_NS (50000000ull * PART_OF_TIME)

static struct {
    const struct layout *layout;
    void *(*current_thread)(void);
    void *(*this_thread)(void);
    int (*is_finalizing)(void);
    uintptr_t code_type;
    uintptr_t text_type;
    uintptr_t bytes_type;
    bool cannot_read; /* process_vm_readv is missing or forbidden */
    uint64_t generation;
} python;

/* Python is in the program or in a library it was linked with. One that is loaded later is not found. */
void ft_python_prepare(void) {
#if defined(__LP64__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    const unsigned long *version = dlsym(RTLD_DEFAULT, "Py_Version");
    if (version != NULL) {
        unsigned long minor = *version >> 16, level = *version >> 4 & 0xf;
        python.current_thread = (void *(*)(void))dlsym(RTLD_DEFAULT, minor >= 0x030d ? "PyThreadState_GetUnchecked"
                                                                                     : "_PyThreadState_UncheckedGet");
        python.this_thread = (void *(*)(void))dlsym(RTLD_DEFAULT, "PyGILState_GetThisThreadState");
        python.is_finalizing =
            (int (*)(void))dlsym(RTLD_DEFAULT, minor >= 0x030d ? "Py_IsFinalizing" : "_Py_IsFinalizing");
        python.code_type = (uintptr_t)dlsym(RTLD_DEFAULT, "PyCode_Type");
        python.text_type = (uintptr_t)dlsym(RTLD_DEFAULT, "PyUnicode_Type");
        python.bytes_type = (uintptr_t)dlsym(RTLD_DEFAULT, "PyBytes_Type");
        if (minor >= 0x030b && minor <= 0x030d && level == 0xf && python.current_thread != NULL &&
            python.this_thread != NULL && python.code_type != 0 && python.text_type != 0 && python.bytes_type != 0) {
            python.layout = &layouts[minor - 0x030b];
            ft_agent.runs_python = true;
        }
    }
    /* A search that succeeds clears the error of one that failed, which the program could ask for (dlerror). */
    (void)dlsym(RTLD_NEXT, "malloc");
#endif
}

void ft_python_forget_pages(void) {
    __atomic_fetch_add(&python.generation, 1, __ATOMIC_RELEASE);
}

static bool read_guarded(void *to, uintptr_t from, size_t bytes) {
    if (__atomic_load_n(&python.cannot_read, __ATOMIC_RELAXED)) {
        return false;
    }
    int saved_errno = errno;
    struct iovec here = {to, bytes}, there = {(void *)from, bytes};
    long done = syscall(SYS_process_vm_readv, getpid(), &here, 1ul, &there, 1ul, 0ul);
    if (done < 0 && errno != EFAULT && errno != ENOMEM) {
        __atomic_store_n(&python.cannot_read, true, __ATOMIC_RELAXED);
    }
    errno = saved_errno;
    return done == (long)bytes;
}

/* A page number and the count of munmap calls when the page was read. User addresses have up to 57 bits. */
static uint64_t page_tag(uintptr_t page, uint64_t generation) {
    return (uint64_t)page | generation << 45;
}

static bool page_was_read(uintptr_t page, uint64_t generation) {
    return __atomic_load_n(&ft_wiped.python_pages[page % FT_PYTHON_PAGES], __ATOMIC_RELAXED) ==
           page_tag(page, generation);
}

struct reads {
    bool alive; /* the objects are certainly live: no read can fault unless the layout differs from the table */
};

/* `bytes` is at most a page. */
static bool fetch(struct reads reads, void *to, uintptr_t from, size_t bytes) {
    if (from < 4096) {
        return false;
    }
    uintptr_t first = from >> 12, last = (from + bytes - 1) >> 12;
    uint64_t generation = __atomic_load_n(&python.generation, __ATOMIC_ACQUIRE);
    if (reads.alive && page_was_read(first, generation) && (first == last || page_was_read(last, generation))) {
        memcpy(to, (const void *)from, bytes);
        return true;
    }
    if (!read_guarded(to, from, bytes)) {
        return false;
    }
    __atomic_store_n(&ft_wiped.python_pages[first % FT_PYTHON_PAGES], page_tag(first, generation), __ATOMIC_RELAXED);
    __atomic_store_n(&ft_wiped.python_pages[last % FT_PYTHON_PAGES], page_tag(last, generation), __ATOMIC_RELAXED);
    return true;
}

static uintptr_t word_in(const unsigned char *block, size_t offset) {
    uintptr_t word;
    memcpy(&word, block + offset, sizeof word);
    return word;
}

struct frame {
    uintptr_t code;
    int64_t unit; /* the code unit that runs; may be before the first */
    uint32_t first_line;
    uint64_t version;
    uintptr_t file;
    uintptr_t function;
    uintptr_t lines;
};

/* The innermost frame of the thread with this state; 0 if it runs no Python. */
static uintptr_t frame_of(struct reads reads, const void *own) {
    const struct layout *layout = python.layout;
    unsigned char state[168];
    uintptr_t frame = 0;
    if (!fetch(reads, state, (uintptr_t)own, sizeof state) || word_in(state, layout->thread_id) != pthread_self()) {
        return 0;
    }
    frame = word_in(state, layout->thread_frame);
    if (layout->cframe_frame != NO_CFRAME && frame != 0) {
        uintptr_t place = frame + layout->cframe_frame;
        return fetch(reads, &frame, place, sizeof frame) ? frame : 0;
    }
    return frame;
}

/* The innermost frame of this thread; 0 if it does not run Python. */
static uintptr_t innermost_frame(struct reads *reads) {
    const struct layout *layout = python.layout;
    void *own = python.this_thread();
    if (own == NULL) {
        return 0;
    }
    void *current = python.current_thread();
    bool is_attached = layout->thread_current ? current != NULL : current == own;
    if (layout->thread_current && is_attached) {
        own = current; /* in a subinterpreter: not the thread's first state */
    }
    reads->alive = is_attached || (python.is_finalizing != NULL && python.is_finalizing() == 0);
    return frame_of(*reads, own);
}

static uint64_t mixed(uint64_t hash, uint64_t word) {
    hash = (hash ^ word) * 0x9e3779b97f4a7c15ull;
    return hash ^ hash >> 32;
}

/* Code without a version number is distinguished from earlier code at the same address by its line table. */
static uint64_t beginning_of_lines(struct reads reads, uintptr_t lines) {
    uintptr_t words[4] = {0}, bytes = 0;
    if (!fetch(reads, &bytes, lines + OBJECT_LENGTH, sizeof bytes) || bytes == 0 ||
        !fetch(reads, words, lines + BYTES_DATA, bytes < sizeof words ? bytes : sizeof words)) {
        return 0;
    }
    return mixed(mixed(mixed(mixed(bytes, words[0]), words[1]), words[2]), words[3]);
}

/* False if it is not a frame of the program's code. Always sets `previous`. */
static bool read_frame(struct reads reads, uintptr_t at, struct frame *frame, uintptr_t *previous) {
    const struct layout *layout = python.layout;
    unsigned char raw[FRAME_READ], code[CODE_READ];
    *previous = 0;
    if (at % 8 != 0 || !fetch(reads, raw, at, sizeof raw)) {
        return false;
    }
    *previous = word_in(raw, layout->frame_previous);
    frame->code = word_in(raw, layout->frame_code);
    uintptr_t instruction = word_in(raw, layout->frame_instruction);
    if ((layout->thread_current && raw[layout->frame_owner] == FRAME_OWNED_BY_INTERPRETER) || frame->code % 8 != 0 ||
        !fetch(reads, code, frame->code, sizeof code) || word_in(code, OBJECT_TYPE) != python.code_type) {
        return false;
    }
    frame->unit = ((int64_t)instruction - (int64_t)(frame->code + layout->code_instructions)) >> 1;
    memcpy(&frame->first_line, code + layout->code_first_line, sizeof frame->first_line);
    frame->file = word_in(code, CODE_FILE);
    frame->function = word_in(code, CODE_QUALIFIED_NAME);
    if (frame->function == 0) {
        frame->function = word_in(code, CODE_NAME);
    }
    frame->lines = word_in(code, CODE_LINES);
    frame->version = layout->code_version != NO_VERSION ? word_in(code, layout->code_version) & UINT32_MAX
                                                        : beginning_of_lines(reads, frame->lines);
    return true;
}

/* New code may lie where released code was, so the hash includes the fields that identify the code. */
static uint64_t hash_of(const struct frame *frames, uint32_t count) {
    uint64_t hash = count;
    for (uint32_t i = 0; i < count; i++) {
        const struct frame *frame = &frames[i];
        hash = mixed(hash, frame->code);
        hash = mixed(hash, (uint64_t)frame->unit << 32 ^ frame->first_line);
        hash = mixed(mixed(hash, frame->lines), frame->version);
        hash = mixed(hash, frame->file ^ frame->function << 1);
    }
    return hash == 0 ? 1 : hash;
}

struct text {
    uint32_t bytes;
    char data[FT_PYTHON_TEXT_MAX];
};

static void append(struct text *text, char byte) {
    if (text->bytes < sizeof text->data) {
        text->data[text->bytes++] = byte;
    }
}

static uint32_t utf8(uint32_t character, char out[4]) {
    if (character < 0x20 || character == 0x7f || (character >= 0xd800 && character < 0xe000) || character > 0x10ffff) {
        character = '?';
    }
    if (character < 0x80) {
        out[0] = (char)character;
        return 1;
    }
    uint32_t more = character < 0x800 ? 1 : character < 0x10000 ? 2 : 3;
    static const unsigned char leads[] = {0, 0xc0, 0xe0, 0xf0};
    out[0] = (char)(leads[more] | character >> 6 * more);
    for (uint32_t i = 1; i <= more; i++) {
        out[i] = (char)(0x80 | (character >> 6 * (more - i) & 0x3f));
    }
    return more + 1;
}

/* Appends the end of a str object as UTF-8, at most `limit` bytes, and a NUL. */
static void append_text(struct text *text, uintptr_t object, uint32_t limit) {
    struct reads guarded = {false};
    unsigned char head[40], units[4 * FILE_BYTES];
    char encoded[FILE_BYTES];
    uint32_t state, begin = limit;
    if (fetch(guarded, head, object, sizeof head) && word_in(head, OBJECT_TYPE) == python.text_type) {
        memcpy(&state, head + TEXT_STATE, sizeof state);
        uint32_t unit = state >> 2 & 7;
        bool is_compact = (state >> 5 & 1) != 0, is_ascii = (state >> 6 & 1) != 0;
        uintptr_t length = word_in(head, OBJECT_LENGTH);
        uintptr_t count = length < limit ? length : limit;
        uintptr_t data = object + (is_ascii ? python.layout->ascii_bytes : python.layout->compact_bytes);
        if (is_compact && (unit == 1 || unit == 2 || unit == 4) && length < 1u << 20 && count > 0 &&
            fetch(guarded, units, data + (length - count) * unit, count * unit)) {
            while (count-- > 0) {
                uint32_t character = 0;
                memcpy(&character, units + count * unit, unit);
                char one[4];
                uint32_t bytes = utf8(character, one);
                if (bytes > begin) {
                    break;
                }
                begin -= bytes;
                memcpy(encoded + begin, one, bytes);
            }
        }
    }
    while (begin < limit) {
        append(text, encoded[begin++]);
    }
    append(text, '\0');
}

static uint32_t line_of(const struct frame *frame, uint32_t *column) {
    struct reads guarded = {false};
    unsigned char head[24], piece[512];
    *column = 0;
    if (frame->unit < 0 || frame->unit > UINT32_MAX || !fetch(guarded, head, frame->lines, sizeof head) ||
        word_in(head, OBJECT_TYPE) != python.bytes_type) {
        return frame->first_line;
    }
    uintptr_t bytes = word_in(head, OBJECT_LENGTH), at = 0;
    struct ft_python_lines lines = {.wanted = (uint64_t)frame->unit, .line = frame->first_line};
    while (!lines.done && at < bytes && bytes <= 1u << 20) {
        size_t part = bytes - at < sizeof piece ? bytes - at : sizeof piece;
        if (!fetch(guarded, piece, frame->lines + BYTES_DATA + at, part)) {
            break;
        }
        size_t used = ft_python_lines_read(&lines, piece, part, at + part == bytes);
        if (used == 0) {
            break;
        }
        at += used;
    }
    *column = lines.column;
    return lines.found ? (uint32_t)lines.line : frame->first_line;
}

static void append_number(struct text *text, uint32_t number) {
    char digits[10];
    uint32_t count = 0;
    do {
        digits[count++] = (char)('0' + number % 10);
        number /= 10;
    } while (number != 0);
    while (count > 0) {
        append(text, digits[--count]);
    }
}

/* `line@instruction:column`: several calls on one line are distinguished by their instructions, and the column is where the
 * expression begins. The column is left out if it is not known. */
static void append_place(struct text *text, const struct frame *frame) {
    uint32_t column;
    append_number(text, line_of(frame, &column));
    if (frame->unit >= 0 && frame->unit <= UINT32_MAX) {
        append(text, '@');
        append_number(text, (uint32_t)frame->unit);
        if (column != 0) {
            append(text, ':');
            append_number(text, column);
        }
    }
    append(text, '\0');
}

/* Not inlined, so that the text is on the stack only while it is written. */
static FT_NOINLINE bool define(uint64_t id, const struct frame *frames, uint32_t count, bool of_sample) {
    struct text text;
    text.bytes = 0;
    for (uint32_t i = 0; i < count; i++) {
        append_text(&text, frames[i].file, FILE_BYTES);
        append_text(&text, frames[i].function, FUNCTION_BYTES);
        append_place(&text, &frames[i]);
    }
    return ft_write_python(id, of_sample, text.data, text.bytes);
}

/* As in stack.c: an id is entered after its text is in the ring. */
static bool make_known(uint64_t id, const struct frame *frames, uint32_t count) {
    uint64_t *entry = NULL;
    for (uint32_t probe = 0; probe < 8; probe++) {
        entry = &ft_wiped.python_known[(id + probe) % FT_KNOWN_PYTHON];
        uint64_t known = __atomic_load_n(entry, __ATOMIC_RELAXED);
        if (known == id) {
            return true;
        }
        if (known == 0) {
            break;
        }
    }
    if (!define(id, frames, count, false)) {
        return false;
    }
    __atomic_store_n(entry, id, __ATOMIC_RELAXED);
    return true;
}

/* The frames from `at` on. Returns how many. */
static uint32_t read_frames(struct reads reads, uintptr_t at, struct frame *frames, uint32_t most) {
    uint32_t count = 0;
    uintptr_t previous;
    for (uint32_t step = 0; step < STEPS_MAX && count < most && at != 0; step++, at = previous) {
        count += read_frame(reads, at, &frames[count], &previous);
    }
    return count;
}

uint64_t ft_python_id(void) {
    struct reads reads = {false};
    struct frame frames[FRAMES_MAX];
    uintptr_t at = innermost_frame(&reads);
    uint32_t count = at == 0 ? 0 : read_frames(reads, at, frames, FRAMES_MAX);
    if (count == 0) {
        return 0;
    }
    uint64_t id = hash_of(frames, count);
    return make_known(id, frames, count) ? id : 0;
}

/* Tells stacks apart by where their frames lie and what they run. One read a frame, where read_frames makes up to five. */
static uint64_t of_memory(struct reads reads, uintptr_t at) {
    const struct layout *layout = python.layout;
    uint64_t hash = 1;
    for (uint32_t step = 0; step < SAMPLED_FRAMES && at != 0; step++) {
        unsigned char raw[FRAME_READ];
        if (at % 8 != 0 || !fetch(reads, raw, at, sizeof raw)) {
            break;
        }
        hash = mixed(mixed(mixed(hash, at), word_in(raw, layout->frame_code)), word_in(raw, layout->frame_instruction));
        at = word_in(raw, layout->frame_previous);
    }
    return hash;
}

static FT_NOINLINE uint64_t define_sampled(struct reads reads, uintptr_t at) {
    struct frame frames[FRAMES_MAX];
    uint32_t count = read_frames(reads, at, frames, SAMPLED_FRAMES);
    uint64_t id = count == 0 ? 0 : hash_of(frames, count);
    return id != 0 && define(id, frames, count, true) ? id : 0;
}

/* pthread_getspecific only: in Python 3.12 and 3.13 the other getter reads a thread-local variable, which may have to allocate it. */
static uint64_t id_of_sample(uintptr_t interrupted) {
    uintptr_t here = (uintptr_t)__builtin_frame_address(0);
    const struct reads guarded = {false};
    /* An alternate stack may lie within the thread's own. */
    bool is_below = here < interrupted && interrupted - here < SIGNAL_FRAME_MAX;
    if (!is_below || !ft_on_native_stack(here) || here - ft_thread.native_low < STACK_LEFT) {
        return 0;
    }
    const void *own = python.this_thread();
    uintptr_t at = own == NULL ? 0 : frame_of(guarded, own);
    if (at == 0) {
        return 0;
    }
    /* Threads may write a pair at the same time: one that does not fit together is not found. */
    uint64_t key = of_memory(guarded, at), *pair = &ft_wiped.python_sampled[2 * (key % FT_SAMPLED_PYTHON)];
    uint64_t id = __atomic_load_n(&pair[1], __ATOMIC_RELAXED);
    if (id != 0 && (__atomic_load_n(&pair[0], __ATOMIC_RELAXED) ^ id) == key) {
        return id;
    }
    id = define_sampled(guarded, at);
    __atomic_store_n(&pair[0], key ^ id, __ATOMIC_RELAXED);
    __atomic_store_n(&pair[1], id, __ATOMIC_RELAXED);
    return id;
}

uint64_t ft_python_id_of_sample(uintptr_t interrupted) {
    uint64_t began = ft_now();
    if (ft_thread.python_after == 0) {
        ft_thread.python_after = began;
    }
    /* Each read puts off the next one by the time in which it becomes 1 / PART_OF_TIME. */
    if (ft_thread.python_after > began + FIRST_READS_NS) {
        return 0;
    }
    uint64_t id = id_of_sample(interrupted);
    ft_thread.python_after += (ft_now() - began) * PART_OF_TIME;
    return id;
}
