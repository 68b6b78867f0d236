#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 OR MIT
#
# run.sh [PART...]: tests the interfaces of libfirsttouch for C++, Fortran, Python and Rust, its packages, and the examples of
# docs/library.md and docs/library-c.md. The programs stay in target/bindings, where in-guest.sh runs them again in a guest with several nodes.
# A tool that is missing skips what needs it; with FIRSTTOUCH_NO_SKIP=1 that is a failure.
#   parts: cxx fortran python rust (rust_tests is a part of it) install cmake pip examples conan recipes
set -u
root=$(cd "$(dirname "$0")/../.." && pwd)
tests=$root/bindings/tests
target=$(realpath -m "${CARGO_TARGET_DIR:-$root/target}")
work=$target/bindings
prefix=$work/prefix
mkdir -p "$work"
cd "$work" || exit 1
unset LD_PRELOAD
export OMP_NUM_THREADS=4 OMP_PROC_BIND=close OMP_WAIT_POLICY=passive PYTHONDONTWRITEBYTECODE=1
passed=0 failed=0 skipped=0

pass() { passed=$((passed + 1)); printf 'ok    %s\n' "$1"; }
fail() { failed=$((failed + 1)); printf 'FAIL  %s%s\n' "$1" "${2:+: $2}"; }
skip() { # NAME REASON
    skipped=$((skipped + 1))
    printf 'SKIPPED bindings %s: %s\n' "$1" "$2"
}
# try NAME COMMAND...: the command succeeds. Its output is shown if it does not.
try() {
    local name=$1
    shift
    if "$@" >output 2>&1; then
        pass "$name"
    else
        fail "$name" "status $?"
        sed 's/^/      /' output | tail -40
        return 1
    fi
}
# suite NAME COMMAND...: a program that prints a line for each of its tests, "ok" or "FAIL".
suite() {
    local name=$1 status=0
    shift
    "$@" >output 2>&1 || status=$?
    passed=$((passed + $(grep -c '^ok ' output)))
    failed=$((failed + $(grep -c '^FAIL ' output)))
    grep -E '^(FAIL|note) ' output
    if [ $status = 0 ]; then
        printf 'ok    %s: %d tests\n' "$name" "$(grep -c '^ok ' output)"
    else
        fail "$name" "status $status"
        grep -vE '^(ok|FAIL|note) ' output | tail -20
    fi
}
need() { # NAME TOOL...: whether the tools are there
    local name=$1 tool
    shift
    for tool in "$@"; do
        if ! command -v "$tool" >/dev/null; then
            skip "$name" "$tool is not installed (\`make deps\`)"
            return 1
        fi
    done
}
# The system's Python: it has Debian's NumPy and pytest.
python=/usr/bin/python3
need_python() {
    if ! "$python" -c 'import setuptools, numpy, wheel, pip' 2>/dev/null; then
        skip "$1" "$python has no NumPy, setuptools, wheel or pip (\`make deps\`)"
        return 1
    fi
}

link=("-L$prefix/lib" -lfirsttouch "-Wl,-rpath,$prefix/lib")

