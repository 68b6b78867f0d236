/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * The line table of a Python code object (co_linetable since CPython 3.11; Objects/locations.md there).
 *
 * Each entry covers some code units. Its first byte is 0x80 | (form << 3) | (code units - 1); the other bytes have the top
 * bit clear. The change of line is decoded, a signed number in forms 13 and 14, +1 or +2 in forms 11 and 12, 0 in the
 * others; and the column where the code of an entry begins. The bytes come from the program, so any of them may be invalid.
 */
#include "agent.h"

#define FORM_SHORT_LAST 9
#define FORM_LINES_1 11
#define FORM_LINES_2 12
#define FORM_NO_COLUMNS 13
#define FORM_LONG 14
#define FORM_NONE 15

/* Six bits a byte, least significant first; bit 0x40 says that more follow. Moves `from` behind it. */
static uint64_t number_at(const uint8_t **from, const uint8_t *end) {
    uint64_t number = 0;
    for (uint32_t shift = 0; *from < end && shift < 36; shift += 6) {
        uint8_t byte = *(*from)++;
        number |= (uint64_t)(byte & 0x3f) << shift;
        if ((byte & 0x40) == 0) {
            break;
        }
    }
    return number;
}

/* The lowest bit of the number is its sign. */
static int64_t signed_number(const uint8_t *from, const uint8_t *end) {
    uint64_t number = number_at(&from, end);
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

/* The column counted from 1, 0 if the entry has none. */
static uint32_t column_of(const uint8_t *entry, const uint8_t *end) {
    uint32_t form = *entry >> 3 & 15;
    const uint8_t *from = entry + 1;
    if (form <= FORM_LINES_2 && from < end) {
        return form <= FORM_SHORT_LAST ? (form << 3 | (*from >> 4 & 7)) + 1 : (uint32_t)*from + 1;
    }
    if (form == FORM_LONG) {
        (void)number_at(&from, end); /* change of line */
        (void)number_at(&from, end); /* lines that the code spans */
        uint64_t column = number_at(&from, end);
        return column <= UINT16_MAX ? (uint32_t)column : 0;
    }
    return 0;
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
            lines->column = lines->found ? column_of(entry, end) : 0;
        }
        entry = end;
    }
    return (size_t)(entry - piece);
}
