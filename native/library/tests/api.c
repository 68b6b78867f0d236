/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * The library by its header only, on this machine: memory, errors, mappings, threads, forks. `api N M` uses N threads, and forks
 * M times; `api alone` copies and zeroes in parallel only, and prints the doubt.
 */
#include "firsttouch.h"
#include "check.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define MIB ((size_t)1 << 20)

static bool is_single_node(void) {
    return ft_nodes(NULL, 0) == 1;
}

static size_t mappings(void) {
    FILE *maps = fopen("/proc/self/maps", "r");
    size_t lines = 0;
    for (int c; (c = getc(maps)) != EOF;) {
        lines += c == '\n';
    }
    fclose(maps);
    return lines;
}

static bool is_zero(const unsigned char *at, size_t bytes) {
    return at[0] == 0 && memcmp(at, at + 1, bytes - 1) == 0;
}

static void test_memory(void) {
    static const size_t sizes[] = {1, 100, FT_SMALL_BYTES - 1, FT_SMALL_BYTES, 100001, MIB, 9 * MIB + 5};
    size_t bounds[] = {0, 1000, 40000};
    double weights[] = {1, 2};
    ft_partition partitions[] = {ft_local(),
                                 ft_blocked(4),
                                 ft_cyclic(3, 5000),
                                 ft_by_bounds(bounds, 2),
                                 ft_weighted(weights, 2),
                                 ft_interleaved(),
                                 ft_replicated(),
                                 ft_over_nodes(ft_blocked(0))};
    for (size_t i = 0; i < sizeof partitions / sizeof partitions[0]; i++) {
        for (size_t j = 0; j < sizeof sizes / sizeof sizes[0]; j++) {
            size_t bytes = sizes[j];
            for (unsigned flags = 0; flags <= FT_SMALL_PAGES; flags++) {
                unsigned char *at = ft_alloc(bytes, &partitions[i], flags);
                CHECK(at != NULL && (uintptr_t)at % 16 == 0, "%zu bytes", bytes);
                if (bytes >= FT_SMALL_BYTES) {
                    CHECK((uintptr_t)at % 4096 == 0 && ft_size(at) == bytes && is_zero(at, bytes), "%zu bytes", bytes);
                } else {
                    CHECK(partitions[i].kind == FT_REPLICATED || ft_size(at) == 0, "%zu bytes", bytes);
                }
                memset(at, 3, bytes);
                ft_free(at);
            }
        }
    }
    ft_free(NULL);
    ft_free(ft_alloc(0, NULL, 0));
    errno = 77;
    ft_free(ft_alloc(MIB, NULL, 0));
    CHECK(errno == 77, "ft_free changes errno");
    void *aligned = aligned_alloc(4096, 8192);
    CHECK(ft_size(aligned) == 0, "malloc's memory at a page");
    ft_free(aligned);
    CHECK(strcmp(ft_version(), "1.0.0") == 0, "%s", ft_version());
}

