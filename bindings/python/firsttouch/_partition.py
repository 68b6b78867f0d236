# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Partitions of arrays, in positions along the outermost axis."""
from __future__ import annotations

import ctypes
import dataclasses
import operator
from collections.abc import Sequence

from . import _library as c

MAX_PARTS = 2**20
MAX_BYTES = 2**63 - 1
MAX_NODE = 1023


def static_bounds(extent: int, threads: int) -> list[int]:
    """The borders of OpenMP's schedule(static): thread i works on positions [result[i], result[i + 1])."""
    extent, threads = _count("extent", extent, 0), _count("threads", threads, 1, MAX_PARTS)
    share, more = divmod(extent, threads)
    return [thread * share + min(thread, more) for thread in range(threads + 1)]


@dataclasses.dataclass(frozen=True)
class Partition:
    """How the outermost axis of an array is divided. Make one by the functions `blocked`, `cyclic`, `by_bounds` and so on."""

    kind: int
    unit: int = c.THREADS
    parts: int = 0
    chunk: int = 0
    bounds: tuple[int, ...] = ()
    weights: tuple[float, ...] = ()
    node: int = 0
    team: int = 0

    def over_nodes(self) -> Partition:
        """The same with its parts numbered by the nodes of this process, in ascending order."""
        return dataclasses.replace(self, unit=c.NODES)

    def for_team(self, team: int) -> Partition:
        """The same for the threads of another team than 0."""
        return dataclasses.replace(self, unit=c.THREADS, team=_count("team", team, 0, 63))

    def in_bytes(self, extent: int, slice_bytes: int) -> c.CPartition:
        """The C partition of `extent` slices of `slice_bytes` bytes. It keeps its arrays alive."""
        kind, parts, bounds = self.kind, self.parts, self.bounds
        if kind == c.BLOCKED:
            if parts == 0:
                parts = c.lib.ft_nodes(None, 0) if self.unit == c.NODES else c.lib.ft_team_size(self.team)
            # By bounds, because equal parts in bytes can differ from equal parts in slices by many pages.
            kind, bounds = c.BY_BOUNDS, tuple(static_bounds(extent, parts))
        # ctypes would cut larger numbers off without a word.
        for name, value in [("chunk", self.chunk), *(("bound", bound) for bound in bounds[-1:])]:
            if value * slice_bytes > MAX_BYTES:
                raise ValueError(f"a {name} of {value} positions of {slice_bytes} bytes is larger than memory can be; use at most {MAX_BYTES // slice_bytes}")
        result = c.CPartition(kind, self.unit, parts, self.chunk * slice_bytes, None, None, self.node, self.team)
        if bounds:
            result.bounds = (ctypes.c_size_t * len(bounds))(*(bound * slice_bytes for bound in bounds))
        if self.weights:
            result.weights = (ctypes.c_double * len(self.weights))(*self.weights)
        return result


def _count(name: str, value: int, least: int, most: int = MAX_BYTES) -> int:
    """A whole number, also one of NumPy's."""
    try:
        number = operator.index(value)
    except TypeError:
        raise ValueError(f"{name} must be a whole number; it is {value!r}") from None
    if not least <= number <= most:
        raise ValueError(f"{name} must be {least} to {most}; it is {number}")
    return number


def _parts(value: int | None) -> int:
    return 0 if value is None else _count("parts", value, 1, MAX_PARTS)


def local() -> Partition:
    """First touch decides, as for memory from numpy.empty."""
    return Partition(c.LOCAL)


def blocked(parts: int | None = None) -> Partition:
    """Equal contiguous parts, as schedule(static). None: as many as the team has threads."""
    return Partition(c.BLOCKED, parts=_parts(parts))


def cyclic(chunk: int, parts: int | None = None) -> Partition:
    """Chunks of `chunk` positions, dealt to the parts in turn, as schedule(static, chunk)."""
    return Partition(c.CYCLIC, parts=_parts(parts), chunk=_count("chunk", chunk, 1))


def by_bounds(bounds: Sequence[int]) -> Partition:
    """Part i is the positions bounds[i] to bounds[i + 1] - 1."""
    values = tuple(_count("a bound", bound, 0) for bound in bounds)
    if not 2 <= len(values) <= MAX_PARTS + 1 or any(a > b for a, b in zip(values, values[1:])):
        raise ValueError(f"bounds must be two to 2**20 + 1 ascending positions from 0; they are {list(bounds)!r}")
    return Partition(c.BY_BOUNDS, parts=len(values) - 1, bounds=values)


def weighted(weights: Sequence[float]) -> Partition:
    """Contiguous parts in proportion to the weights, for the nodes of this process in ascending order."""
    values = tuple(float(weight) for weight in weights)
    if not 0 < len(values) <= MAX_PARTS or not all(0 <= weight < float("inf") for weight in values) or not any(values):
        raise ValueError(f"weights must be at most 2**20 numbers, finite, not negative, and one of them positive; they are {list(weights)!r}")
    return Partition(c.WEIGHTED, unit=c.NODES, parts=len(values), weights=values)


def interleaved() -> Partition:
    """Pages in turn over all nodes that this process may use."""
    return Partition(c.INTERLEAVED, unit=c.NODES)


def bind(node: int) -> Partition:
    """All on one node, by the kernel's number."""
    return Partition(c.BIND, unit=c.NODES, node=_count("node", node, 0, MAX_NODE))


BY_NAME = {"local": local, "blocked": blocked, "interleaved": interleaved}


def as_partition(partition: Partition | str, parts: int | None = None) -> Partition:
    """A partition from its name, or the partition itself."""
    if isinstance(partition, Partition):
        if parts is not None:
            raise ValueError("parts goes with the name of a partition; give it to the partition itself, as in blocked(parts)")
        return partition
    make = BY_NAME.get(partition) if isinstance(partition, str) else None
    if make is None:
        raise ValueError(
            f"partition must be one of {', '.join(map(repr, BY_NAME))}, or what firsttouch.cyclic, by_bounds, weighted or bind return; "
            f"it is {partition!r}"
        )
    if make is blocked:
        return blocked(parts)
    if parts is not None:
        raise ValueError(f"parts goes with 'blocked', not with {partition!r}")
    return make()
