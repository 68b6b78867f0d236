/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * Tests the reader of Python's line tables. "python_lines fuzz N": N random tables, in pieces that end where their memory ends
 * (build with -fsanitize=address,undefined). "python_lines": reads "FIRST_LINE HEX UNIT,UNIT,..." and prints
 * LINE:COLUMN (0: none).
 */
#include "../agent.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int64_t line_at(const uint8_t *table, size_t bytes, int64_t first_line, uint64_t unit, size_t piece_bytes,
                       uint32_t *column) {
    struct ft_python_lines lines = {.wanted = unit, .line = first_line};
    size_t at = 0;
    while (!lines.done && at < bytes) {
        size_t part = bytes - at < piece_bytes ? bytes - at : piece_bytes;
        uint8_t *piece = malloc(part);
        memcpy(piece, table + at, part);
        size_t used = ft_python_lines_read(&lines, piece, part, at + part == bytes);
        free(piece);
        if (used > part) {
            abort();
        }
        if (used == 0) {
            break;
        }
        at += used;
    }
    *column = lines.column;
    return lines.found ? lines.line : 0;
}

int main(int argc, char **argv) {
    if (argc == 3 && strcmp(argv[1], "fuzz") == 0) {
        uint64_t random = 88172645463325252ull, found = 0;
        for (long i = 0; i < atol(argv[2]); i++) {
            uint8_t table[600];
            for (size_t k = 0; k < sizeof table; k++) {
                random ^= random << 13, random ^= random >> 7, random ^= random << 17;
                table[k] = (uint8_t)(random >> 24);
            }
            table[0] |= i % 4 == 0 ? 0 : 0x80;
            size_t bytes = random % sizeof table;
            int64_t first_line = i % 3 == 0 ? (int64_t)(uint32_t)(random >> 32) : 1;
            uint32_t column;
            int64_t line = line_at(table, bytes, first_line, random >> 20 & 255, 40 + random % 500, &column);
            found += line != 0;
            if (line < 0 || line > INT32_MAX || column > UINT16_MAX || (line == 0 && column != 0)) {
                abort();
            }
        }
        printf("%s\n", found > 0 ? "done" : "found nothing");
        return 0;
    }
    static char input[1 << 20], hex[1 << 19], units[1 << 19];
    static uint8_t table[1 << 18];
    long first_line;
    while (fgets(input, sizeof input, stdin) != NULL &&
           sscanf(input, "%ld %524287s %524287s", &first_line, hex, units) == 3) {
        size_t bytes = strlen(hex) / 2;
        for (size_t i = 0; i < bytes; i++) {
            unsigned byte;
            sscanf(hex + 2 * i, "%2x", &byte);
            table[i] = (uint8_t)byte;
        }
        for (char *unit = strtok(units, ","); unit != NULL; unit = strtok(NULL, ",")) {
            uint32_t column;
            long long line = line_at(table, bytes, first_line, strtoull(unit, NULL, 10), 512, &column);
            printf("%lld:%u ", line, column);
        }
        printf("\n");
    }
    return 0;
}
