# SPDX-License-Identifier: Apache-2.0 OR MIT
# corpus: object = state
# corpus: finding = serial-first-touch
# corpus: partition = block
# corpus: cause = numpy
# corpus: remote = 0.5
# corpus: fix = example
# corpus: build = none
# corpus: run = /usr/bin/python3 {src}
# corpus: why = np.zeros touches nothing (calloc), but the main thread then fills the array before the workers use it.

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np

THREADS = 4
ROWS, COLUMNS = 1024, 4096  # 32 MiB
RUN_S = 1.2

state = np.zeros((ROWS, COLUMNS))  # @allocated
state.fill(8.0)  # @first-touch

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
    mine = state[thread * ROWS // THREADS : (thread + 1) * ROWS // THREADS]
    while running:
        np.subtract(9.0, mine, out=mine)  # @used
        in_step.wait()


with ThreadPoolExecutor(THREADS) as pool:
    list(pool.map(work, range(THREADS)))

print("ok" if np.all(state == (1.0 if sweeps % 2 else 8.0)) else "bad")
