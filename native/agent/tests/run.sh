#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 OR MIT
#
# Tests the agent: builds it (or takes the library named by AGENT) and runs small programs with and without it.
#   CC=clang run.sh        another compiler            run.sh --cost        only the cost benchmark
#   AGENT=/path/lib.so     a library already built     KEEP=1               keep the work directory
set -u
here=$(cd "$(dirname "$0")" && pwd)
source_dir=$(dirname "$here")
CC=${CC:-gcc}
work=$(mktemp -d "${TMPDIR:-/tmp}/firsttouch-agent.XXXXXX")
[ -n "${KEEP:-}" ] && echo "work directory: $work"
trap '[ -n "${KEEP:-}" ] || rm -rf "$work"' EXIT
cd "$work" || exit 1
unset LD_PRELOAD FIRSTTOUCH_AGENT
PATH=$work:$PATH
passed=0
failed=0
skipped=0

pass() { passed=$((passed + 1)); printf 'ok    %s\n' "$1"; }
fail() { failed=$((failed + 1)); printf 'FAIL  %s%s\n' "$1" "${2:+: $2}"; }
skip() { skipped=$((skipped + 1)); printf 'skip  %s: %s\n' "$1" "$2"; }
equal() { # NAME EXPECTED ACTUAL
    if [ "$2" = "$3" ]; then pass "$1"; else fail "$1" "expected '$2', got '$3'"; fi
}
more_than() { # NAME LIMIT ACTUAL
    if [ "$3" -gt "$2" ]; then pass "$1"; else fail "$1" "expected more than $2, got '$3'"; fi
}
count() { grep -c -E -- "$1" "${2:-out.rec}"; }              # records that match
summary() { sed -n "s/^SUMMARY.* $1 \([0-9]*\).*/\1/p" "${2:-out.rec}"; } # lost, attached, unread
under() { ./reader -m 65536 "$agent" out.rec "$@"; }
follow=
followed() { follow=-f same "$@"; } # as `same`, with FOLLOW
wake=
wakeful() { wake=65536 same "$@"; } # as `same`, with a wake at each allocation of 64 KiB that finds the reader waiting
sample=
small=
guard=
shift_us=
shifted() { shift_us=700 sample=1000 same "$@"; } # as `sampled`, and each sample sleeps
guarded() { guard=yes sample=1000 same "$@"; } # as `sampled`, with debug exceptions without a cause held back
sampled() { sample=1000 same "$@"; } # as `same`, with samples each millisecond of CPU time
same() { # NAME COMMAND...: same output and status with the agent as without
    local name=$1 bare agented
    shift
    { timeout 120 "$@" >bare.out 2>bare.err </dev/null; } 2>/dev/null
    bare=$?
    { timeout 120 ./reader ${follow:+"$follow"} ${sample:+-s "$sample"} ${wake:+-w "$wake"} ${small:+-b "$small"} ${shift_us:+-S "$shift_us"} ${guard:+-g} "$agent" out.rec "$@" >agent.out 2>agent.err </dev/null; } 2>/dev/null
    agented=$?
    if [ "$bare" != "$agented" ]; then
        fail "$name" "status $bare, with the agent $agented"
    elif ! cmp -s bare.out agent.out; then
        fail "$name" "stdout differs: $(diff bare.out agent.out | head -3)"
    elif ! cmp -s bare.err agent.err; then
        fail "$name" "stderr differs: $(diff bare.err agent.err | head -3)"
    elif [ "$(summary attached)" -lt 1 ]; then
        fail "$name" "the agent did not attach"
    else
        pass "$name"
    fi
}

