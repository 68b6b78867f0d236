#!/bin/bash
# SPDX-License-Identifier: Apache-2.0 OR MIT
#
# build.sh OUTDIR [SOURCE...]
#
# Builds each SOURCE (default: every program of the corpus) to OUTDIR/NAME, two at a time, with the command in the
# header line `corpus: build = ...`. Prints the programs that fail and then exits 1. Python programs need no build.
set -uo pipefail

build_one() {
    local out_dir=$1 source=$2 name build command
    name=$(basename "${source%.*}")
    build=$(sed -n 's/^[^a-z]*corpus: build = //p' "$source")
    case $build in
    none) return 0 ;;
    '')
        echo "FAILED $name: $source has no line 'corpus: build = ...'" >&2
        return 1
        ;;
    esac
    printf -v command '%q ' "$source"
    build=${build//'{src}'/$command}
    printf -v command '%q ' "$out_dir/$name"
    build=${build//'{out}'/$command}
    # gfortran writes module files to the working directory: keep them out of the source tree.
    if ! (cd "$out_dir" && bash -c "$build"); then
        echo "FAILED $name: $build" >&2
        return 1
    fi
}

if [ "${1-}" = --one ]; then
    build_one "$2" "$3"
    exit
fi
if [ $# -lt 1 ]; then
    echo "usage: $0 OUTDIR [SOURCE...]" >&2
    exit 2
fi

mkdir -p "$1" || exit 1
out_dir=$(realpath "$1")
shift
if [ $# -eq 0 ]; then
    here=$(cd "$(dirname "$0")" && pwd)
    set -- "$here"/*.c "$here"/*.cpp "$here"/*.f90 "$here"/*.rs
fi
# xargs exits 123 when a build failed.
if ! realpath -z -- "$@" | xargs -0 -n 1 -P 2 "$(realpath "$0")" --one "$out_dir"; then
    echo "some programs did not build" >&2
    exit 1
fi