part_install() {
    try "library: compiles" make -s -C "$root" CARGO_TARGET_DIR="$target" library || return
    rm -rf "$prefix"
    try "library: installs" "$root/scripts/install-library" install "$prefix" "$prefix"
    try "library: exports only what firsttouch.h declares" exports
    gcc -Wall -Wextra -Werror -I"$prefix/include" "$root/packaging/conan/test_package/consumer.c" \
        -o consumer "$prefix/lib/libfirsttouch.a" -pthread && try "library: static" ./consumer
    gcc -Wall -Wextra -Werror -fopenmp "-I$prefix/include" "$tests/masks.c" -o masks "${link[@]}" &&
        try "library: CPUs and nodes of this process" masks
    rm -rf removed && cp -a "$prefix" removed && "$root/scripts/install-library" remove "$PWD/removed"
    try "library: uninstalls" test -z "$(find removed ! -type d)"
    if need "pkg-config" pkg-config; then
        # shellcheck disable=SC2046 # words
        try "pkg-config: compiles" gcc $(PKG_CONFIG_PATH=$prefix/lib/pkgconfig pkg-config --cflags firsttouch) \
            "$root/packaging/conan/test_package/consumer.c" -o consumer_pc \
            $(PKG_CONFIG_PATH=$prefix/lib/pkgconfig pkg-config --libs firsttouch) "-Wl,-rpath,$prefix/lib"
        try "pkg-config: runs" ./consumer_pc
        try "pkg-config: has the header's version" test \
            "$(PKG_CONFIG_PATH=$prefix/lib/pkgconfig pkg-config --modversion firsttouch)" = \
            "$(./consumer_pc | sed -nE 's/libfirsttouch ([0-9.]+):.*/\1/p')"
    fi
}
# On one node the numbers say little: in-guest.sh asks for them on several. (nproc obeys OpenMP's variables.)
masks() { [ "$(./masks | sed 's/.*://' | wc -w)" = "$(env -u OMP_NUM_THREADS nproc)" ]; }
exports() {
    local declared exported
    declared=$(gcc -E -P "$prefix/include/firsttouch.h" | grep -oE 'visibility\("default"\)\)\)[^;]*' | grep -oE 'ft_[a-z_]+\(' | tr -d '(' | sort)
    exported=$(nm -D --defined-only "$prefix/lib/libfirsttouch.so" | awk '$2 == "T" { sub(/@.*/, "", $3); print $3 }' | sort)
    diff <(echo "$declared") <(echo "$exported")
}

warnings=(-Wall -Wextra -Werror)
# g++ compiles the header once for all programs. Optimised a little, because the programs run in emulated guests too.
cxx=(-std=c++20 -O1 -fopenmp)

mdspan=()
if ! echo '#include <mdspan>' | g++ -std=c++2b -E -x c++ - >/dev/null 2>&1; then mdspan=("-I$tests/mdspan"); fi

part_cxx() {
    local compiler
    rm -rf pch && mkdir pch
    try "C++: the header alone" g++ "${cxx[@]}" "-I$prefix/include" -x c++-header "$prefix/include/firsttouch.hpp" -o pch/firsttouch.hpp.gch
    for compiler in g++ clang++; do
        need "C++ with $compiler" $compiler || continue
        if ! echo 'int main() {}' | $compiler -fopenmp -x c++ - -o openmp 2>/dev/null; then
            skip "C++ with $compiler" "$compiler has no OpenMP (\`make deps\`)"
            continue
        fi
        try "C++: compiles with $compiler" $compiler "${cxx[@]}" "${warnings[@]}" -Wconversion -Ipch "-I$prefix/include" \
            -o "cxx_$compiler" "$tests/cxx.cpp" "${link[@]}" && suite "C++ with $compiler" ./cxx_$compiler
        # For guests; optimised, so that `profile` sees the program's own accesses.
        try "C++: compiles placed with $compiler" $compiler -std=c++20 -O2 -g -fopenmp "${warnings[@]}" -Wconversion "-I$prefix/include" \
            -o "placed_$compiler" "$tests/placed.cpp" "${link[@]}" && suite "placed with $compiler" "./placed_$compiler"
        # The last -std counts. The compilers of Debian 12 have no <mdspan>: a small one of the tests stands in.
        try "C++: compiles with $compiler and <mdspan>" $compiler "${cxx[@]}" -std=c++2b "${warnings[@]}" "${mdspan[@]}" "-I$prefix/include" \
            -o "mdspan_$compiler" "$tests/mdspan.cpp" "${link[@]}" && suite "C++ with $compiler and <mdspan>" "./mdspan_$compiler"
    done
}

part_fortran() {
    try "Fortran: the module is what generate makes" "$root/bindings/fortran/generate" --check
    need Fortran gfortran || return
    gcc -c "$tests/move_pages.c" -o move_pages.o
    # The default integer of 64 bits changes every interface.
    try "Fortran: compiles" gfortran -std=f2008 -O1 -g "${warnings[@]}" -Wno-compare-reals -fopenmp "$prefix/share/firsttouch/fortran/firsttouch.f90" \
        "$tests/fortran.f90" move_pages.o -o fortran "${link[@]}" && suite Fortran ./fortran
    try "Fortran: compiles placed" gfortran -std=f2008 -O2 -g "${warnings[@]}" -Wno-compare-reals -fopenmp \
        "$prefix/share/firsttouch/fortran/firsttouch.f90" "$tests/placed.f90" -o placed_gfortran "${link[@]}" && suite "placed with gfortran" ./placed_gfortran
}