static void test_errors(void) {
    ft_partition invalid = {.kind = 99}, replicated = ft_replicated(), local = ft_local();
    char byte[8192];
    ft_verdict verdict;
#define REFUSED(call, failed, error) (errno = 0, (call) == (failed) && errno == (error))
    CHECK(REFUSED(ft_alloc(MIB, &invalid, 0), NULL, EINVAL));
    CHECK(REFUSED(ft_alloc(1, &invalid, 0), NULL, EINVAL));
    CHECK(REFUSED(ft_alloc(MIB, NULL, 1u << 20), NULL, EINVAL));
    CHECK(REFUSED(ft_alloc(MIB, NULL, FT_HUGE_PAGES | FT_SMALL_PAGES), NULL, EINVAL));
    CHECK(REFUSED(ft_alloc(SIZE_MAX, NULL, 0), NULL, ENOMEM));
    CHECK(REFUSED(ft_alloc((size_t)1 << 62, NULL, 0), NULL, ENOMEM));
    ft_partition blocked = ft_blocked(2);
    CHECK(REFUSED(ft_alloc((size_t)1 << 48, &blocked, 0), NULL, ENOMEM));
    CHECK(strstr(ft_last_doubt(), "ft_alloc: 281474976710656 bytes could not be mapped") != NULL, "%s",
          ft_last_doubt());
    CHECK(REFUSED(ft_place(byte, sizeof byte, &replicated, 0), -1, EINVAL));
    CHECK(REFUSED(ft_place(NULL, 1, NULL, 0), -1, EINVAL));
    CHECK(REFUSED(ft_place(byte, SIZE_MAX, NULL, 0), -1, EINVAL));
    CHECK(REFUSED(ft_localise(byte, 1, &invalid), -1, EINVAL));
    CHECK(REFUSED(ft_zero_parallel(NULL, 1, NULL), -1, EINVAL));
    CHECK(REFUSED(ft_copy_parallel(byte, byte + 1, 2, NULL), -1, EINVAL));
    CHECK(REFUSED(ft_verify(byte, 1, NULL, NULL), -1, EINVAL));
    CHECK(REFUSED(ft_verify(byte, 1, &replicated, &verdict), -1, EINVAL));
    CHECK(REFUSED(ft_expect(byte, 1, &local, 2), -1, EINVAL));
    CHECK(REFUSED(ft_expect(byte, 1, &local, NAN), -1, EINVAL));
    CHECK(REFUSED(ft_expect(byte, 1, &local, 1), -1, ENODATA), "a range without a whole page");
    CHECK(REFUSED(ft_replicate(byte), -1, EINVAL));
    CHECK(REFUSED(ft_realloc(byte, 0), NULL, EINVAL));
    CHECK(REFUSED(ft_team_join(-1, 0, 1), -1, EINVAL));
    CHECK(ft_place(byte, 0, NULL, 0) == 0 && ft_zero_parallel(NULL, 0, NULL) == 0 && ft_localise(NULL, 0, NULL) == 0,
          "nothing to do");
    CHECK(ft_verify(byte, 1, NULL, &verdict) == 0 && verdict.pages == 0 && isnan(verdict.share), "less than a page");
}

/* Before Linux 5.14, or as `refused populate` makes it: there the page would be a SIGBUS. */
static bool is_old_kernel(void) {
    static _Alignas(4096) char page[4096];
    return madvise(page, sizeof page, 23 /* MADV_POPULATE_WRITE */) != 0;
}

