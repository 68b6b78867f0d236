# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Loads libfirsttouch and declares the functions of firsttouch.h that the package calls."""
from __future__ import annotations

import ctypes
import os
import pathlib

LOCAL, BLOCKED, CYCLIC, BY_BOUNDS, INTERLEAVED, WEIGHTED, REPLICATED, BIND = range(8)
THREADS, NODES = range(2)
HUGE_PAGES, SMALL_PAGES, KEEP_PRESENT, STRICT = 1, 2, 4, 8


class CPartition(ctypes.Structure):
    """struct ft_partition."""

    _fields_ = [
        ("kind", ctypes.c_int32),
        ("unit", ctypes.c_int32),
        ("parts", ctypes.c_size_t),
        ("chunk", ctypes.c_size_t),
        ("bounds", ctypes.POINTER(ctypes.c_size_t)),
        ("weights", ctypes.POINTER(ctypes.c_double)),
        ("node", ctypes.c_int32),
        ("team", ctypes.c_int32),
    ]


class CVerdict(ctypes.Structure):
    """struct ft_verdict."""

    _fields_ = [
        ("pages", ctypes.c_size_t),
        ("present", ctypes.c_size_t),
        ("on_target", ctypes.c_size_t),
        ("border", ctypes.c_size_t),
        ("share", ctypes.c_double),
        ("node_pages", ctypes.c_size_t * 64),
        ("error", ctypes.c_int),
    ]


PARTITION = ctypes.POINTER(CPartition)
FUNCTIONS = {
    "ft_alloc": (ctypes.c_void_p, ctypes.c_size_t, PARTITION, ctypes.c_uint),
    "ft_free": (None, ctypes.c_void_p),
    "ft_place": (ctypes.c_ssize_t, ctypes.c_void_p, ctypes.c_size_t, PARTITION, ctypes.c_uint),
    "ft_localise": (ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t, PARTITION),
    "ft_zero_parallel": (ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t, PARTITION),
    "ft_copy_parallel": (ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t, PARTITION),
    "ft_verify": (ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t, PARTITION, ctypes.POINTER(CVerdict)),
    "ft_report": (ctypes.c_size_t, ctypes.c_char_p, ctypes.c_size_t, ctypes.c_char_p, ctypes.c_void_p, ctypes.c_size_t, PARTITION),
    "ft_team_join": (ctypes.c_int, ctypes.c_int, ctypes.c_size_t, ctypes.c_size_t),
    "ft_team_size": (ctypes.c_size_t, ctypes.c_int),
    "ft_nodes": (ctypes.c_size_t, ctypes.POINTER(ctypes.c_int), ctypes.c_size_t),
    "ft_last_doubt": (ctypes.c_char_p,),
    "ft_clear_doubt": (None,),
    "ft_version": (ctypes.c_char_p,),
}


def _load() -> ctypes.CDLL:
    beside = pathlib.Path(__file__).with_name("libfirsttouch.so")
    path = os.environ.get("FIRSTTOUCH_LIBRARY") or (str(beside) if beside.exists() else "libfirsttouch.so.1")
    try:
        library = ctypes.CDLL(path, use_errno=True)
    except OSError as error:
        raise ImportError(
            f"cannot load libfirsttouch: {error}; install the firsttouch wheel, or the library by `make install`, or set "
            "FIRSTTOUCH_LIBRARY to the path of libfirsttouch.so"
        ) from error
    for name, (result, *arguments) in FUNCTIONS.items():
        function = getattr(library, name, None)
        if function is None:
            raise ImportError(f"cannot use {path}: it has no {name}; it is another version than this package needs (1.x)")
        function.restype = result
        function.argtypes = arguments
    return library


lib = _load()