part_python() {
    need_python Python || return
    local runner=(-m unittest -q test_python)
    if "$python" -c 'import pytest' 2>/dev/null; then runner=(-m pytest -q -p no:cacheprovider "$tests/test_python.py"); fi
    FIRSTTOUCH_LIBRARY=$prefix/lib/libfirsttouch.so PYTHONPATH=$root/bindings/python:$tests \
        try "Python: tests (${runner[1]})" "$python" "${runner[@]}"
}

part_pip() {
    need_python "the wheel" || return
    rm -rf wheel site
    # Without isolation: setuptools is installed, and pip would fetch it again.
    try "wheel: builds" pip_wheel
    try "wheel: carries the library, for any Python 3" ls wheel/firsttouch-*-py3-none-linux_*.whl
    try "wheel: installs" "$python" -m pip install -q --no-deps --no-index --target site wheel/*.whl
    PYTHONPATH=site try "wheel: finds its own library" "$python" -c 'import firsttouch, pathlib
assert firsttouch.__version__ == firsttouch.library_version, firsttouch.library_version
assert "site/firsttouch/libfirsttouch.so" in pathlib.Path("/proc/self/maps").read_text()
array = firsttouch.empty(100_000)
array[:] = 1
print(firsttouch.report(array, name="array"))'
    PYTHONPATH=site suite "placed with the wheel" "$python" "$tests/placed.py"
}
# Of a copy, so that no build folders stay in the source, and without those of others, whose files pip would take for new ones.
pip_wheel() {
    rm -rf python && cp -rL "$root/bindings/python" python && rm -rf python/build python/*.egg-info &&
        CFLAGS=-O0 "$python" -m pip wheel -q --no-deps --no-build-isolation --no-index -w wheel ./python
}

# In release mode and the repository's target folder, where `cc` has been compiled for the other workspace.
cargo_options=(--quiet --release --locked --manifest-path "$root/bindings/rust/Cargo.toml" --target-dir "$target")
# Only an example needs rayon: optimising it would take longer than all tests of the crate.
for crate in rayon rayon-core crossbeam-deque crossbeam-epoch crossbeam-utils; do
    cargo_options+=(--config "profile.release.package.$crate.opt-level=0")
done

part_rust() {
    need Rust cargo || return
    try "Rust: clippy" cargo clippy --quiet --locked --manifest-path "$root/bindings/rust/Cargo.toml" --target-dir "$target" --all-targets -- -D warnings
    part_rust_tests
    try "Rust: example rayon" cargo run "${cargo_options[@]}" --example rayon
    try "Rust: the packed crate has all it needs" crate_is_whole
}
part_rust_tests() {
    need "Rust: tests" cargo || return
    try "Rust: tests" rust_tests
}
# Keeps the test programs, for guests.
rust_tests() {
    cargo test "${cargo_options[@]}" --tests --no-run --message-format=json >messages && keep alloc rust_alloc && keep placed placed_rust &&
        ./rust_alloc && ./placed_rust
}
keep() { cp "$(sed -nE 's/.*"name":"'"$1"'".*"executable":"([^"]+)".*/\1/p' messages | tail -1)" "$2"; }
crate_is_whole() {
    local listed file
    listed=$(cargo package --list --allow-dirty --offline --manifest-path "$root/bindings/rust/Cargo.toml") || return
    for file in build.rs native/include/firsttouch.h $(cd "$root/native/library" && printf 'native/%s ' *.c *.h); do
        if ! grep -qx "$file" <<<"$listed"; then
            echo "$file is not in the packed crate"
            return 1
        fi
    done
}

part_cmake() {
    need CMake cmake || return
    rm -rf cmake_build cmake_prefix
    try "CMake: builds the library alone" cmake_library
    try "CMake: installs the same files as make install" diff <(cd "$prefix" && find . ! -type d ! -path './share/licenses/*' | sort) \
        <(cd cmake_prefix && find . ! -type d ! -path './share/licenses/*' | sort)
    local file
    for file in lib/cmake/firsttouch/firsttouchConfig.cmake lib/cmake/firsttouch/firsttouchConfigVersion.cmake; do
        try "CMake: the same $(basename $file)" cmp "$prefix/$file" "cmake_prefix/$file"
    done
    need "CMake consumers" gfortran || return
    # Of the moved tree: packages are relocatable.
    rm -rf moved consumers && cp -a cmake_prefix moved
    try "CMake: find_package in C, C++ and Fortran" cmake_consumers
    local consumer
    for consumer in c_shared c_static cxx fortran; do try "CMake: consumer $consumer runs" consumers/$consumer; done
    try "CMake: a version that is too new is refused" refused
}
cmake_library() {
    cmake -S "$root/packaging" -B cmake_build -DCMAKE_INSTALL_PREFIX="$work/cmake_prefix" -DCMAKE_INSTALL_LIBDIR=lib -DCMAKE_BUILD_TYPE=Debug >cmake.log &&
        cmake --build cmake_build -j2 && cmake --install cmake_build
}
cmake_consumers() {
    cmake -S "$tests/consumers" -B consumers -DCMAKE_PREFIX_PATH="$work/moved" &&
        cmake --build consumers -j2
}
refused() { ! cmake -S "$tests/consumers" -B consumers -DWANTED=9.0 -Dfirsttouch_DIR=NOTFOUND; }

part_examples() {
    rm -rf examples
    local name
    if ! "$tests/examples" examples "$root"/docs/library{,-c}.md >names; then
        fail "the pages of the library have examples"
        return
    fi
    local extension
    while read -r name; do
        extension=${name##*.}
        case $name in
        ctest/*) continue ;;
        test_placement.py) example_pytest ;;
        *.c)
            try "example $name: compiles" gcc -fopenmp "-I$prefix/include" "${warnings[@]}" "examples/$name" -o "example_${name%.*}_c" "${link[@]}"
            try "example $name" "./example_${name%.*}_c"
            ;;
        *.cpp)
            try "example $name: compiles" g++ "${cxx[@]}" -Ipch "-I$prefix/include" "${warnings[@]}" "examples/$name" -o "example_${name%.*}_cxx" "${link[@]}"
            try "example $name" "./example_${name%.*}_cxx"
            if grep -q __cpp_lib_mdspan "examples/$name"; then
                try "example $name with <mdspan>: compiles" g++ "${cxx[@]}" -std=c++2b "${mdspan[@]}" "-I$prefix/include" "${warnings[@]}" "examples/$name" -o example_mdspan "${link[@]}"
                try "example $name with <mdspan>" ./example_mdspan
            fi
            ;;
        *.f90)
            need "example $name" gfortran || continue
            try "example $name: compiles" gfortran -fopenmp "$prefix/share/firsttouch/fortran/firsttouch.f90" "examples/$name" \
                -o "example_${name%.*}_f90" "${link[@]}"
            try "example $name" "./example_${name%.*}_f90"
            ;;
        *.py) need_python "example $name" && PYTHONPATH=site try "example $name" "$python" "examples/$name" ;;
        rust | rust_place) example_rust "$name" ;;
        *) fail "example $name" "nothing runs files of the kind .$extension" ;;
        esac
    done <names
    need "example ctest" ctest || return
    try "example ctest: the test is skipped or passes, as the number of nodes says" example_ctest
}
example_ctest() {
    cmake -S examples/ctest -B examples/ctest_build -DCMAKE_PREFIX_PATH="$prefix" >/dev/null && cmake --build examples/ctest_build &&
        (cd examples/ctest_build && ctest) >ctest.log && cat ctest.log &&
        if [ "$(nodes)" = 1 ]; then grep -q 'Skipped' ctest.log; else grep -q ' Passed ' ctest.log; fi
}
nodes() { find /sys/devices/system/node -maxdepth 1 -name 'node[0-9]*' 2>/dev/null | wc -l | sed 's/^0$/1/'; }
example_pytest() {
    need_python "example pytest" || return
    if ! "$python" -c 'import pytest' 2>/dev/null; then
        skip "example pytest" "$python has no pytest (\`make deps\`)"
        return
    fi
    try "example test_placement.py: the test is skipped or passes, as the number of nodes says" pytest_example
}
pytest_example() {
    PYTHONPATH=site "$python" -m pytest -p no:cacheprovider examples/test_placement.py >pytest.log
    cat pytest.log
    if [ "$(nodes)" = 1 ]; then grep -q '1 skipped' pytest.log; else grep -q '1 passed' pytest.log; fi
}
example_rust() {
    need "example $1" cargo || return
    mkdir -p example_rust/src && cp "examples/$1" example_rust/src/main.rs
    printf '[package]\nname = "example"\nversion = "0.0.0"\nedition = "2024"\n[dependencies]\nfirsttouch-alloc = { path = "%s" }\n[workspace]\n[profile.release]\nlto = "off"\noverflow-checks = true\n' \
        "$root/bindings/rust" >example_rust/Cargo.toml
    cp "$root/bindings/rust/Cargo.lock" example_rust/
    try "example $1: compiles as a program that depends on the crate" cargo build --quiet --release --offline \
        --manifest-path example_rust/Cargo.toml --target-dir "$target"
    try "example $1" "$target/release/example"
}

# Conan itself builds the package and the recipe's test_package: a program that links what Conan has installed.
part_conan() {
    need Conan cmake || return
    local conan linkage
    if ! "$root/scripts/conan" >conan.log 2>&1; then
        skip Conan "$(tail -n 1 conan.log)"
        return
    fi
    conan=$("$root/scripts/conan" path)
    rm -rf conan && mkdir conan
    try "Conan: finds the compiler" env CONAN_HOME="$work/conan/home" "$conan" profile detect
    for linkage in shared static; do
        try "Conan: creates the package ($linkage), and a program links it and runs" conan_creates || continue
        try "Conan: the package ($linkage) has the files of make install" conan_files
    done
}
# Without the servers of others, and without build folders in the source.
conan_creates() {
    rm -rf conan/home/p
    CONAN_HOME=$work/conan/home "$conan" create "$root/packaging/conan" --no-remote -o "firsttouch/*:shared=$([ "$linkage" = shared ] && echo True || echo False)" \
        -c "tools.cmake.cmake_layout:test_folder=$work/conan/consumer" -c tools.cmake.cmaketoolchain:user_presets= &&
        grep -q 'libfirsttouch.*pages present' output
}
conan_files() {
    local packages=(conan/home/p/b/*/p) other='*.so*'
    if [ "$linkage" = shared ]; then other='*.a'; fi
    [ ${#packages[@]} = 1 ] && diff <(cd "$prefix" && find . ! -type d ! -path './share/licenses/*' ! -name "$other" | sort) \
        <(cd "${packages[0]}" && find . ! -type d ! -path './share/licenses/*' ! -name 'conan*.txt' | sort) &&
        test -s "${packages[0]}/share/licenses/firsttouch/LICENSE-APACHE" -a -s "${packages[0]}/share/licenses/firsttouch/LICENSE-MIT"
}

# Spack and vcpkg come from GitHub only: their recipes run here against stand-ins for what they call, and were run by the tools by hand (docs/library.md).
part_recipes() {
    try "recipes: every package has the version of firsttouch.h" "$python" "$tests/recipes.py" "$root"
    need "recipes of Spack and vcpkg" cmake pkg-config || return
    try "Spack: the recipe builds the library, shared and static, and a program links each" "$python" "$tests/spack.py" "$root" "$work/spack"
    local linkage
    for linkage in dynamic static; do
        try "vcpkg: the port builds the library ($linkage), and a program links it as the port says" \
            cmake "-DROOT=$root" "-DWORK=$work/vcpkg" "-DVCPKG_LIBRARY_LINKAGE=$linkage" -P "$tests/vcpkg.cmake"
    done
}

parts=("$@")
if [ ${#parts[@]} = 0 ]; then parts=(install cxx fortran python pip rust cmake examples conan recipes); fi
for part in "${parts[@]}"; do
    TIMEFORMAT="      ($part: %1R s, %1U + %1S s of CPU)"
    time "part_$part"
done
echo "$passed passed, $failed failed, $skipped skipped"
if [ "${FIRSTTOUCH_NO_SKIP-}" = 1 ] && [ $skipped != 0 ]; then exit 1; fi
[ $failed = 0 ]
