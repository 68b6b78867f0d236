# SPDX-License-Identifier: Apache-2.0 OR MIT
"""placed.py [SECONDS CPU...]: placed.cpp in Python, whose package has no replicated tables. A thread on each of the CPUs works on its block."""
import os
import sys
import threading
import time

seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 0
cpus = [int(word) for word in sys.argv[2:]] or sorted(os.sched_getaffinity(0))[:2]
os.sched_setaffinity(0, {cpus[0]})  # before Python's own objects are made, so that they are local too

import firsttouch
import numpy

N = 524_288
failures = 0
nodes = firsttouch.nodes()
joined = threading.Barrier(len(cpus) + 1)
placed = threading.Barrier(len(cpus) + 1)


def verify(name, array, partition):
    global failures
    verdict = firsttouch.verify(array, partition)
    good = verdict.share >= 0.99 and verdict.present == verdict.pages
    print(f"{'ok   ' if good else 'FAIL '}  placed: {name}: {verdict.share:.4f} of {verdict.present}")
    failures += not good


def work(thread):
    os.sched_setaffinity(0, {cpus[thread]})  # this thread only
    firsttouch.join_team(thread, len(cpus))
    joined.wait()
    placed.wait()
    bounds = firsttouch.static_bounds(N, len(cpus))
    block = field[bounds[thread] : bounds[thread + 1]]
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        numpy.add(block, 1, out=block)


team = [threading.Thread(target=work, args=(thread,)) for thread in range(len(cpus))]
for thread in team:
    thread.start()
joined.wait()
for name, partition in {
    "blocked": firsttouch.blocked(),
    "blocked over nodes": firsttouch.blocked().over_nodes(),
    "cyclic": firsttouch.cyclic(10_000),
    "by bounds": firsttouch.by_bounds([0, 100_000, N]),
    "weighted": firsttouch.weighted(range(1, len(nodes) + 1)),
    "interleaved": firsttouch.interleaved(),
    "bind": firsttouch.bind(nodes[-1]),
}.items():
    array = firsttouch.empty(N, partition=partition)
    array[:] = 1
    verify(name, array, partition)
    del array
field = firsttouch.empty(N, partition="blocked")
field[:] = 1
placed.wait()
for thread in team:
    thread.join()
verify("field", field, "blocked")
sys.exit(failures > 0)