/* Memory that cannot be placed or populated: an error, not a crash. */
static void test_memory_of_others(void) {
    ft_partition p = ft_blocked(2);
    static const int access[] = {PROT_READ, PROT_NONE, PROT_READ | PROT_WRITE};
    for (size_t i = 0; i < 3; i++) {
        char *at = mmap(NULL, 3 * MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        at[0] = 7;
        mprotect(at + MIB, MIB, access[i]); /* in the middle, between writable parts */
        bool is_writable = access[i] == (PROT_READ | PROT_WRITE);
        CHECK(is_writable ? ft_localise(at, 3 * MIB, &p) == 0 : REFUSED(ft_localise(at, 3 * MIB, &p), -1, EACCES),
              "access %d: %s", access[i], strerror(errno));
        CHECK(is_writable || strstr(ft_last_doubt(), "PROT_WRITE") != NULL, "%s", ft_last_doubt());
        CHECK(at[0] == 7 && ft_place(at, 3 * MIB, &p, 0) >= 0, "access %d", access[i]);
        munmap(at + MIB, MIB);
        CHECK(REFUSED(ft_localise(at, 3 * MIB, &p), -1, EFAULT), "%s", strerror(errno));
        CHECK(ft_last_doubt() != NULL && strstr(ft_last_doubt(), "not mapped") != NULL, "%s", ft_last_doubt());
        CHECK(REFUSED(ft_place(at, 3 * MIB, &p, 0), -1, EFAULT) && REFUSED(ft_place(at + MIB, MIB, &p, 0), -1, EFAULT),
              "%s", strerror(errno));
        CHECK(strstr(ft_last_doubt(), "not mapped") != NULL, "%s", ft_last_doubt());
        munmap(at, 3 * MIB);
        ft_clear_doubt();
        CHECK(ft_expect(at, 3 * MIB, &p, 0) == -1 &&
                  (errno != EFAULT || strstr(ft_last_doubt(), "not mapped") != NULL) && errno != ENODATA,
              "%s", strerror(errno)); /* EPERM where move_pages is refused */
    }
    FILE *file = tmpfile();
    CHECK(file != NULL && ftruncate(fileno(file), (off_t)MIB) == 0, "a file of 1 MiB");
    char *at = mmap(NULL, 2 * MIB, PROT_READ | PROT_WRITE, MAP_SHARED, fileno(file), 0);
    CHECK(ft_localise(at, MIB, &p) == 0, "a file");
    if (!is_old_kernel()) {
        CHECK(REFUSED(ft_localise(at, 2 * MIB, &p), -1, EFAULT) && strstr(ft_last_doubt(), "end of its file") != NULL,
              "%s: %s", strerror(errno), ft_last_doubt());
    }
    munmap(at, 2 * MIB);
    fclose(file);
}

static void test_realloc(void) {
    unsigned char *small = ft_alloc(100, NULL, 0);
    memset(small, 9, 100);
    small = ft_realloc(small, MIB);
    CHECK(small != NULL && small[99] == 9, "malloc's block");
    ft_free(small);
    ft_partition p = ft_blocked(3);
    unsigned char *at = ft_alloc(MIB, &p, 0);
    memset(at, 5, MIB);
    at = ft_realloc(at, 64 * MIB);
    CHECK(at != NULL && ft_size(at) == 64 * MIB && at[MIB - 1] == 5 && is_zero(at + MIB, MIB), "grown");
    at = ft_realloc(at, 5000);
    CHECK(at != NULL && ft_size(at) == 5000 && at[4999] == 5, "shrunk");
    errno = 0;
    CHECK(ft_realloc(at, (size_t)1 << 60) == NULL && errno == ENOMEM && ft_size(at) == 5000 && at[0] == 5,
          "too large: the old stays");
    CHECK(strstr(ft_last_doubt(), "ft_realloc: ") == ft_last_doubt() && strstr(ft_last_doubt(), "could not be mapped"),
          "%s", ft_last_doubt());
    ft_free(at);
    at = ft_realloc(NULL, MIB);
    CHECK(ft_size(at) == MIB, "of NULL");
    ft_free(at);
}

/* Sanitizers and valgrind map memory of their own beside ours. */
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__) || defined(VALGRIND)
#define IS_SANITIZED true
#elif defined(__has_feature)
#define IS_SANITIZED (__has_feature(thread_sanitizer) || __has_feature(address_sanitizer))
#else
#define IS_SANITIZED false
#endif

static void test_mappings(void) {
    if (IS_SANITIZED) {
        return;
    }
    ft_partition p = ft_cyclic(0, 64 * 1024);
    void *at[100];
    size_t before = 0;
    /* In the first round malloc takes memory for itself. */
    for (size_t round = 0; round < 2; round++) {
        before = mappings();
        for (size_t i = 0; i < 100; i++) {
            at[i] = ft_alloc((i + 1) * 70000, &p, i % 3);
        }
        CHECK(!is_single_node() || mappings() <= before + 200, "%zu mappings more for 100 blocks", mappings() - before);
        for (size_t i = 0; i < 100; i++) {
            ft_free(at[i]);
        }
    }
    CHECK(mappings() <= before, "%zu mappings are left", mappings() - before);
    char *one = ft_alloc(MIB, &p, 0);
    memset(one, 1, MIB);
    before = mappings();
    ft_place(one, MIB, &p, 0);
    CHECK(!is_single_node() || mappings() == before, "ft_place splits on one node");
    ft_free(one);
}

