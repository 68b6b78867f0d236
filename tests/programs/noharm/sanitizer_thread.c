// SPDX-License-Identifier: Apache-2.0 OR MIT
// The program of sanitizer.h with gcc's -fsanitize=thread.
// corpus: build = gcc -O1 -g -Wall -Wextra -Werror -fsanitize=thread {src} -o {out}
#include "sanitizer.h"
