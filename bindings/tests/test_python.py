# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Tests of the Python package, for pytest or `python3 -m unittest`. What is present or mapped is asked of the kernel."""
import ctypes
import gc
import mmap
import os
import threading
import unittest

import firsttouch
import numpy

libc = ctypes.CDLL(None, use_errno=True)
PAGE = mmap.PAGESIZE


def present(address, size):
    """The present pages of the range, or None if it is not mapped."""
    first, end = -(-address // PAGE) * PAGE, (address + size) // PAGE * PAGE
    states = (ctypes.c_ubyte * ((end - first) // PAGE))()
    if libc.mincore(ctypes.c_void_p(first), ctypes.c_size_t(end - first), states) != 0:
        return None
    return sum(state & 1 for state in states)


class Arrays(unittest.TestCase):
    def test_nothing_is_touched(self):
        array = firsttouch.empty(1_000_000)
        self.assertEqual(present(array.ctypes.data, array.nbytes), 0)
        array[:] = 1
        self.assertGreater(present(array.ctypes.data, array.nbytes), 1900)

    def test_memory_is_freed_with_the_last_view(self):
        array = firsttouch.empty((1000, 1000), numpy.float32)
        address, size = array.ctypes.data, array.nbytes
        view = array[10:20].T
        del array
        gc.collect()
        view[:] = 1
        self.assertIsNotNone(present(address, size))
        del view
        gc.collect()
        self.assertIsNone(present(address, size))

    def test_shapes_and_types(self):
        self.assertEqual(firsttouch.empty((3, 4, 5), "i4").strides, numpy.empty((3, 4, 5), "i4").strides)
        self.assertEqual(firsttouch.empty((300, 400), order="F").strides, numpy.empty((300, 400), order="F").strides)
        self.assertEqual(firsttouch.empty(()).shape, ())
        self.assertEqual(firsttouch.empty((0, 5)).shape, (0, 5))
        record = numpy.dtype([("x", "f8"), ("n", "i4")])
        records = firsttouch.empty(10_000, record)
        records["n"] = 7
        self.assertEqual(records["n"].sum(), 70_000)
        self.assertTrue(firsttouch.empty(10).flags.writeable)

    def test_elements_that_are_arrays(self):
        for shape in (10, (4, 5), (), (0, 5), 10_000):
            for kind in (("f8", (3,)), (("f8", (3,)), (2,)), ([("x", "f8"), ("n", "i4")], (2, 2)), ("f8", (0,))):
                for order in "CF":
                    ours = firsttouch.empty(shape, numpy.dtype(kind), order=order)
                    theirs = numpy.empty(shape, numpy.dtype(kind), order)
                    self.assertEqual((ours.shape, ours.dtype, ours.strides), (theirs.shape, theirs.dtype, theirs.strides))
        array = firsttouch.empty(100_000, numpy.dtype(("f8", (3,))))
        array[:] = (1, 2, 3)
        self.assertEqual(array.sum(), 600_000)
        self.assertGreater(firsttouch.verify(array).share, 0.99)

    def test_arguments(self):
        for arguments, error, words in [
            (((3,), float, "blokced"), ValueError, "'blocked'"),
            (((3,), float, 7), ValueError, "partition must be"),
            (((3,), float, "interleaved", 2), ValueError, "parts goes with 'blocked'"),
            (((3,), float, firsttouch.blocked(2), 2), ValueError, "blocked(parts)"),
            (((-1,),), ValueError, "negative"),
            (((3,), object), TypeError, "numpy.empty"),
            ((2**57,), MemoryError, "cannot allocate"),
        ]:
            with self.assertRaises(error) as raised:
                firsttouch.empty(*arguments)
            self.assertIn(words, str(raised.exception))
        for call in [lambda: firsttouch.blocked(0), lambda: firsttouch.cyclic(0), lambda: firsttouch.by_bounds([0, 5, 3]),
                     lambda: firsttouch.weighted([1, -1]), lambda: firsttouch.weighted([]), lambda: firsttouch.bind(-1),
                     lambda: firsttouch.join_team(2, 2), lambda: firsttouch.blocked().for_team(64), lambda: firsttouch.empty(3, order="A")]:
            self.assertRaises(ValueError, call)
        self.assertRaises(ValueError, firsttouch.place, numpy.zeros((100, 100))[:, ::2])
        for shape in (1.5, (2.5, 3), "ab"):
            self.assertRaises(TypeError, firsttouch.empty, shape)
        self.assertRaises(MemoryError, firsttouch.empty, 2**64)
        self.assertRaises(TypeError, firsttouch.join_team, "0", 3)
        self.assertRaises(ValueError, firsttouch.join_team, 0, 2**64 + 1)

    def test_numbers_that_c_cannot_hold(self):
        for call in [lambda: firsttouch.bind(2**32), lambda: firsttouch.bind(1024), lambda: firsttouch.blocked(2**20 + 1),
                     lambda: firsttouch.empty(100_000, partition=firsttouch.by_bounds([0, 2**61])),
                     lambda: firsttouch.empty(100_000, partition=firsttouch.cyclic(2**61 + 1)), lambda: firsttouch.cyclic(2**64),
                     lambda: firsttouch.static_bounds(10, 0), lambda: firsttouch.static_bounds(10, 2**64), lambda: firsttouch.blocked(2.0)]:
            with self.assertRaises(ValueError) as raised:
                call()
            self.assertRegex(str(raised.exception), "must be|at most")

    def test_numbers_of_numpy(self):
        self.assertEqual(firsttouch.blocked(numpy.int64(2)).parts, 2)
        self.assertEqual(firsttouch.empty(numpy.int64(10), parts=numpy.int32(2)).shape, (10,))
        self.assertEqual(firsttouch.empty(numpy.array([3, 4])).shape, (3, 4))
        self.assertEqual(firsttouch.cyclic(numpy.uint8(200)).in_bytes(1000, 8).chunk, 1600)
        self.assertRaises(TypeError, firsttouch.place, [1, 2])


class Partitions(unittest.TestCase):
    def test_static_bounds(self):
        self.assertEqual(firsttouch.static_bounds(10, 3), [0, 4, 7, 10])
        self.assertEqual(firsttouch.static_bounds(2, 4), [0, 1, 2, 2, 2])

    def test_bytes(self):
        c = firsttouch.blocked(3).in_bytes(10, 800)
        self.assertEqual(c.bounds[: c.parts + 1], [0, 3200, 5600, 8000])
        self.assertEqual(firsttouch.cyclic(5).in_bytes(10, 800).chunk, 4000)


class Placement(unittest.TestCase):
    def setUp(self):
        self.nodes = firsttouch.nodes()

    def test_verify(self):
        array = firsttouch.empty((1000, 1000), partition="blocked", parts=4)
        self.assertIsNone(firsttouch.verify(array, "blocked", 4).share)
        array[:] = 1
        verdict = firsttouch.verify(array, "blocked", 4)
        self.assertGreater(verdict.share, 0.99)
        self.assertEqual(sum(verdict.node_pages.values()), verdict.present)
        self.assertIn("array", firsttouch.report(array, "blocked", 4, name="array"))

    def test_every_partition(self):
        for partition in (firsttouch.blocked(4), firsttouch.blocked().over_nodes(), firsttouch.cyclic(10_000, 4), firsttouch.weighted(range(1, len(self.nodes) + 1)),
                          firsttouch.by_bounds([0, 100_000, 500_000]), firsttouch.interleaved(), firsttouch.bind(self.nodes[-1])):
            array = firsttouch.empty(500_000, partition=partition)
            array[:] = 1
            verdict = firsttouch.verify(array, partition)
            self.assertGreaterEqual(verdict.share, 0.99, partition)
            self.assertEqual(verdict.present, verdict.pages)

    def test_arrays_that_exist(self):
        array = numpy.arange(1_000_000.0)
        self.assertGreaterEqual(firsttouch.place(array, firsttouch.interleaved()), 0)
        self.assertEqual(array[-1], 999_999)
        firsttouch.localise(array, firsttouch.cyclic(10_000))
        self.assertEqual(array.sum(), 499_999_500_000)
        firsttouch.zero(array, "blocked")
        self.assertFalse(array.any())
        self.assertEqual(firsttouch.place(numpy.empty(0)), 0)

    def test_arrays_that_cannot_be_written(self):
        array = numpy.ones(100_000)
        array.flags.writeable = False
        self.assertRaises(ValueError, firsttouch.localise, array)
        self.assertRaises(ValueError, firsttouch.zero, array)

    def test_all_on_one_node(self):
        for node in self.nodes:
            array = firsttouch.empty(1_000_000, partition=firsttouch.bind(node))
            array[:] = 1
            verdict = firsttouch.verify(array, firsttouch.bind(node))
            self.assertGreater(verdict.node_pages.get(node, 0), 0.99 * verdict.present)

    def test_expect_skips_what_it_cannot_judge(self):
        array = firsttouch.empty(1_000_000)
        with self.assertRaises(BaseException) as raised:
            firsttouch.expect(array, "blocked")
        self.assertIn("not judged", str(raised.exception))
        array[:] = 1
        if len(self.nodes) == 1:
            with self.assertRaises(BaseException) as raised:
                firsttouch.expect(array, "blocked")
            self.assertIn("one node", str(raised.exception))
            return
        firsttouch.expect(array, "blocked", 0.97)
        firsttouch.place(array, firsttouch.bind(self.nodes[0]))
        with self.assertRaises(AssertionError) as raised:
            firsttouch.expect(array, firsttouch.bind(self.nodes[1]), name="moved")
        self.assertIn("moved", str(raised.exception))

    def test_threads_of_the_team(self):
        joined = [threading.Thread(target=firsttouch.join_team, args=(thread, 3, 5)) for thread in range(3)]
        for thread in joined:
            thread.start()
            thread.join()
        array = firsttouch.empty(300_000, partition=firsttouch.blocked().for_team(5))
        array[:] = 1
        self.assertGreater(firsttouch.verify(array, firsttouch.blocked().for_team(5)).share, 0.99)

    def test_fork(self):
        array = firsttouch.empty(1_000_000)
        array[:] = 1
        child = os.fork()
        if child == 0:
            os._exit(0 if firsttouch.empty(1_000_000).size == array.size and array[5] == 1 else 1)
        self.assertEqual(os.waitpid(child, 0)[1], 0)


if __name__ == "__main__":
    unittest.main()
