#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 OR MIT
#
# in-guest.sh [NAME...]: runs what run.sh has built (in target/bindings), or what of it has these names, on a machine with several
# nodes, mostly a guest:
#     bindings/tests/run.sh && scripts/test-guests two_nodes --run "$PWD/bindings/tests/in-guest.sh"
# There verify can say "not here": the same tests check that each page is on its thread's node, and that `expect` judges instead of
# skipping. Prints lines as libtest does. Options are ignored (test-guests gives some).
set -u
root=$(cd "$(dirname "$0")/../.." && pwd)
cd "$(realpath "${CARGO_TARGET_DIR:-$root/target}")/bindings" || exit 1
# NumPy starts sooner without threads of its own.
export OMP_NUM_THREADS=4 OMP_PROC_BIND=close OMP_WAIT_POLICY=passive OPENBLAS_NUM_THREADS=1 PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=$PWD/site:$root/bindings/tests
passed=0 failed=0 ran=
wanted=()
for word in "$@"; do if [[ $word != -* ]]; then wanted+=("$word"); fi; done
output=$(mktemp)
trap 'rm -f "$output"' EXIT

# try NAME COMMAND...: the command succeeds, and says neither FAIL nor that it could not judge.
try() {
    local name=$1 status=0
    shift
    if [ ${#wanted[@]} != 0 ] && [[ " ${wanted[*]} " != *" $name "* ]]; then return; fi
    ran+=$name$'\n'
    "$@" >"$output" 2>&1 || status=$?
    if [ $status = 0 ] && ! grep -qE '^FAIL |could not fail|[1-9][0-9]* skipped|not judged' "$output"; then
        passed=$((passed + 1))
        echo "test bindings::$name ... ok"
    else
        failed=$((failed + 1))
        echo "test bindings::$name ... FAILED"
        echo "status $status"
        grep -vE '^ok ' "$output" | tail -30
    fi
}

# The mask counts, also if OpenMP binds threads, and so does a policy that binds memory. For two nodes of two CPUs each.
masks() {
    local failed=0 expected command found
    while IFS='|' read -r expected command; do
        # shellcheck disable=SC2086 # several words
        found=$(env $command ./masks)
        if [ "$found" != "$expected" ]; then
            echo "$command: expected '$expected', found '$found'"
            failed=1
        fi
    done <<'END'
0 1: 1 1|OMP_PROC_BIND=close taskset -c 2-3
0 1: 0 1|OMP_PLACES={0},{3}
1: 1 1 1 1|OMP_PROC_BIND=close numactl --membind=1
0 1: 0 0 1 1|numactl --preferred=1
END
    return $failed
}

nodes=$(find /sys/devices/system/node -maxdepth 1 -name 'node[0-9]*' | wc -l)
if [ "$nodes" -lt 2 ]; then
    echo "in-guest.sh: this machine has one node: run.sh is the test for it" >&2
    exit 2
fi
if [ "$nodes" = 2 ]; then try masks masks; fi
for program in cxx_g++ cxx_clang++ fortran placed_g++ placed_clang++ placed_gfortran; do try "$program" ./$program; done
try rust ./rust_alloc --test-threads=1
try python /usr/bin/python3 -m unittest -q test_python
try placed_rust ./placed_rust 0 0 1 2 3
try placed_python /usr/bin/python3 "$root/bindings/tests/placed.py" 0 0 1 2 3
for program in example_*_c example_*_cxx example_*_f90; do try "$program" "./$program"; done
for program in examples/threads.py examples/read.py; do try "${program#*/}" /usr/bin/python3 "$program"; done
try ctest examples/ctest_build/placement
try pytest /usr/bin/python3 -m pytest -q -p no:cacheprovider examples/test_placement.py

for name in ${wanted[@]+"${wanted[@]}"}; do
    if ! grep -qx "$name" <<<"$ran"; then
        failed=$((failed + 1))
        echo "test bindings::$name ... FAILED"
        echo "there is no program of this name"
    fi
done
if [ $failed = 0 ]; then word=ok; else word=FAILED; fi
echo "test result: $word. $passed passed; $failed failed"
[ $failed = 0 ]
