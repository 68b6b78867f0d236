# SPDX-License-Identifier: Apache-2.0 OR MIT
# corpus: object = a
# corpus: finding = none
# corpus: partition = block
# corpus: remote = 0.0
# corpus: build = none
# corpus: run = /usr/bin/python3 {src}
# corpus: why = Near miss of numpy_ones: np.empty touches nothing, and each worker first fills the slice it goes on to use.

# NumPy asks for huge pages for big arrays. The slices meet in the middle of one, so up to 1.6 % of the accesses (half
# of the accesses to one 2 MiB page of 64) may be remote; that is why the array is larger than elsewhere.

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np

THREADS = 4
N = 16 << 20  # 128 MiB
RUN_S = 1.2

a = np.empty(N)  # @allocated

sweeps = 0
running = True


def after_each_sweep():
    """Run by one thread while the others wait at the barrier."""
    global sweeps, running
    sweeps += 1
    running = time.monotonic() < end


end = time.monotonic() + RUN_S
in_step = threading.Barrier(THREADS, action=after_each_sweep)


def work(thread):
    mine = a[thread * N // THREADS : (thread + 1) * N // THREADS]
    mine.fill(1.0)  # @first-touch
    while running:
        np.add(mine, 1.0, out=mine)  # @used
        in_step.wait()
    return np.all(mine == 1.0 + sweeps)


with ThreadPoolExecutor(THREADS) as pool:
    print("ok" if all(pool.map(work, range(THREADS))) else "bad")