build() {
    agent=${AGENT:-$work/libfirsttouch_agent.so}
    if [ -z "${AGENT:-}" ]; then
        "$CC" -std=c11 -O2 -g -fPIC -shared -fvisibility=hidden -ftls-model=initial-exec \
            -fasynchronous-unwind-tables -fno-strict-aliasing -Wall -Wextra -Werror -I"$source_dir/../include" \
            -o "$agent" "$source_dir"/*.c -static-libgcc -Wl,--exclude-libs,ALL -Wl,-z,now -Wl,-z,relro \
            -Wl,-z,initfirst -Wl,-soname,libfirsttouch_agent.so || exit 1
    fi
    gcc -O2 -g -Wall -Wextra -I"$source_dir/../include" -o reader "$here/reader.c" -lpthread || exit 1
    gcc -O2 -Wall -Wextra -o cost "$here/cost.c" || exit 1
}

build_programs() {
    local program
    # No PIE, so that addr2line needs no load address; -O1 keeps the functions that the tests name.
    for program in ticks kinds presents errnos execs forks threads flood loads signals coroutines bounds remaps \
        cramped spawns clock wakes smalls traps; do
        gcc -O1 -g -no-pie -fno-optimize-sibling-calls -w -o "$program" "$here/programs/$program.c" -ldl -lpthread ||
            exit 1
    done
    gcc -O1 -g -shared -fPIC -Wall -Wextra -o slow_reads.so "$here/programs/slow_reads.c" -ldl || exit 1
    # Programs of the end-to-end tests.
    for program in sandbox bad_exec; do
        gcc -O1 -g -no-pie -w -o "$program" "$here/../../../tests/programs/noharm/$program.c" -lpthread || exit 1
    done
    gcc -O1 -g -no-pie -fno-optimize-sibling-calls -w -o paths "$here/programs/paths.c" -lpthread || exit 1
    gcc -O0 -g -no-pie -w -o paths_O0 "$here/programs/paths.c" -lpthread || exit 1
    gcc -O2 -g -no-pie -fno-optimize-sibling-calls -w -fomit-frame-pointer -o paths_O2 "$here/programs/paths.c" \
        -lpthread || exit 1
    g++ -O1 -g -no-pie -fno-optimize-sibling-calls -w -o exceptions "$here/programs/exceptions.cpp" -lpthread || exit 1
    gcc -O1 -g -fPIC -shared -w -o libearly_lib.so "$here/programs/early_lib.c" || exit 1
    gcc -O1 -g -no-pie -w -o early "$here/programs/early.c" -L. -learly_lib -Wl,-rpath,"$work" || exit 1
    gcc -O1 -fPIC -shared -w -fno-builtin -o liballocator.so "$here/programs/allocator.c" || exit 1
    gcc -O1 -g -w -static -o execs_static "$here/programs/execs.c" || exit 1
    echo 'int nothing;' | gcc -shared -fPIC -x c -o libharmless.so - || exit 1
}

# The frames of the records as function names: "ID function function ..." for each stack of the file $1 in program $2.
resolve_stacks() {
    awk '$1 == "STACK" { for (i = 5; i <= NF; i++) if (length($i) <= 6) print $i }' "$1" | sort -u >ips
    # A return address may lie in the next line, or function: look up the call before it.
    while read -r ip; do printf '%x\n' $((0x$ip - 1)); done <ips | addr2line -f -e "$2" | paste - - |
        cut -f1 >names
    paste -d' ' ips names >ip_names
    awk 'NR == FNR { name[$1] = $2; next }
         $1 == "STACK" { line = $3; for (i = 5; i <= NF; i++) line = line " " (($i in name) ? name[$i] : "?"); print line }' \
        ip_names "$1" >stacks
}

test_binary() {
    equal "needs libc only" "libc.so.6" \
        "$(readelf -d "$agent" | sed -n 's/.*NEEDED.*\[\(.*\)\]/\1/p' | grep -v '^ld-linux' | paste -sd' ')"
    equal "exports nothing of the unwinder" 0 "$(nm -D --defined-only "$agent" | grep -c -i unwind)"
    equal "thread-local data is small" yes \
        "$(readelf -lW "$agent" | awk '$1 == "TLS" { print length($6) == 8 && $6 <= "0x000080" ? "yes" : $6 }')"
}

test_kinds() {
    ./reader "$agent" out.rec ./kinds >expected
    equal "kinds: status" 0 $?
    resolve_stacks out.rec kinds
    awk 'FILENAME == "stacks" { top[$1] = $2; next }
         FILENAME == "out.rec" {
             if ($1 == "ALLOC" || $1 == "MAP" || $1 == "POPULATE") { seen[$1 " " $6 " " $5 " " top[$7] " " $4]++ }
             else if ($1 == "FREE" || $1 == "UNMAP" || $1 == "ADVISE_FREE") { seen[$1 " - " $5 " - " $4]++ }
             next }
         { size = $3; if ($1 != "ALLOC" && $1 != "MAP" && $1 != "POPULATE") size = int((size + 4095) / 4096) * 4096
           key = $1 " " $2 " " size " " $4 " " $5
           if ($4 == "by_malloc_below") { if (key in seen) print "superfluous: " $0 }
           else if (!(key in seen)) print "missing: " $0 }' stacks out.rec expected >wrong
    equal "kinds: every kind, size and call site" "" "$(cat wrong)"
    equal "kinds: nothing lost" 0 "$(summary lost)"
    equal "kinds: times rise within the thread's entries" "" \
        "$(awk '$1 == "FREE" && $9 < last { print "FREE goes back" } $1 == "FREE" { last = $9 }' out.rec)"
    same "errno and results as without the agent" ./errnos
}

# What was present of a shared mapping: exact where each page is looked at, within 4 % where 32 parts of 64 pages are, and never "not known".
test_presents() {
    ./reader "$agent" out.rec ./presents >expected
    equal "presents: status" 0 $?
    awk 'FILENAME == "out.rec" { if ($1 == "MAP") aux[$5] = $8; next }
         { size = $1
           field = int(aux[size] / 256) % 16777216; share = (field - 1) / 10000; truth = $3 / $2; slack = $2 > 2048 ? 0.04 : 0.0001
           exact = $3 == 0 || $3 == $2
           if (field < 1 || share - truth > slack || truth - share > slack || (exact && share != truth) || $4 != "kept")
               print size ": " field " for " truth ", errno " $4 }' out.rec expected >wrong
    equal "presents: eight mappings" 8 "$(wc -l <expected)"
    equal "presents: the parts of shared mappings" "" "$(cat wrong)"
}

# A sampled block of s bytes stands for s / (1 - exp(-s / mean)) bytes: the sums must be the bytes that the program allocated.
test_small_blocks() {
    rm -f all.rec expected
    for _ in 1 2 3 4 5 6; do
        ./reader -b 8192 "$agent" out.rec ./smalls 200000 4 >>expected || echo "status $?" >>expected
        grep '^SMALL' out.rec >>all.rec
    done
    awk 'FILENAME == "all.rec" { if ($5 > 0) b[$6] += $5 / (1 - exp(-$5 / $8)); next } { bytes[$1] += $3 }
         END { for (name in bytes) if (b[name] < 0.93 * bytes[name] || b[name] > 1.07 * bytes[name])
               print name ": " b[name] " bytes, not " bytes[name] }' all.rec expected >wrong
    equal "small blocks: the sample estimates the bytes of each function" "malloc calloc realloc aligned $(cat wrong)" \
        "$(head -4 expected | cut -d' ' -f1 | paste -sd' ') "
    equal "small blocks: nothing lost" 0 "$(summary lost)"
    more_than "small blocks: the mean grows" 8192 "$(awk '$1 == "SMALL" { print $8 }' out.rec | sort -n | tail -1)"
    resolve_stacks out.rec smalls
    equal "small blocks: each has its call stack" "aligned by_aligned,calloc by_calloc,malloc by_malloc,realloc by_realloc" \
        "$(awk 'FILENAME == "stacks" { top[$1] = $2; next } $1 == "SMALL" && top[$7] ~ /^by_/ { print $6, top[$7] }' stacks out.rec |
            sort -u | paste -sd,)"
    ./reader "$agent" out.rec ./smalls 20000 2 >/dev/null
    equal "small blocks: none if they are not asked for" 0 "$(count '^SMALL')"
    small=2048 same "small blocks: execs of itself" "$work/execs" 0
    small=2048 followed "FOLLOW: small blocks: children" "$work/forks"
    small=2048 same "small blocks: handlers that map memory at 10 kHz" ./signals
    small=2048 same "small blocks: exceptions" ./exceptions
    small=2048 same "small blocks: coroutine stacks and longjmp" ./coroutines
    small=2048 same "small blocks: 1000 threads, ended in every way" ./threads
    small=64 same "small blocks: allocations in constructors" ./early
    local way
    for way in strict tsc thread fork; do
        small=16 same "small blocks: sandbox: $way" "$work/sandbox" $way
    done
}

# Times derived from the time-stamp counter equal those of the clock, within the time of one reading.
test_clock() {
    if [ "$(cat /sys/devices/system/clocksource/clocksource0/current_clocksource)" != tsc ]; then
        skip "times from the time-stamp counter" "the kernel's clock does not run by it"
        return
    fi
    ./reader -t -c 524288 "$agent" out.rec ./clock >expected
    awk 'FILENAME == "out.rec" { if ($1 == "ALLOC") time[$5] = $9; next }
         !($1 in time) { print "no record of " $1; next }
         time[$1] < $2 - 300 || time[$1] > $3 + 300 { print $1 ": " time[$1] " is not in " $2 " to " $3 }' \
        out.rec expected >wrong
    equal "clock: $(wc -l <expected) times within 300 ns of the call" "" "$(head -3 wrong)"
    equal "clock: times rise within a thread" "" \
        "$(awk '($1 == "ALLOC" || $1 == "FREE") { if ($9 < last[$3]) print "goes back: " $0; last[$3] = $9 }' out.rec | head -3)"
}

# Compares the recorded call paths of `paths` with those that the program prints.
check_paths() { # NAME PROGRAM COUNT THREADS
    ./reader "$agent" out.rec "./$2" "$3" "$4" >expected
    resolve_stacks out.rec "$2"
    awk 'FILENAME == "stacks" { line = ""; id = $1
             for (i = 2; i <= NF; i++) if ($i ~ /^[a-h]$/) line = line " " $i; path[id] = line; next }
         FILENAME == "out.rec" { if ($1 == "ALLOC") { stack[$5] = $7 } next }
         { size = $1; sub(/^[0-9]+/, "")
           if (!(size in stack)) print "no record of " size
           else if (path[stack[size]] != $0) print size " is" path[stack[size]] " not" $0 }' stacks out.rec expected >wrong
    equal "$1: $(wc -l <expected) paths, $(count '^STACK') stacks" "" "$(head -3 wrong)"
}

test_stacks() {
    local program
    for program in paths paths_O0 paths_O2; do
        check_paths "$program, one thread" $program 20000 1
        check_paths "$program, short threads on reused stacks" $program 200 120
    done
    under ./bounds >/dev/null
    equal "stack ids are stable" 1200 "$(awk '$1 == "ALLOC" && $5 == 70000' out.rec | wc -l)"
    same "coroutine stacks and longjmp" ./coroutines
    more_than "coroutines are recorded" 5999 "$(awk '$1 == "ALLOC" && $5 == 72000' out.rec | wc -l)"
    same "exceptions" ./exceptions
    resolve_stacks out.rec exceptions
    awk 'FILENAME == "stacks" { second[$1] = $3; next } $1 == "ALLOC" && $5 == 123457 { print second[$7] }' stacks \
        out.rec >got
    equal "operator new is seen below its caller" _ZL6by_newv "$(cat got)"
}

test_environment() {
    same "env" env
    same "env -0" env -0
    LD_PRELOAD=$work/libharmless.so same "env with a preload of the user's" env
    LD_PRELOAD="$work/libharmless.so:$work/libearly_lib.so" same "env with two" env
    LD_PRELOAD="" same "env with an empty LD_PRELOAD" env
    same "env -i" env -i A=1 env
    same "env by sh" sh -c 'X=1 exec env'
    same "export -p" bash -c 'export -p'
    equal "our entry last" "LD_PRELOAD=$work/libharmless.so" \
        "$(FIRSTTOUCH_AGENT=/nonexistent LD_PRELOAD="$work/libharmless.so:$agent" env | grep -a -E 'PRELOAD|FIRSTTOUCH')"
    equal "no such ring" "" "$(FIRSTTOUCH_AGENT=/nonexistent LD_PRELOAD="$agent" env | grep -a -E 'PRELOAD|FIRSTTOUCH')"
    equal "a file that is no ring" "0" \
        "$(FIRSTTOUCH_AGENT=$work/cost LD_PRELOAD="$agent" sh -c "cmp cost $work/cost; echo \$?")"
    equal "another magic" "flood done" "$(./reader -r "$agent" out.rec ./flood 10)"
    equal "another magic: silent" 0 "$(summary attached)"
    followed "FOLLOW: env" env
    LD_PRELOAD="$work/libharmless.so" followed "FOLLOW: env with a preload of the user's" env
    LD_PRELOAD="" followed "FOLLOW: env with an empty LD_PRELOAD" env
}

test_exec() {
    same "execs of itself" "$work/execs" 0
    equal "all eleven images are recorded" "0 1 2 3 4 5 6 7 8 9 10" \
        "$(awk '$1 == "ALLOC" && $5 >= 100000 && $5 < 100020 { printf "%s%d", s, $5 - 100000; s = " " }' out.rec)"
    equal "all eleven attached" 11 "$(summary attached)"
    same "exec of a static program" "$work/execs" 100 "$work/execs_static" 50
    printf '#!/bin/sh\necho script "$@"; exec %s/execs 60\n' "$work" >script
    printf 'echo text "$@"; exec %s/execs 61\n' "$work" >text
    printf '#!%s/script again\n' "$work" >nested
    printf '#!%s/execs_static 62\n' "$work" >static_script
    chmod +x script text nested static_script
    same "exec of a script" "$work/execs" 100 "$work/script" 1
    equal "a script's last image is recorded" 1 "$(awk '$1 == "ALLOC" && $5 == 100060' out.rec | wc -l)"
    same "exec of a script by PATH" "$work/execs" 100 script 1
    same "exec of text, which sh runs" "$work/execs" 100 text 1
    equal "its last image is recorded" 1 "$(awk '$1 == "ALLOC" && $5 == 100061' out.rec | wc -l)"
    same "exec of a script of a script" "$work/execs" 100 nested 1
    equal "its last image, too" 1 "$(awk '$1 == "ALLOC" && $5 == 100060' out.rec | wc -l)"
    same "exec of a script of a static program" "$work/execs" 100 static_script
    same "exec of nothing" "$work/execs" 100 no-such-program
    same "exec of a directory" "$work/execs" 100 /etc
    LD_PRELOAD=$work/libharmless.so same "exec with a preload of the user's" "$work/execs" 0
    if cp execs execs_suid && chmod u+s execs_suid; then
        same "exec of a setuid program" "$work/execs" 100 "$work/execs_suid" 63
        equal "a setuid program is not recorded" 0 "$(awk '$1 == "ALLOC" && $5 == 100063' out.rec | wc -l)"
    fi
}

test_children() {
    same "children" "$work/forks"
    equal "children are silent, vfork's memory is ours" "200000 200004 200010" \
        "$(awk '$1 == "ALLOC" && $5 >= 200000 && $5 <= 200010 { printf "%s%d", s, $5; s = " " }' out.rec)"
    equal "one pid" 1 "$(awk '$1 != "SUMMARY" { print $2 }' out.rec | sort -u | wc -l)"
    ./reader -f "$agent" out.rec "$work/forks" >follow.out
    equal "FOLLOW: parent, fork, grandchild, vfork, exec'd children" \
        "200000 1;200001 1;200003 1;200004 1;200005 4;200010 1;" \
        "$(awk '$1 == "ALLOC" && $5 >= 200000 && $5 <= 200010 { n[$5]++ }
                END { for (s = 200000; s <= 200010; s++) if (n[s]) printf "%d %d;", s, n[s] }' out.rec)"
    equal "FOLLOW: forked child has its own pid" 3 \
        "$(awk '$1 == "ALLOC" && $5 >= 200000 && $5 <= 200003 { print $2 }' out.rec | sort -u | wc -l)"
    equal "FOLLOW: every stack is defined in its process" "" \
        "$(awk '$1 == "STACK" { known[$2 $3] = 1 } $1 == "ALLOC" && !(($2 $7) in known) { print "undefined" }' out.rec)"
}

# With FOLLOW our variables reach the programs that can take them, and stay invisible.
test_follow() {
    local environment
    environment="awk 'BEGIN { for (name in ENVIRON) if (name ~ /PRELOAD|FIRSTTOUCH/) print name, ENVIRON[name] }'"
    for program in "$work/forks 200005" "$work/execs_static 50" "/usr/bin/env" "no-such-program"; do
        # shellcheck disable=SC2086
        followed "FOLLOW: every way to start $(basename "$program")" "$work/spawns" $program
        # shellcheck disable=SC2086
        LD_PRELOAD="$work/libharmless.so" followed "FOLLOW: the same with a preload" "$work/spawns" $program
    done
    followed "FOLLOW: every way to start the recorded one" "$work/spawns" "$work/forks" 200005
    equal "FOLLOW: it is recorded in all six" 6 "$(awk '$1 == "ALLOC" && $5 == 200005' out.rec | wc -l)"
    followed "FOLLOW: a shell's children" sh -c "$environment; env -i $work/execs 11; $work/execs_static 50"
    same "a shell's children" sh -c "$environment; env -i $work/execs 11; $work/execs_static 50"
    followed "FOLLOW: children in the background" bash -c "(env; $environment) & wait; env | sort"
    followed "FOLLOW: execs of itself" "$work/execs" 0
    equal "FOLLOW: all eleven images are recorded" 11 \
        "$(awk '$1 == "ALLOC" && $5 >= 100000 && $5 < 100020' out.rec | wc -l)"
    if [ "$(id -u)" = 0 ]; then
        mkdir -p private && chmod 700 private && cp "$agent" private/ && chmod 755 "$work"
        agent=$work/private/libfirsttouch_agent.so followed "FOLLOW: after a change of user" \
            setpriv --reuid 65534 --regid 65534 --clear-groups sh -c 'env; /bin/echo two; exec env'
    fi
    same "a library that is gone" sh -c "/bin/echo one; exec /bin/echo two"
    cp "$agent" gone.so
    ./reader -f "$work/gone.so" out.rec sh -c "rm $work/gone.so; /bin/echo one; exec env" >gone.out 2>gone.err
    equal "FOLLOW: a library that is gone" "0 0" "$(count 'PRELOAD|FIRSTTOUCH' gone.out) $(wc -c <gone.err)"
}

test_sandbox() {
    local way
    for way in strict tsc thread fork "exec $work/execs_static 50" refused; do
        # shellcheck disable=SC2086
        same "sandbox: $way" "$work/sandbox" $way
        equal "sandbox: $way: recorded before" 1 "$(awk '$1 == "ALLOC" && $5 == 100001' out.rec | wc -l)"
        if [ "$way" = refused ]; then
            equal "sandbox: an invalid filter changes nothing" "1 0" \
                "$(awk '$1 == "ALLOC" && $5 == 100002' out.rec | wc -l) $(summary silent)"
        else
            equal "sandbox: $way: and not after" "0 1" \
                "$(awk '$1 == "ALLOC" && $5 >= 100002 && $5 < 100010' out.rec | wc -l) $(summary silent)"
        fi
        # shellcheck disable=SC2086
        followed "FOLLOW: sandbox: $way" "$work/sandbox" $way
    done
    # 4 MiB of ring need a gigabyte of address space.
    same "address space without limit" sh -c 'exec ./flood 10'
    (ulimit -v 900000; exec ./reader -c 65536 "$agent" out.rec ./flood 10) >flood.out
    equal "a limit on address space: not recorded, and reported" "flood done 0 2" \
        "$(cat flood.out) $(summary attached) $(summary silent)"
    (ulimit -v 2000000; exec ./reader -c 65536 "$agent" out.rec ./flood 10) >flood.out
    equal "a wide limit: recorded" "flood done 1 0" "$(cat flood.out) $(summary attached) $(summary silent)"
}

test_tight_places() {
    local bare agented environment
    same "exec with bad pointers" "$work/bad_exec"
    followed "FOLLOW: exec with bad pointers" "$work/bad_exec"
    for environment in "" large; do
        bare=$("$work/cramped" $environment)
        agented=$(./reader -f "$agent" out.rec "$work/cramped" $environment)
        equal "exec takes less than 2 KiB more of a stack, $environment ($bare; $agented)" yes "$(echo "$bare $agented" |
            awk '{ print ($1 > 0 && $2 > 0 && $3 > 0 && $4 > 0 && $3 < $1 + 2048 && $4 < $2 + 2048) ? "yes" : "no" }')"
    done
    ./reader "$agent" out.rec "$work/remaps" >remaps.out
    equal "calls that fail are not recorded" "3 ok" "$(awk 'FILENAME == "remaps.out" { refused = $1; block = $2; moved = $3; next }
        $1 == "MAP" || $1 == "UNMAP" { line = line $1 " " $4 " " $5 ";" }
        END { want = "UNMAP " block " 4194304;MAP " moved " 16777216;UNMAP " moved " 16777216;"
              print refused, index(line, want) && line !~ /(MAP|UNMAP) 1000 / && split(line, rest, ";") == 5 ? "ok" : line }' remaps.out out.rec)"
}

test_threads() {
    same "1000 threads, ended in every way" ./threads
    equal "1000 births" 1000 "$(count '^THREAD')"
    equal "all by the main thread" 1000 "$(awk '$1 == "THREAD" && $8 == $2' out.rec | wc -l)"
    equal "1000 tids" 1000 "$(awk '$1 == "THREAD" { print $3 }' out.rec | sort -u | wc -l)"
    equal "start routine" run "$(awk '$1 == "THREAD" { print $7; exit }' out.rec | addr2line -f -e threads | head -1)"
    equal "allocations in threads and destructors" "1000 1000" \
        "$(awk '$1 == "ALLOC" && $5 == 80000 { a++ } $1 == "ALLOC" && $5 == 90000 { b++ } END { print a, b }' out.rec)"
}

test_ring() {
    ./reader -k -c 64 "$agent" out.rec ./flood 1000 >flood.out
    equal "full ring: the program goes on" "0 flood done" "$? $(cat flood.out)"
    more_than "full ring: losses are counted" 1900 "$(summary lost)"
    equal "full ring: reserved or lost, nothing else" yes \
        "$([ "$(summary unread)" -le 64 ] && [ "$(summary unread)" -gt 50 ] && echo yes)"
    ./reader -c 64 "$agent" out.rec ./flood 100000 >/dev/null
    equal "small ring: what is read and what is lost add up" 200000 \
        "$(($(awk '($1 == "ALLOC" && $5 == 70000) || $1 == "FREE"' out.rec | wc -l) + $(summary lost)))"
    ./reader -x 100 "$agent" out.rec ./flood 100000 >flood.out
    equal "closed ring: the program goes on" "flood done" "$(cat flood.out)"
    # (A reader that waits for a CPU closes a ring that is full: 65,536 records.)
    more_than "closed ring: silent" "$(count .)" 70000
    (./reader "$agent" killed.rec ./flood 200000 "$work/flood_ended" 10 >/dev/null & echo $! >reader.pid; wait) 2>/dev/null &
    sleep 0.5
    kill -9 "$(cat reader.pid)"
    for _ in $(seq 300); do [ -e flood_ended ] && break; sleep 0.1; done
    equal "reader killed: the program goes on" yes "$([ -e flood_ended ] && echo yes)"
}

test_hostile_places() {
    same "allocations in constructors" ./early
    equal "all of them recorded" "300001 300002 300003 300004" \
        "$(awk '$1 == "ALLOC" && $5 > 300000 && $5 < 300010 { print $5 }' out.rec | sort | paste -sd' ')"
    same "dlopen and dlclose while threads allocate" ./loads "$work/libearly_lib.so"
    more_than "allocations inside dlopen are recorded" 149 "$(awk '$1 == "ALLOC" && $5 == 300001' out.rec | wc -l)"
    same "handlers that map memory at 10 kHz" ./signals
    equal "recording survives them" 1 "$(awk '$1 == "ALLOC" && $5 == 77777' out.rec | wc -l)"
    LD_PRELOAD=$work/liballocator.so same "an allocator without malloc_usable_size" ./flood 500
    equal "its allocations" 500 "$(awk '$1 == "ALLOC" && $5 == 70000' out.rec | wc -l)"
    equal "and releases" 500 "$(count '^FREE')"
}

test_openmp() {
    gcc -O1 -g -fopenmp -w -o omp_gcc "$here/programs/omp.c" && same "OpenMP: gcc" ./omp_gcc
    if ! clang -O1 -g -fopenmp -w -o omp_clang "$here/programs/omp.c" 2>/dev/null; then
        skip "OpenMP: clang" "no clang -fopenmp"
        return
    fi
    same "OpenMP: clang" ./omp_clang
    equal "regions, ends, tasks" "3 3 9" \
        "$(count '^PARALLEL_BEGIN') $(count '^PARALLEL_END') $(count '^IMPLICIT_TASK')"
    equal "team size and thread numbers" "3 0;3 1;3 2;" \
        "$(awk '$1 == "IMPLICIT_TASK" { print $5, $4 }' out.rec | sort -u | tr '\n' ';')"
    equal "parallel ids" "1 2 3" "$(awk '$1 == "IMPLICIT_TASK" { print $8 }' out.rec | sort -u | paste -sd' ')"
    OMP_TOOL=disabled same "OMP_TOOL=disabled" ./omp_clang
    equal "OMP_TOOL=disabled: silent" 0 "$(count '^PARALLEL|^IMPLICIT')"
    OMP_TOOL_LIBRARIES=/nonexistent.so same "OMP_TOOL_LIBRARIES comes first" ./omp_clang
    clang -O1 -g -fopenmp -w -DOWN_TOOL -Wl,--export-dynamic -o omp_tool "$here/programs/omp.c"
    same "a tool of the program's own" ./omp_tool
    equal "a tool of the program's own: we are silent" "1 0" "$(count '^own tool' agent.out) $(count '^PARALLEL')"
    clang -O1 -w -fPIC -shared -DOWN_TOOL -fopenmp -o libtool.so "$here/programs/omp.c"
    LD_PRELOAD=$work/libtool.so same "a tool preloaded after us" ./omp_clang
    equal "a tool preloaded after us: we are silent" "1 0" "$(count '^own tool' agent.out) $(count '^PARALLEL')"
}

test_programs() {
    if /usr/bin/python3 -c 'import numpy' 2>/dev/null; then
        same "python with numpy" /usr/bin/python3 -c \
            'import numpy, threading, subprocess, os
a = numpy.ones((500, 500)); print((a @ a).sum()); print(sorted(os.environ.items()))
t = [threading.Thread(target=lambda: print(numpy.zeros(10**6).sum())) for _ in range(3)]
[x.start() or x.join() for x in t]; print(subprocess.run(["env"], capture_output=True).stdout)'
        more_than "numpy's arrays are recorded" 2 "$(awk '$1 == "ALLOC" && $5 == 8000000' out.rec | wc -l)"
    else
        skip "python with numpy" "not installed"
    fi
    if command -v java >/dev/null; then same "java" java -version; else skip "java" "not installed"; fi
    if command -v git >/dev/null; then
        same "git" git -C "$here" --no-optional-locks log -3
        same "git clone" sh -c 'rm -rf clone; git init -q clone && cd clone && git -c user.name=a -c user.email=a@b \
            commit -q --allow-empty -m m && git status --short && git rev-list --count HEAD'
    fi
    same "gcc" gcc -O2 -w -o cost_again "$here/cost.c"
    command -v gdb >/dev/null && same "gdb" sh -c 'gdb -batch -ex run --args ./flood 10 2>/dev/null | grep flood'
    same "a pipeline" bash -c 'seq 100000 | sort -n | tail -1; (exit 5)'
    same "a failing program" sh -c 'kill -SEGV $$'
}

# Every Python of a version whose stacks can be read, once each.
pythons() {
    local python
    for python in /usr/bin/python3 python3 python3.11 python3.12 python3.13 "$HOME"/.pyenv/versions/3.1[123]*/bin/python3; do
        "$python" -c 'import sys, os; (3, 11) <= sys.version_info < (3, 14) and print(os.path.realpath(sys.executable))' \
            2>/dev/null
    done | sort -u
}

