/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * The runtime's functions that make allocators and memory: those of the standard, their Fortran forms, and the entry points that
 * compilers call for `allocate` clauses and directives (GOMP_alloc of GCC, __kmpc_alloc of clang). Each forwards its call.
 */
#include "openmp.h"

#include <dlfcn.h>
#include <stdlib.h>

#define FT_EXPORT __attribute__((visibility("default")))

/* A call that the runtime makes of itself (omp_calloc may call omp_alloc) is not looked at again. */
static __thread bool is_inside __attribute__((tls_model("initial-exec")));

/* A runtime that was loaded for one library only (a Python extension) is not in the program's scope. */
static void *find(const char *name) {
    void *function = dlsym(RTLD_NEXT, name);
    static const char *const runtimes[] = {"libgomp.so.1", "libomp.so", "libomp.so.5", "libiomp5.so"};
    for (size_t i = 0; function == NULL && i < sizeof runtimes / sizeof runtimes[0]; i++) {
        void *runtime = dlopen(runtimes[i], RTLD_LAZY | RTLD_NOLOAD);
        if (runtime != NULL) {
            function = dlsym(runtime, name);
            dlclose(runtime);
        }
    }
    return function;
}

/* REAL(name, type): the runtime's function. Whoever calls one of ours has a runtime that defines it. */
#define REAL(name, type)                                         \
    __extension__({                                              \
        static type *found;                                      \
        type *known = __atomic_load_n(&found, __ATOMIC_ACQUIRE); \
        if (known == NULL) {                                     \
            known = (type *)find(name);                          \
            __atomic_store_n(&found, known, __ATOMIC_RELEASE);   \
        }                                                        \
        known;                                                   \
    })

typedef uintptr_t default_allocator(void);

static enum how how_of(uintptr_t allocator) {
    return ft_allocator_how(allocator, REAL("omp_get_default_allocator", default_allocator));
}

