/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * The line table of a Python code object (co_linetable since CPython 3.11; Objects/locations.md there).
 *
 * Each entry covers some code units. Its first byte is 0x80 | (form << 3) | (code units - 1); the other bytes have the top
 * bit clear. Only the change of line is decoded: a signed number in forms 13 and 14, +1 or +2 in forms 11 and 12, 0 in the
 * others. The bytes come from the program, so any of them may be invalid.
 */
#include "agent.h"

#define FORM_LINES_1 11
#define FORM_LINES_2 12
#define FORM_NO_COLUMNS 13
#define FORM_LONG 14
#define FORM_NONE 15

/* Six bits a byte, least significant first; bit 0x40 says that more follow. The lowest bit of the number is its sign. */
static int64_t signed_number(const uint8_t *from, const uint8_t *end) {
    uint64_t number = 0;
    for (uint32_t shift = 0; from < end && shift < 36; from++, shift += 6) {
        number |= (uint64_t)(*from & 0x3f) << shift;
        if ((*from & 0x40) == 0) {
            break;
        }
    }
    int64_t half = (int64_t)(number >> 1);
    return (number & 1) != 0 ? -half : half;
}

static int64_t line_change(const uint8_t *entry, const uint8_t *end) {
    switch ((*entry >> 3) & 15) {
    case FORM_LINES_1:
        return 1;
    case FORM_LINES_2:
        return 2;
    case FORM_NO_COLUMNS:
    case FORM_LONG:
        return signed_number(entry + 1, end);
    default:
        return 0;
    }
}

size_t ft_python_lines_read(struct ft_python_lines *lines, const uint8_t *piece, size_t bytes, bool is_last) {
    const uint8_t *entry = piece, *end_of_piece = piece + bytes;
    while (!lines->done && entry < end_of_piece) {
        const uint8_t *end = entry + 1;
        while (end < end_of_piece && (*end & 0x80) == 0) {
            end++;
        }
        if ((*entry & 0x80) == 0) {
            lines->done = true; /* not a line table */
            break;
        }
        if (end == end_of_piece && !is_last) {
            break;
        }
        lines->line += line_change(entry, end);
        lines->unit += (uint64_t)(*entry & 7) + 1;
        if (lines->unit > lines->wanted) {
            lines->done = true;
            lines->found = ((*entry >> 3) & 15) != FORM_NONE && lines->line > 0 && lines->line < INT32_MAX;
        }
        entry = end;
    }
    return (size_t)(entry - piece);
}