# Every block of `allocates.py`, by its size, must have the innermost function and line that the program prints.
check_python() { # NAME
    awk 'FILENAME == "agent.out" { want[$1] = $2 ":" $3; next }
         $1 == "PYTHON" { split($0, part, "|"); split(part[3], line, "[ @]"); leaf[$3] = part[2] ":" line[1]; next }
         $1 == "ALLOC" || $1 == "MAP" {
             for (more = 0; more <= 64; more++) if (($5 - more) in want) {
                 size = $5 - more; seen[size] = 1
                 if (leaf[$10] != want[size]) print size ": " leaf[$10] ", not " want[size]
             } }
         END { for (size in want) if (!(size in seen)) print size ": not seen" }' agent.out out.rec >wrong
    equal "$1" "" "$(head -3 wrong)"
}

# Of the samples of each thread of `computes.py` that have a line, most must have the one that it prints, and none that of the other thread.
sampled_lines() {
    awk 'FILENAME == "agent.out" { want[$1] = $2; thread[$2] = $1; next }
         $1 == "PYTHON" { split($0, part, "|"); split(part[3], number, "[ @]"); leaf[$3] = number[1]; next }
         $1 == "SAMPLE" && $3 in want && $10 != "0000000000000000" { all[$3]++; here = leaf[$10]; right[$3] += here == want[$3]
             if (here in thread && thread[here] != $3) print "thread " $3 ": line " here }
         END { for (t in want) if (all[t] < 20 || right[t] < all[t] * 0.7) print "line " want[t] ": " right[t] + 0 " of " all[t] + 0 " samples" }' \
        agent.out out.rec 2>&1 | head -3
}

