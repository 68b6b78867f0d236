/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * Random arguments for every function: nothing may crash, read or write outside of a block, or leak. fuzz RUNS uses random numbers
 * of its own; built with -DLIBFUZZER -fsanitize=fuzzer, libFuzzer chooses them.
 */
#include "firsttouch.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_BYTES ((size_t)3 << 20)

typedef struct bytes {
    const unsigned char *at;
    size_t left;
} bytes;

static uint64_t take(bytes *b, size_t count) {
    uint64_t value = 0;
    for (; count > 0 && b->left > 0; count--, b->left--) {
        value = value << 8 | *b->at++;
    }
    return value;
}

/* Sizes near borders come often. */
static size_t take_size(bytes *b) {
    static const size_t borders[] = {0, 1, 4095, 4096, 4097, FT_SMALL_BYTES - 1, FT_SMALL_BYTES, (size_t)2 << 20};
    uint64_t kind = take(b, 1);
    if (kind < 100) {
        return borders[kind % 8] + (size_t)take(b, 1);
    }
    return kind < 240 ? (size_t)take(b, 3) % MAX_BYTES : (size_t)take(b, 8);
}

static ft_partition take_partition(bytes *b, size_t *bounds, double *weights) {
    ft_partition p = {.kind = (int32_t)(take(b, 1) % 10) - 1,
                      .unit = (int32_t)(take(b, 1) % 9 == 0 ? 2 : take(b, 1) % 2)};
    p.parts = take(b, 1) % 8 == 0 ? (size_t)take(b, 8) : (size_t)take(b, 1) % 9;
    p.chunk = take_size(b);
    p.node = (int32_t)(take(b, 1) % 16 == 0 ? take(b, 4) : take(b, 1) % 3);
    p.team = (int32_t)(take(b, 1) % 16 == 0 ? take(b, 4) : take(b, 1) % 3);
    if (p.kind == FT_BY_BOUNDS || p.kind == FT_WEIGHTED) {
        p.parts %= 9; /* the arrays are the caller's */
    }
    for (size_t i = 0; i < 9; i++) {
        bounds[i] = (i == 0 ? 0 : bounds[i - 1]) + take_size(b);
        uint64_t bits = take(b, 8);
        memcpy(&weights[i], &bits, sizeof bits);
        if (take(b, 1) % 2) {
            weights[i] = (double)(bits % 100);
        }
    }
    p.bounds = take(b, 1) % 16 == 0 ? NULL : bounds;
    p.weights = take(b, 1) % 16 == 0 ? NULL : weights;
    return p;
}

static void use(unsigned char *at, size_t size, const ft_partition *p, bytes *b) {
    ft_verdict verdict;
    char text[300];
    size_t from = size == 0 ? 0 : take_size(b) % size, length = size - from;
    memset(at, 1, size < 100000 ? size : 100000);
    switch (take(b, 1) % 8) {
    case 0:
        ft_place(at + from, length, p, (unsigned)take(b, 1) % 16);
        break;
    case 1:
        ft_localise(at + from, length, p);
        break;
    case 2:
        ft_zero_parallel(at + from, length, p);
        break;
    case 3:
        ft_copy_parallel(at, at + from, from < length ? from : length, p);
        break;
    case 4:
        if (ft_verify(at + from, length, p, &verdict) == 0 &&
            (verdict.on_target > verdict.present || verdict.present > verdict.pages) && p->kind != FT_REPLICATED) {
            abort();
        }
        break;
    case 5:
        ft_report(text, (size_t)take(b, 1), "x", at + from, length, p);
        break;
    case 6:
        ft_expect(at, size, p, (double)take(b, 1) / 200);
        break;
    default:
        ft_replicate(at);
        *(volatile char *)ft_local_copy(at);
        break;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    bytes b = {data, size};
    size_t bounds[9];
    double weights[9];
    ft_team_join((int)(take(&b, 1) % 3), (size_t)take(&b, 1) % 5, (size_t)take(&b, 1) % 6);
    ft_partition p = take_partition(&b, bounds, weights), q = take_partition(&b, bounds, weights);
    size_t wanted = take_size(&b);
    unsigned char *at = ft_alloc(wanted, &p, (unsigned)take(&b, 1) % 17);
    for (int i = 0; at != NULL && wanted > 0 && wanted < 2 * MAX_BYTES && i < 4; i++) {
        size_t most = ft_size(at);
        use(at, most != 0 ? most : wanted, i % 2 ? &p : &q, &b);
        size_t more = take_size(&b);
        unsigned char *moved = ft_realloc(at, more);
        if (moved != NULL) {
            at = moved;
            wanted = more;
        }
    }
    ft_free(at);
    ft_last_doubt();
    return 0;
}

#ifndef LIBFUZZER
int main(int count, char **arguments) {
    uint64_t state = 88172645463325252u;
    for (size_t left = count > 1 ? (size_t)atol(arguments[1]) : 1000; left > 0; left--) {
        uint8_t data[400];
        for (size_t i = 0; i < sizeof data; i++) {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            data[i] = (uint8_t)(state >> 24);
        }
        LLVMFuzzerTestOneInput(data, sizeof data);
    }
    printf("fuzz: as expected\n");
    return 0;
}
#endif
