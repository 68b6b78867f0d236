# SPDX-License-Identifier: Apache-2.0 OR MIT
# corpus: object = signal
# corpus: finding = io-first-touch
# corpus: partition = block
# corpus: remote = 0.5
# corpus: fix = words
# corpus: build = none
# corpus: run = /usr/bin/python3 {src}
# corpus: why = np.fromfile lets the kernel write the file into a fresh array, on the node of the thread that called it.

import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np

THREADS = 4
N = 4 << 20  # 32 MiB
RUN_S = 1.2

with tempfile.NamedTemporaryFile() as file:
    for _ in range(N // 4096):
        file.write(np.full(4096, 1.0).tobytes())
    file.flush()
    signal = np.fromfile(file.name)  # @allocated @first-touch

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
    mine = signal[thread * N // THREADS : (thread + 1) * N // THREADS]
    while running:
        np.add(mine, 1.0, out=mine)  # @used
        in_step.wait()


with ThreadPoolExecutor(THREADS) as pool:
    list(pool.map(work, range(THREADS)))

print("ok" if np.all(signal == 1.0 + sweeps) else "bad")