# Debug exceptions without a cause must not reach the program, and every other SIGTRAP must.
test_traps() {
    local way
    for way in int3 int1 step raise kill own back exec ignored sysv vfork "vfork default" interrupts sandbox error; do
        guarded "traps: $way" ./traps "$way"
        equal "traps: $way is not held back" 0 "$(summary traps)"
    done
    ./reader -g "$agent" out.rec ./traps query held >traps.out
    equal "traps: a query does not show the handler, and leaves it" "1 0 0 goes on" "$(tail -2 traps.out | paste -sd ' ')"
    equal "traps: it holds back after a query" "1 0" "$(summary traps) $(summary replaced)"
    guarded "traps: a handler of the program's" ./traps own
    equal "traps: firsttouch learns of the program's handler" 1 "$(summary replaced)"
    ./reader -g "$agent" out.rec ./traps causeless >traps.out
    equal "traps: the program goes on" "0 goes on, errno 7, child 3" "$? $(tail -1 traps.out)"
    equal "traps: they are counted" "202 0" "$(summary traps) $(summary replaced)"
    equal "traps: without the guard they end it" 133 "$(./reader "$agent" out.rec ./traps causeless >/dev/null; echo $?)"
    for way in ./ticks ./signals ./forks ./threads "$work/bad_exec"; do
        guarded "traps: $way" "$way"
    done
    for way in strict tsc "exec $work/execs_static 50"; do
        # shellcheck disable=SC2086
        guarded "traps: sandbox: $way" "$work/sandbox" $way
    done
}

