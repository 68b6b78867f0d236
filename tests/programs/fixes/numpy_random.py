# SPDX-License-Identifier: Apache-2.0 OR MIT
# corpus: object = part
# corpus: fix = example
# corpus: build = none
# corpus: run = /usr/bin/python3 {src}
# corpus: why = Random numbers are one sequence: whoever writes the array again has other data.

import threading

import numpy as np

N, THREADS, SWEEPS = 2 << 20, 4, 401
np.random.seed(3)
part = np.random.rand(N)


def work(thread):
    mine = part[thread * N // THREADS : (thread + 1) * N // THREADS]
    for _ in range(SWEEPS):
        np.subtract(3.0, mine, out=mine)


threads = [threading.Thread(target=work, args=(thread,)) for thread in range(THREADS)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(repr(float(part.sum())))