static void test_verify(void) {
    ft_partition p = ft_blocked(2);
    size_t bytes = 8 * MIB;
    unsigned char *at = ft_alloc(bytes, &p, FT_SMALL_PAGES);
    ft_verdict verdict;
    if (ft_verify(at, bytes, &p, &verdict) != 0) {
        CHECK(verdict.error == errno && isnan(verdict.share) && ft_last_doubt() != NULL &&
                  ft_expect(at, bytes, &p, 0) == -1,
              "refused");
        printf("verify: refused: %s\n", ft_last_doubt());
        ft_free(at);
        return;
    }
    CHECK(verdict.pages == 2048 && verdict.present == 0 && isnan(verdict.share), "nothing is touched: %zu",
          verdict.present);
    CHECK(ft_expect(at, bytes, &p, 0.5) == -1 && errno == ENODATA, "nothing is known");
    for (size_t i = 0; i < bytes / 2; i += 4096) {
        at[i] = 1;
    }
    CHECK(ft_verify(at, bytes, &p, &verdict) == 0 && verdict.present == 1024, "%zu present", verdict.present);
    CHECK(!is_single_node() || (verdict.on_target == 1024 && verdict.share == 1), "%zu on target", verdict.on_target);
    CHECK(ft_verify(at + 1, bytes - 1, &p, &verdict) == 0 && verdict.pages == 2047, "whole pages");
    CHECK(ft_localise(at, bytes, &p) == 0 && ft_verify(at, bytes, &p, &verdict) == 0 && verdict.present == 2048,
          "populated");
    ft_clear_doubt();
    CHECK(ft_expect(at, bytes, &p, 0.97) == 1, "expected");
    CHECK(!is_single_node() || ft_last_doubt() != NULL, "nothing was tested");
    FT_EXPECT_PLACED(at, bytes, &p, 0.97);
    char text[500];
    CHECK(ft_report(text, sizeof text, NULL, at, bytes, &p) == strlen(text) &&
              strstr(text, "2048 of 2048 pages present"),
          "%s", text);
    ft_free(at);
}

static void test_parallel(void) {
    ft_partition p = ft_cyclic(0, 12345);
    size_t bytes = 5 * MIB + 123;
    unsigned char *from = malloc(bytes), *to = malloc(bytes + 1);
    memset(to, 1, bytes + 1);
    for (size_t i = 0; i < bytes; i++) {
        from[i] = (unsigned char)(i * 7 + i / 251);
    }
    CHECK(ft_copy_parallel(to, from, bytes, &p) == 0 && memcmp(to, from, bytes) == 0 && to[bytes] == 1, "copy");
    CHECK(ft_zero_parallel(to, bytes, NULL) == 0 && is_zero(to, bytes) && to[bytes] == 1, "zero");
    p = ft_interleaved();
    CHECK(ft_copy_parallel(to, from, bytes, &p) == 0 && memcmp(to, from, bytes) == 0, "copy");
    free(from);
    free(to);
    p = ft_replicated();
    char *table = ft_alloc(100000, &p, 0);
    strcpy(table, "table");
    CHECK(ft_replicate(table) == (int)ft_nodes(NULL, 0) && strcmp(ft_local_copy(table), "table") == 0, "replicated");
    ft_free(table);
}

/* ---- Threads and forks ---- */

static void *allocate_much(void *argument) {
    size_t number = (size_t)(uintptr_t)argument;
    ft_partition p = ft_for_team(ft_blocked(4), (int)(number % 8));
    ft_team_join((int)(number % 8), number / 8 % 4, 4);
    for (size_t i = 0; i < 20; i++) {
        size_t bytes = 1000 + (number * 37 + i * 30011) % 200000;
        unsigned char *at = ft_alloc(bytes, &p, 0);
        CHECK(at != NULL && (bytes < FT_SMALL_BYTES || ft_size(at) == bytes), "thread %zu", number);
        memset(at, (int)number, bytes < 3000 ? bytes : 3000);
        at = ft_realloc(at, bytes + 50000);
        CHECK(at != NULL && at[999] == (unsigned char)number, "thread %zu", number);
        ft_place(at, bytes, &p, 0);
        ft_free(at);
    }
    return NULL;
}

