# SPDX-License-Identifier: Apache-2.0 OR MIT
# corpus: object = a
# corpus: finding = serial-first-touch
# corpus: partition = block
# corpus: cause = numpy
# corpus: remote = 0.5
# corpus: fix = example
# corpus: build = none
# corpus: run = /usr/bin/python3 {src}
# corpus: why = np.ones fills the array in the main thread; the workers then update it in place, a slice each.

"""NumPy releases the interpreter lock inside ufuncs, so threads really share the work."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np

THREADS = 4
N = 4 << 20  # 32 MiB
RUN_S = 1.2

a = np.ones(N)  # @allocated @first-touch

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
    while running:
        np.add(mine, 1.0, out=mine)  # @used
        in_step.wait()


with ThreadPoolExecutor(THREADS) as pool:
    list(pool.map(work, range(THREADS)))

print("ok" if np.all(a == 1.0 + sweeps) else "bad")