# The agent wakes the reader if it asks for that, and disturbs nothing.
test_wakes() {
    local way
    wake=1048576 same "wakes: results and errno" ./wakes
    equal "wakes: at the large allocations of memory, once each" "3 3" "$(summary wakes) $(summary woken)"
    same "wakes: not asked for" ./wakes
    equal "wakes: not asked for, and not made" 0 "$(summary wakes)"
    ./reader -c 1024 "$agent" out.rec ./flood 20000 >/dev/null
    more_than "wakes: whenever half of the ring is taken" 0 "$(summary wakes)"
    # Not `signals`: its handlers nest if they take longer than 0.1 ms, as they may on a busy machine.
    for way in ./ticks ./coroutines ./exceptions ./forks ./threads "./flood 20000"; do
        # shellcheck disable=SC2086
        wakeful "wakes: $way" $way
        more_than "wakes: $way: they are made" 0 "$(summary wakes)"
    done
    wakeful "wakes: exec with bad pointers" "$work/bad_exec"
    for way in strict tsc thread fork "exec $work/execs_static 50" refused; do
        # shellcheck disable=SC2086
        wakeful "wakes: sandbox: $way" "$work/sandbox" $way
    done
    rm -f flood_ended
    (./reader -w 65536 "$agent" killed.rec ./flood 20000 "$work/flood_ended" 10 >/dev/null & echo $! >reader.pid; wait) 2>/dev/null &
    sleep 0.2
    kill -9 "$(cat reader.pid)"
    for _ in $(seq 300); do [ -e flood_ended ] && break; sleep 0.1; done
    equal "wakes: reader killed: the program goes on" yes "$([ -e flood_ended ] && echo yes)"
}

