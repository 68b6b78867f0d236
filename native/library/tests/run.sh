#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 OR MIT
#
# Tests libfirsttouch: on this machine, and on recorded machines with several nodes and a kernel that keeps policies (fake_policy.c).
#   CC=clang run.sh   another compiler     KEEP=1   keep the work directory     FUZZ_RUNS=100000   longer fuzzing
set -u
here=$(cd "$(dirname "$0")" && pwd)
source_dir=$(dirname "$here")
root=$(cd "$source_dir/../.." && pwd)
machines=$root/fixtures/machines
CC=${CC:-gcc}
work=$(mktemp -d "${TMPDIR:-/tmp}/firsttouch-library.XXXXXX")
[ -n "${KEEP:-}" ] && echo "work directory: $work"
trap '[ -n "${KEEP:-}" ] || rm -rf "$work"' EXIT
cd "$work" || exit 1
unset LD_PRELOAD OMP_NUM_THREADS OMP_THREAD_LIMIT OMP_PROC_BIND OMP_PLACES
# The fuzzer asks for sizes that no allocator gives.
export ASAN_OPTIONS=allocator_may_return_null=1 CARGO_TARGET_DIR=$work/target
passed=0
failed=0
skipped=0

pass() { passed=$((passed + 1)); printf 'ok    %s\n' "$1"; }
fail() { failed=$((failed + 1)); printf 'FAIL  %s%s\n' "$1" "${2:+: $2}"; }
skip() {
    skipped=$((skipped + 1))
    printf 'SKIPPED %s: %s\n' "$1" "$2"
    if [ "${FIRSTTOUCH_NO_SKIP:-}" = 1 ]; then failed=$((failed + 1)); fi
}
equal() { # NAME EXPECTED ACTUAL
    if [ "$2" = "$3" ]; then pass "$1"; else fail "$1" "expected '$2', got '$3'"; fi
}
# as_expected NAME COMMAND...: the command succeeds, and its last line says "as expected".
as_expected() {
    local name=$1 status=0
    shift
    timeout 170 "$@" >out 2>err || status=$?
    if [ $status = 0 ] && tail -1 out | grep -q 'as expected$'; then
        pass "$name"
    else
        fail "$name" "status $status: $(tail -n 8 out; tail -n 8 err)"
    fi
}

warnings=(-std=c11 -D_GNU_SOURCE -g -Wall -Wextra -Werror -I"$source_dir/include" -pthread)

