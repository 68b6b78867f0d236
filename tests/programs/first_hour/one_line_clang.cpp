// SPDX-License-Identifier: Apache-2.0 OR MIT
// corpus: build = clang++ -O2 -g -Wall -Wextra -fopenmp {src} -o {out}
// corpus: run = {out}
//
// one_line.cpp by another compiler, whose debug information has other columns.

#include "one_line.cpp"