# Samples of the registers must be there, of every thread, and disturb nothing.
test_samples() {
    local program
    sampled "samples: what a signal could disturb" ./ticks
    more_than "samples: they are taken" 100 "$(count '^SAMPLE')"
    more_than "samples: of several threads" 5 "$(awk '$1 == "SAMPLE" { print $3 }' out.rec | sort -u | wc -l)"
    equal "samples: CPU time rises within a thread" "" \
        "$(awk '$1 == "SAMPLE" { if ($5 <= last[$3]) print "goes back: " $0; last[$3] = $5 }' out.rec | head -3)"
    equal "samples: no thread is left out" 0 "$(summary unsampled)"
    follow=-f sampled "samples: with children" ./ticks
    for program in ./signals ./coroutines ./exceptions ./forks ./threads "$work/bad_exec"; do
        sampled "samples: $program" "$program"
    done
    local way
    for way in strict tsc thread fork "exec $work/execs_static 50" refused; do
        # shellcheck disable=SC2086
        sampled "samples: sandbox: $way" "$work/sandbox" $way
        # shellcheck disable=SC2086
        shifted "samples that sleep: sandbox: $way" "$work/sandbox" $way
    done
    for program in ./ticks ./signals ./forks ./threads; do
        shifted "samples that sleep: $program" "$program"
        more_than "samples that sleep: $program: they do" 0 "$(summary shifts)"
    done
    # The limit counts all signals and timers of the user, the program's own among them.
    (ulimit -i 100 && exec ./reader -s 1000 "$agent" out.rec ./threads) >threads.out
    more_than "samples: where few signals may be pending, none are taken" 999 "$(summary unsampled)"
    equal "samples: and none is there" 0 "$(count '^SAMPLE')"
    equal "samples: each thread without a timer says so" "$(summary unsampled)" "$(count '^NO_TIMER')"
}