# build_with SUFFIX FLAGS...: the library, and the test programs, each named NAME-SUFFIX. Those of the fake kernel have no policy.c.
build_with() {
    local suffix=$1 source
    shift
    rm -rf objects
    mkdir objects
    for source in "$source_dir"/*.c "$here"/fake_policy.c; do
        "$CC" "${warnings[@]}" "$@" -c -o "objects/$(basename "$source" .c).o" "$source" || exit 1
    done
    mv objects/fake_policy.o objects/policy.o .
    link() { "$CC" "${warnings[@]}" "${flags[@]}" -o "$1-$suffix" "${@:2}" objects/*.o || exit 1; }
    local flags=("$@")
    link partition "$here/partition.c" policy.o
    link api "$here/api.c" policy.o
    link fuzz "$here/fuzz.c" policy.o
    link nodes "$here/nodes.c" fake_policy.o
    link policy "$here/policy.c"
    link policy_alone "$here/policy.c" -DNO_RUNTIME
    link fuzz_nodes "$here/fuzz.c" fake_policy.o
}

test_library() {
    WERROR=1 CC=$CC "$root/scripts/library" "$work/built" || exit 1
    equal "needs libc only" "libc.so.6" \
        "$(readelf -d built/libfirsttouch.so | sed -n 's/.*NEEDED.*\[\(.*\)\]/\1/p' | grep -v '^ld-linux' | paste -sd' ')"
    equal "docs/library-c.md has each function" "" "$(sed -n 's/@@.*//p' "$here/abi.txt" | grep -v '_$' | while read -r name; do grep -q "\`$name(" "$root/docs/library-c.md" || echo "$name"; done)"
    equal "soname" libfirsttouch.so.1 "$(readelf -d built/libfirsttouch.so | sed -n 's/.*SONAME.*\[\(.*\)\]/\1/p')"
    "$CC" -I"$source_dir/include" -o abi "$here/abi.c" && { ./abi; nm -D --defined-only built/libfirsttouch.so | awk '{ print $3 }' | sort; } >abi.txt
    equal "ABI: symbols, versions, sizes, offsets and values are those of tests/abi.txt" "" "$(diff "$here/abi.txt" abi.txt)"
    "$CC" "${warnings[@]}" -O2 -o api-shared "$here/api.c" -Lbuilt -lfirsttouch -Wl,-rpath,"$work/built" || exit 1
    as_expected "shared library: memory, errors, 1,000 threads, forks" ./api-shared 1000 20
    "$CC" "${warnings[@]}" -O2 -o api-static "$here/api.c" built/libfirsttouch.a || exit 1
    as_expected "static library" ./api-static 20 5
    "$CC" "${warnings[@]}" -O1 -o lost "$here/lost.c" built/libfirsttouch.a || exit 1
    as_expected "a block stays if it cannot grow" ./lost 1000000000
    as_expected "a block shrinks without memory" ./lost 70000
    if [ "$CC" = gcc ] && command -v clang >/dev/null; then
        WERROR=1 CC=clang "$root/scripts/library" "$work/by-clang" && clang "${warnings[@]}" -O1 -o api-clang "$here/api.c" by-clang/libfirsttouch.a
        as_expected "clang" ./api-clang 20 2
    fi
    awk '/^```c$/ { p = 1; next } /^```/ { p = 0 } p' "$root/docs/library-c.md" >example.c
    "$CC" "${warnings[@]}" -fopenmp -o example example.c built/libfirsttouch.a && OMP_PROC_BIND=true ./example
    equal "the example of docs/library-c.md" 0 $?
    echo '#include "firsttouch.h"
int main() { return ft_alloc(10, nullptr, 0) == nullptr; }' >header.cpp
    "${CXX:-g++}" -std=c++11 -Wall -Wextra -Wpedantic -Werror -I"$source_dir/include" -o header header.cpp built/libfirsttouch.a -pthread && ./header
    equal "the header in C++11" 0 $?
    echo '#include "firsttouch.h"
void *small(void) { static const ft_partition p = {.kind = FT_BLOCKED}; return ft_alloc(100, &p, 0); }
void *large(void) { return ft_alloc(FT_SMALL_BYTES, NULL, 0); }
void *invalid(void) { static const ft_partition p = {.kind = 99}; return ft_alloc(100, &p, 0); }' >small.c
    local compiler calls
    for compiler in "$CC" "${CXX:-g++} -x c++ -std=c++20"; do
        for flags in -O0 -O1 '-O2 -DFT_NO_INLINE'; do
            # shellcheck disable=SC2086 # several words
            $compiler $flags -I"$source_dir/include" -c -o small.o small.c || exit 1
            calls+="$(objdump -dr small.o | grep -c 'R_.*malloc'),"
        done
    done
    equal "a small block is malloc's, without a call of the library, where the caller is optimised" "0,1,0,0,1,0," "$calls"
}

# MPI and batch systems give a process a part of the machine by its mask.
test_masks() {
    if [ "$(nproc)" = 1 ]; then
        skip "the mask of a process with bound threads" "one CPU is all there is"
        return
    fi
    local one compiler cpus
    one=$(taskset -pc $$ | sed -E 's/.*: ([0-9]+).*/\1/')
    "$CC" "${warnings[@]}" -Wno-unknown-pragmas -o cpus "$here/cpus.c" built/libfirsttouch.a -ldl || exit 1
    for compiler in gcc clang; do
        if ! command -v $compiler >/dev/null || ! $compiler "${warnings[@]}" -fopenmp -o cpus-$compiler "$here/cpus.c" -Lbuilt -lfirsttouch -Wl,-rpath,"$work/built" -ldl; then
            skip "the mask of a process with bound threads: $compiler" "it is not installed, or has no OpenMP"
            continue
        fi
        cpus=$(for set in OMP_PROC_BIND=close OMP_PROC_BIND=false OMP_PLACES=threads; do taskset -c "$one" env $set ./cpus-$compiler; done | paste -sd" ")
        equal "the mask of a process with bound threads: $compiler" "1 1 1" "$cpus"
        equal "without a mask: $compiler" "$(nproc)" "$(OMP_PROC_BIND=close ./cpus-$compiler)"
        equal "places are a part of the mask: $compiler" 1 "$(OMP_PLACES="{$one}" ./cpus-$compiler)"
    done
    equal "the mask of a process without OpenMP, where the environment binds threads" 1 "$(OMP_PROC_BIND=close taskset -c "$one" ./cpus)"
    cpus=$(OMP_PROC_BIND=close taskset -c "$one" ./cpus libgomp.so.1)
    if [ "$cpus" -gt 1 ]; then pass "a hidden runtime: the cpuset"; else fail "a hidden runtime: the cpuset" "$cpus CPUs"; fi
}

