# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Arrays whose memory the library allocates, and functions on arrays that exist."""
from __future__ import annotations

import ctypes
import dataclasses
import math
import operator
import os
import sys
import unittest
import weakref
from collections.abc import Sequence

import numpy

from . import _library as c
from ._partition import MAX_BYTES, MAX_PARTS, Partition, as_partition


def _error(action: str) -> OSError:
    number = ctypes.get_errno()
    return OSError(number, f"cannot {action}: {os.strerror(number)}")


def last_doubt() -> str | None:
    """What the last call of this thread that had a doubt could not do or assumed, and what to do about it."""
    text = c.lib.ft_last_doubt()
    return text.decode() if text else None


def clear_doubt() -> None:
    """Forgets the last doubt of this thread."""
    c.lib.ft_clear_doubt()


def join_team(thread: int, threads: int, team: int = 0) -> None:
    """The calling thread is number `thread` of the `threads` threads of `team`, and runs on the node where it is now."""
    thread, threads, team = operator.index(thread), operator.index(threads), operator.index(team)
    if not (0 <= thread < threads <= MAX_PARTS and 0 <= team < 64) or c.lib.ft_team_join(team, thread, threads) != 0:
        raise ValueError(f"cannot join team {team} as thread {thread} of {threads}: threads count from 0 to at most 2**20, and teams are 0 to 63")


def nodes() -> list[int]:
    """The nodes with memory that this process may use."""
    numbers = (ctypes.c_int * c.lib.ft_nodes(None, 0))()
    count = c.lib.ft_nodes(numbers, len(numbers))
    return list(numbers[:count])