test_python() {
    local python name
    gcc -g -O1 -fsanitize=address,undefined -fno-sanitize-recover=all -Wall -Wextra -I"$source_dir/../include" -o python_lines \
        "$here/python_lines.c" "$source_dir/python_line_table.c" || exit 1
    equal "line tables of random bytes" "done" "$(./python_lines fuzz 300000 2>&1)"
    [ -n "$(pythons)" ] || skip "Python stacks" "no Python 3.11, 3.12 or 3.13"
    for python in $(pythons); do
        name=$("$python" -c 'import platform; print("Python " + platform.python_version())')
        "$python" "$here/python_lines.py" 3>lines.in >lines.expected
        ./python_lines <lines.in >lines.got
        equal "$name: $(wc -l <lines.got) line tables of the library" yes "$(cmp lines.expected lines.got && echo yes)"
        same "$name: allocations" "$python" "$here/programs/allocates.py"
        check_python "$name: $(wc -l <agent.out) lines that allocate"
        equal "$name: names that are long or not ASCII" "1 1" \
            "$(grep -a -c -E 'x/中文\.py\|<module>\|2@[0-9]+(:[0-9]+)? ' out.rec) $(grep -a -c -E ' made üp\.py\|<module>\|4@[0-9]+(:[0-9]+)? ' out.rec)"
        equal "$name: at most 24 frames" 24 "$(awk '$1 == "PYTHON" { n = gsub(/\|/, "") / 2; if (n > most) most = n } END { print most }' out.rec)"
        ./reader -s 1000 "$agent" out.rec "$python" "$here/programs/computes.py" >agent.out
        equal "$name: samples: the threads that compute" 2 "$(wc -l <agent.out)"
        equal "$name: samples have the lines that threads run" "" "$(sampled_lines)"
        # A thread's first read of a stack takes more than 50 ms and 1 % of the time, so that there is no second one.
        LD_PRELOAD=$work/slow_reads.so ./reader -s 1000 "$agent" out.rec "$python" "$here/programs/computes.py" >agent.out
        equal "$name: slow reads of the stack are few: threads with 10 samples, of which one has a stack" 2 "$(awk '
            FILENAME == "agent.out" { thread[$1] = 1; next }
            $1 == "SAMPLE" && $3 in thread { all[$3]++; read[$3] += $10 != "0000000000000000" }
            END { for (t in all) n += all[t] >= 10 && read[t] == 1; print n + 0 }' agent.out out.rec)"
        same "$name: exceptions and exit" "$python" -c 'import sys
class A(Exception): pass
def f(n):
    bytearray(300000)
    if n == 0: raise A(bytearray(100000))
    f(n - 1)
try: f(100)
except A as e: print(len(e.args[0]))
sys.exit(3)'
        ./reader -f "$agent" out.rec "$python" -c 'import os
bytearray(300000)
if os.fork() == 0: bytearray(300000); os._exit(0)
os.wait()' >/dev/null
        equal "$name: FOLLOW: a forked child defines its own" "2 2" \
            "$(awk '$1 == "PYTHON" { known[$2 $3] = 1 } $1 == "ALLOC" && $5 == 300001 && ($2 $10) in known { n++; pids[$2] = 1 }
                    END { for (pid in pids) p++; print n, p }' out.rec)"
    done
    under ./kinds >/dev/null
    equal "no Python, no Python stacks" 0 "$(awk '($1 == "ALLOC" || $1 == "MAP") && $10 != "0000000000000000"' out.rec | wc -l)"
}