test_refused() {
    local error
    gcc -O1 -w -o refused "$here/refused.c" || exit 1
    for error in EPERM ENOSYS; do
        as_expected "mbind, move_pages, get_mempolicy refused with $error" ./refused "$error" ./api-shared 20 5
        equal "$error: the reason is said" 1 "$(grep -c '^verify: refused: .*move_pages' out)"
    done
    as_expected "MADV_POPULATE_WRITE unknown, as before Linux 5.14" ./refused populate ./api-shared 20 5
    if [ "$(nproc)" = 1 ]; then
        skip "threads cannot be created" "one CPU: the library makes no thread"
        return
    fi
    "$CC" "${warnings[@]}" -O1 -DLARGE_TLS=4000000 -o api-tls "$here/api.c" built/libfirsttouch.a || exit 1
    as_expected "threads of a program with 4 MB of thread-local variables" ./api-tls alone
    equal "and they were created" 0 "$(grep -c '^doubt: .*threads could not be created' out)"
    as_expected "threads cannot be created: the caller does the work" ./refused threads ./api-static alone
    equal "and the reason is said" 1 "$(grep -c '^doubt: .*threads could not be created: Resource temporarily unavailable' out)"
}

test_valgrind() {
    if ! command -v valgrind >/dev/null; then
        skip "valgrind" "not installed"
        return
    fi
    "$CC" "${warnings[@]}" -O1 -DVALGRIND -o api-valgrind "$here/api.c" "$source_dir"/*.c || exit 1
    as_expected "valgrind: no errors, no leaks (without forks, whose children lose what other threads were about to register)" valgrind -q --error-exitcode=9 --child-silent-after-fork=yes --leak-check=full \
        --show-leak-kinds=definite,indirect --errors-for-leak-kinds=definite,indirect ./api-valgrind 4 0
}

test_library
test_masks
test_refused
build_with asan -O1 -fsanitize=address,undefined -fno-sanitize-recover=all
as_expected "arithmetic, against a count of bytes" ./partition-asan
as_expected "what the process may use: masks, places, cpusets, policies" ./policy-asan
as_expected "the same without an OpenMP runtime in the program" ./policy_alone-asan
as_expected "2 nodes, and other machines" ./nodes-asan "$machines/guest-2-nodes" "$machines"/guest-{holes,memoryless,cpuset,offline-cpus} /nonexistent/machine
equal "machines are read" \
    "guest-2-nodes: nodes 0 1 of 2, CPUs 0:0 1:0 2:1 3:1;guest-holes: nodes 0 2 of 2, CPUs 0:0 2:0;guest-memoryless: nodes 0 2 of 2, CPUs 0:0 1:0 2:0 3:0 4:2 5:2;guest-cpuset: nodes 2 of 3, CPUs 0:2 1:2 2:2 3:2 4:2 5:2;guest-offline-cpus: nodes 0 1 of 2, CPUs 0:0 2:0 3:0;machine: nodes 0 of 1, CPUs 0:0" \
    "$(head -6 out | paste -sd';')"
FAKE_GUESS=1 as_expected "4 nodes, one without CPUs; CPUs that are a guess" ./nodes-asan "$machines/guest-4-nodes-memory-only"
as_expected "ASan, UBSan: memory, errors, threads, forks" ./api-asan 50 5
as_expected "random arguments: 1 node" ./fuzz-asan "${FUZZ_RUNS:-1000}"
FAKE_ROOT=$machines/guest-2-nodes as_expected "random arguments: 2 nodes" ./fuzz_nodes-asan "${FUZZ_RUNS:-1000}"
"$CC" "${warnings[@]}" -O1 -fsanitize=thread -o api-tsan "$here/api.c" "$source_dir"/*.c || exit 1
as_expected "TSan: threads, forks" ./api-tsan 30 2
test_valgrind
[ "$skipped" = 0 ] || echo "$skipped skipped"
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
