// SPDX-License-Identifier: Apache-2.0 OR MIT
// placed.c with LLVM's OpenMP runtime.
// corpus: build = clang -O2 -g -Wall -Wextra -Werror -fopenmp {src} -o {out}
#include "placed.c"
