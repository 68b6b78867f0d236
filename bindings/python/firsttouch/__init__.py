# SPDX-License-Identifier: Apache-2.0 OR MIT
"""NumPy arrays placed on NUMA nodes, and verified: the Python interface of libfirsttouch.

    a = firsttouch.empty((n, m), partition="blocked")   # nothing is touched; each part will lie on its thread's node
    firsttouch.verify(a, "blocked").share               # the share of its present pages that lie there

Partitions divide the outermost axis, as OpenMP's static schedules divide a loop over it. Memory that the kernel does not place is
given all the same: last_doubt() says what was not done.
"""
from ._arrays import Verdict, clear_doubt, empty, expect, join_team, last_doubt, localise, nodes, place, report, verify, zero
from ._library import lib as _lib
from ._partition import Partition, bind, blocked, by_bounds, cyclic, interleaved, local, static_bounds, weighted

__version__ = "1.0.0"
library_version = _lib.ft_version().decode()

__all__ = [
    "Partition", "Verdict", "bind", "blocked", "by_bounds", "clear_doubt", "cyclic", "empty", "expect", "interleaved", "join_team",
    "last_doubt", "library_version", "local", "localise", "nodes", "place", "report", "static_bounds", "verify", "weighted", "zero",
]