/* ALLOCATES(name, parameters, arguments, bytes, allocator) defines a function that returns memory. */
#define ALLOCATES(name, parameters, arguments, bytes, allocator) \
    FT_EXPORT void *name parameters {                            \
        typedef void *function parameters;                       \
        function *real = REAL(#name, function);                  \
        if (real == NULL) {                                      \
            return NULL;                                         \
        }                                                        \
        if (is_inside) {                                         \
            return real arguments;                               \
        }                                                        \
        is_inside = true;                                        \
        void *block = real arguments;                            \
        ft_block_made(block, (bytes), how_of(allocator));        \
        is_inside = false;                                       \
        return block;                                            \
    }

ALLOCATES(omp_alloc, (size_t size, uintptr_t allocator), (size, allocator), size, allocator)
ALLOCATES(omp_aligned_alloc, (size_t alignment, size_t size, uintptr_t allocator), (alignment, size, allocator), size,
          allocator)
ALLOCATES(omp_calloc, (size_t count, size_t size, uintptr_t allocator), (count, size, allocator), count *size,
          allocator)
ALLOCATES(omp_aligned_calloc, (size_t alignment, size_t count, size_t size, uintptr_t allocator),
          (alignment, count, size, allocator), count *size, allocator)
ALLOCATES(GOMP_alloc, (size_t alignment, size_t size, uintptr_t allocator), (alignment, size, allocator), size,
          allocator)
ALLOCATES(__kmpc_alloc, (int thread, size_t size, uintptr_t allocator), (thread, size, allocator), size, allocator)
ALLOCATES(__kmpc_aligned_alloc, (int thread, size_t alignment, size_t size, uintptr_t allocator),
          (thread, alignment, size, allocator), size, allocator)
ALLOCATES(__kmpc_calloc, (int thread, size_t count, size_t size, uintptr_t allocator), (thread, count, size, allocator),
          count *size, allocator)

/* REALLOCATES: the same, after the old block has lost its policy. */
#define REALLOCATES(name, parameters, arguments, old, bytes, allocator) \
    FT_EXPORT void *name parameters {                                   \
        typedef void *function parameters;                              \
        function *real = REAL(#name, function);                         \
        if (real == NULL) {                                             \
            return NULL;                                                \
        }                                                               \
        if (is_inside) {                                                \
            return real arguments;                                      \
        }                                                               \
        is_inside = true;                                               \
        ft_block_ends(old);                                             \
        void *block = real arguments;                                   \
        ft_block_made(block, (bytes), how_of(allocator));               \
        is_inside = false;                                              \
        return block;                                                   \
    }

REALLOCATES(omp_realloc, (void *old, size_t size, uintptr_t allocator, uintptr_t old_allocator),
            (old, size, allocator, old_allocator), old, size, allocator != 0 ? allocator : old_allocator)
REALLOCATES(__kmpc_realloc, (int thread, void *old, size_t size, uintptr_t allocator, uintptr_t old_allocator),
            (thread, old, size, allocator, old_allocator), old, size, allocator != 0 ? allocator : old_allocator)

/* RELEASES(name, parameters, arguments) defines a function that releases `block`. */
#define RELEASES(name, parameters, arguments)   \
    FT_EXPORT void name parameters {            \
        typedef void function parameters;       \
        function *real = REAL(#name, function); \
        if (!is_inside) {                       \
            ft_block_ends(block);               \
        }                                       \
        if (real != NULL) {                     \
            real arguments;                     \
        }                                       \
    }

RELEASES(omp_free, (void *block, uintptr_t allocator), (block, allocator))
RELEASES(GOMP_free, (void *block, uintptr_t allocator), (block, allocator))
RELEASES(__kmpc_free, (int thread, void *block, uintptr_t allocator), (thread, block, allocator))

FT_EXPORT uintptr_t omp_init_allocator(uintptr_t space, int count, const struct trait *traits) {
    typedef uintptr_t function(uintptr_t, int, const struct trait *);
    function *real = REAL("omp_init_allocator", function);
    uintptr_t allocator = real != NULL ? real(space, count, traits) : 0;
    ft_allocator_made(allocator, count, traits);
    return allocator;
}

FT_EXPORT uintptr_t __kmpc_init_allocator(int thread, uintptr_t space, int count, const struct trait *traits) {
    typedef uintptr_t function(int, uintptr_t, int, const struct trait *);
    function *real = REAL("__kmpc_init_allocator", function);
    uintptr_t allocator = real != NULL ? real(thread, space, count, traits) : 0;
    ft_allocator_made(allocator, count, traits);
    return allocator;
}

FT_EXPORT void omp_destroy_allocator(uintptr_t allocator) {
    typedef void function(uintptr_t);
    function *real = REAL("omp_destroy_allocator", function);
    ft_allocator_destroyed(allocator);
    if (real != NULL) {
        real(allocator);
    }
}

FT_EXPORT void __kmpc_destroy_allocator(int thread, uintptr_t allocator) {
    typedef void function(int, uintptr_t);
    function *real = REAL("__kmpc_destroy_allocator", function);
    ft_allocator_destroyed(allocator);
    if (real != NULL) {
        real(thread, allocator);
    }
}

/* Fortran passes addresses. Integers of the kind omp_allocator_handle_kind have the size of an address. */
#define FORTRAN_INIT(name, integer)                                                                      \
    FT_EXPORT uintptr_t name(const uintptr_t *space, const integer *count, const struct trait *traits) { \
        typedef uintptr_t function(const uintptr_t *, const integer *, const struct trait *);            \
        function *real = REAL(#name, function);                                                          \
        uintptr_t allocator = real != NULL ? real(space, count, traits) : 0;                             \
        ft_allocator_made(allocator, (int)*count, traits);                                               \
        return allocator;                                                                                \
    }

FORTRAN_INIT(omp_init_allocator_, int32_t)
FORTRAN_INIT(omp_init_allocator_8_, int64_t)

FT_EXPORT void omp_destroy_allocator_(const uintptr_t *allocator) {
    typedef void function(const uintptr_t *);
    function *real = REAL("omp_destroy_allocator_", function);
    ft_allocator_destroyed(*allocator);
    if (real != NULL) {
        real(allocator);
    }
}
