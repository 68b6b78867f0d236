// SPDX-License-Identifier: Apache-2.0 OR MIT
// corpus: build = gcc -O2 -g -Wall -Wextra -fno-tree-vectorize -fopenmp -static {src} -o {out}
// corpus: run = {out} --threads 2 --seconds 10 --init serial
// corpus: needs = known_shares.c
//
// The same program without a loader, so without an agent.

#include "known_shares.c"