static void test_threads(size_t count) {
    pthread_t *threads = calloc(count, sizeof *threads);
    size_t started = 0;
    pthread_attr_t small;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 128 * 1024);
    while (started < count &&
           pthread_create(&threads[started], &small, allocate_much, (void *)(uintptr_t)started) == 0) {
        started++;
    }
    CHECK(started == count, "%zu of %zu threads", started, count);
    for (size_t i = 0; i < started; i++) {
        pthread_join(threads[i], NULL);
    }
    pthread_attr_destroy(&small);
    free(threads);
}

static atomic_bool stop;

static void *allocate_until(void *argument) {
    (void)argument;
    ft_partition p = ft_blocked(2);
    while (!stop) {
        ft_free(ft_alloc(100000, &p, 0));
    }
    return NULL;
}

/* Children of a process whose other threads are within the library. */
static void test_forks(size_t count) {
    pthread_t threads[4];
    ft_partition p = ft_interleaved();
    char *before = ft_alloc(MIB, &p, 0);
    before[5] = 42;
    for (size_t i = 0; i < 4; i++) {
        pthread_create(&threads[i], NULL, allocate_until, NULL);
    }
    for (size_t i = 0; i < count; i++) {
        pid_t child = fork();
        if (child == 0) {
            alarm(20);
            char *at = ft_alloc(200000, &p, 0);
            at = ft_realloc(at, 300000);
            bool good =
                at != NULL && ft_size(before) == MIB && before[5] == 42 && ft_zero_parallel(at, 300000, &p) == 0;
            ft_free(at);
            ft_free(before);
            _exit(good ? 0 : 1);
        }
        int status = 0;
        waitpid(child, &status, 0);
        CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0, "child %zu: %x", i, (unsigned)status);
    }
    stop = true;
    for (size_t i = 0; i < 4; i++) {
        pthread_join(threads[i], NULL);
    }
    CHECK(before[5] == 42, "the parent's memory");
    ft_free(before);
}

static void test_assertion(void) {
    /* The last assertion of a child that expects pages of node 63. */
    ft_partition nowhere = ft_bind(63);
    char *at = ft_alloc(MIB, NULL, 0);
    memset(at, 1, MIB);
    ft_verdict verdict;
    bool is_known = ft_verify(at, MIB, &nowhere, &verdict) == 0;
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        freopen("/dev/null", "w", stderr);
        FT_EXPECT_PLACED(at, MIB, &nowhere, 0.5);
        _exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    CHECK(is_known ? WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT : WIFEXITED(status), "status %x",
          (unsigned)status);
    ft_free(at);
}

#ifdef LARGE_TLS
_Thread_local char large[LARGE_TLS];
#endif

int main(int count, char **arguments) {
    if (count == 2 && strcmp(arguments[1], "alone") == 0) {
        test_parallel();
        void *at = malloc(8 * MIB);
        ft_clear_doubt();
        CHECK(ft_zero_parallel(at, 8 * MIB, NULL) == 0 && is_zero(at, 8 * MIB), "zero");
        free(at);
        printf("doubt: %s\n", ft_last_doubt() != NULL ? ft_last_doubt() : "none");
        return checked("api");
    }
    test_memory();
    test_errors();
    test_memory_of_others();
    test_realloc();
    test_mappings();
    test_verify();
    test_parallel();
    test_threads(count > 1 ? (size_t)atoi(arguments[1]) : 100);
    test_forks(count > 2 ? (size_t)atoi(arguments[2]) : 20);
    test_assertion();
    return checked("api");
}