# Prints the best of some alternating runs (the machine may be shared), and checks the limits of the design.
cost() {
    local round what
    : >bare.cost
    : >agent.cost
    for round in 1 2 3 4 5; do
        ./cost >>bare.cost
        ./reader -q -t "$agent" cost.rec ./cost >>agent.cost
        [ -n "${KEEP:-}" ] && echo "round $round: $(cat cost.rec)"
    done
    best() { awk -v w="$1" '$1 == w && (!b || $2 < b) { b = $2 } END { print b }' "$2"; }
    printf '\n%-8s %10s %10s %10s %7s   ns a pair\n' cost bare agent more ratio
    for what in small medium large deep work mapped; do
        awk -v w=$what -v b="$(best $what bare.cost)" -v a="$(best $what agent.cost)" \
            'BEGIN { printf "%-8s %10.1f %10.1f %10.1f %7.3f\n", w, b, a, a - b, a / b }'
    done | tee cost.table
    echo
    equal "cost: a small pair at most 6 ns more" yes "$(awk '$1 == "small" { print $4 <= 6 ? "yes" : $4 }' cost.table)"
    equal "cost: a recorded pair less than 100 ns more" yes \
        "$(awk '$1 == "large" || $1 == "deep" { if ($4 >= 100) bad = bad " " $4 } END { print bad ? bad : "yes" }' cost.table)"
    equal "cost: a million pairs a second at most 1.10" yes \
        "$(awk '$1 == "work" { print $5 <= 1.10 ? "yes" : $5 }' cost.table)"
}

build
if [ "${1:-}" != --cost ]; then
    build_programs
    test_binary
    test_kinds
    test_presents
    test_clock
    test_stacks
    test_environment
    test_exec
    test_children
    test_follow
    test_sandbox
    test_small_blocks
    test_tight_places
    test_threads
    test_ring
    test_hostile_places
    test_openmp
    test_programs
    test_python
    test_samples
    test_traps
    test_wakes
fi
# NO_COST skips the timings.
if [ -z "${NO_COST:-}" ]; then cost; fi
[ "$skipped" = 0 ] || echo "$skipped skipped"
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