def empty(
    shape: int | Sequence[int],
    dtype=float,
    partition: Partition | str = "blocked",
    parts: int | None = None,
    *,
    order: str = "C",
    huge_pages: bool = False,
) -> numpy.ndarray:
    """An array without values, as numpy.empty, whose pages will lie by the partition. Nothing is touched.

    The partition divides the outermost axis in memory: the first one, or the last one for order "F". The memory is freed with the
    last array that uses it.
    """
    try:
        extents = tuple(operator.index(extent) for extent in (shape if numpy.iterable(shape) else (shape,)))
    except TypeError:
        raise TypeError(f"shape must be a whole number or a tuple of whole numbers; it is {shape!r}") from None
    if any(extent < 0 for extent in extents):
        raise ValueError(f"shape must not be negative; it is {shape!r}")
    if order not in ("C", "F"):
        raise ValueError(f"order must be 'C' or 'F'; it is {order!r}")
    kind = numpy.dtype(dtype)
    if kind.hasobject:
        raise TypeError("firsttouch.empty makes no arrays of Python objects: their memory is Python's; use numpy.empty")
    # An element that is an array of its own adds axes, as in numpy.empty.
    while kind.subdtype is not None:
        kind, inner = kind.subdtype
        extents += inner
    how = as_partition(partition, parts)
    size = math.prod(extents) * kind.itemsize
    if size == 0:
        return numpy.empty(extents, kind, order)
    if size > MAX_BYTES:
        raise MemoryError(f"cannot allocate {size} bytes for an array of shape {extents}: it is larger than memory can be")
    outer = (extents[0] if order == "C" else extents[-1]) if extents else 1
    address = c.lib.ft_alloc(size, how.in_bytes(outer, size // outer), c.HUGE_PAGES if huge_pages else 0)
    if not address:
        number = ctypes.get_errno()
        raise MemoryError(f"cannot allocate {size} bytes for an array of shape {extents}: {os.strerror(number)}")
    memory = (ctypes.c_char * size).from_address(address)
    # Arrays may still be used while the interpreter ends; the memory ends with the process then.
    weakref.finalize(memory, c.lib.ft_free, address).atexit = False
    return numpy.frombuffer(memory, kind).reshape(extents, order=order)


class _Extent:
    """The memory of an array, and the partition in its bytes."""

    def __init__(self, array: numpy.ndarray, partition: Partition | str, parts: int | None, action: str):
        if not isinstance(array, numpy.ndarray):
            raise TypeError(f"cannot {action} a {type(array).__name__}: give a numpy.ndarray")
        if array.flags.c_contiguous:
            outer = array.shape[0] if array.ndim else 1
        elif array.flags.f_contiguous:
            outer = array.shape[-1]
        else:
            raise ValueError(f"cannot {action} an array with gaps (strides {array.strides}): give the whole array, or a contiguous part of it")
        self.address = array.ctypes.data
        self.bytes = array.nbytes
        self.partition = as_partition(partition, parts).in_bytes(outer, array.nbytes // outer if outer else 0)


def place(array: numpy.ndarray, partition: Partition | str = "blocked", parts: int | None = None, *, keep_present: bool = False) -> int:
    """Places memory that exists: moves the pages of the array that are elsewhere. Returns how many were moved.

    The policy stays with the addresses: place an array that numpy made by "local" before it is freed, or its memory keeps the policy
    for whoever gets it next.
    """
    extent = _Extent(array, partition, parts, "place")
    if extent.bytes == 0:
        return 0
    moved = c.lib.ft_place(extent.address, extent.bytes, extent.partition, c.KEEP_PRESENT if keep_present else 0)
    if moved < 0:
        raise _error("place the array")
    return moved


def localise(array: numpy.ndarray, partition: Partition | str = "blocked", parts: int | None = None) -> None:
    """Places the array and lets the kernel populate its pages, before one thread reads a file into it. Contents stay."""
    extent = _Extent(array, partition, parts, "localise")
    if not array.flags.writeable:
        raise ValueError("cannot localise a read-only array: its pages are populated for writing")
    if extent.bytes and c.lib.ft_localise(extent.address, extent.bytes, extent.partition) != 0:
        raise _error("localise the array")


def zero(array: numpy.ndarray, partition: Partition | str = "blocked", parts: int | None = None) -> None:
    """Sets the array to zero by threads of the library's own, each on the node of its part."""
    extent = _Extent(array, partition, parts, "set to zero")
    if not array.flags.writeable:
        raise ValueError("cannot set a read-only array to zero")
    if array.dtype.hasobject:
        raise TypeError("cannot set an array of Python objects to zero bytes")
    if extent.bytes and c.lib.ft_zero_parallel(extent.address, extent.bytes, extent.partition) != 0:
        raise _error("set the array to zero")


@dataclasses.dataclass(frozen=True)
class Verdict:
    """Where the pages of an array are, compared with where the partition wants them."""

    pages: int
    present: int
    on_target: int
    border: int
    #: on_target / present; None if no page is present.
    share: float | None
    #: Present pages by node.
    node_pages: dict[int, int]
    #: What the answer does not say, and what to do about it.
    doubt: str | None


def verify(array: numpy.ndarray, partition: Partition | str = "blocked", parts: int | None = None) -> Verdict:
    """Asks the kernel where each page of the array is. Touches nothing."""
    extent = _Extent(array, partition, parts, "verify")
    if extent.bytes == 0:
        return Verdict(0, 0, 0, 0, None, {}, "the array has no elements")
    found = c.CVerdict()
    clear_doubt()
    if c.lib.ft_verify(extent.address, extent.bytes, extent.partition, found) != 0:
        raise _error("ask the kernel where the array is")
    share = None if math.isnan(found.share) else found.share
    by_node = {node: count for node, count in enumerate(found.node_pages) if count}
    return Verdict(found.pages, found.present, found.on_target, found.border, share, by_node, last_doubt())


def report(array: numpy.ndarray, partition: Partition | str = "blocked", parts: int | None = None, *, name: str | None = None) -> str:
    """The same in words."""
    extent = _Extent(array, partition, parts, "report on")
    known = name.encode() if name is not None else None
    length = c.lib.ft_report(None, 0, known, extent.address, extent.bytes, extent.partition)
    text = ctypes.create_string_buffer(length + 1)
    c.lib.ft_report(text, length + 1, known, extent.address, extent.bytes, extent.partition)
    return text.value.decode()


def expect(
    array: numpy.ndarray,
    partition: Partition | str = "blocked",
    share: float = 0.97,
    parts: int | None = None,
    *,
    name: str = "the array",
) -> None:
    """For tests: AssertionError if fewer than `share` of the present pages are on target.

    Skips the test (pytest or unittest) where that cannot be judged: the process may use one node only, no page is present, or the
    kernel may not be asked. What was not judged never passes.
    """
    __tracebackhide__ = True
    if not 0 <= share <= 1:
        raise ValueError(f"share must be between 0 and 1; it is {share!r}")
    try:
        verdict = verify(array, partition, parts)
    except OSError as error:
        _skip(f"placement of {name} not judged: {error}")
    if verdict.share is None:
        _skip(f"placement of {name} not judged: {verdict.doubt or 'no page of it is present; set its elements first'}")
    if len(nodes()) < 2:
        _skip(f"placement of {name} not judged: this process may use one node only, where everything is on target")
    if verdict.share < share:
        raise AssertionError(
            f"{verdict.share:.1%} of the present pages of {name} are on target, expected at least {share:.1%}:\n"
            + report(array, partition, parts, name=name)
        )


def _skip(reason: str):
    pytest = sys.modules.get("pytest")
    if pytest is not None:
        pytest.skip(reason)
    raise unittest.SkipTest(reason)
