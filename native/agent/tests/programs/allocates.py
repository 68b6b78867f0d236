# Allocates blocks of known sizes on known lines: each prints its "BYTES FUNCTION LINE". The size requested from
# the allocator may be some bytes larger.
import contextvars
import sys
import threading
import zlib

seen = []


def here(size, up=0):
    frame = sys._getframe(1)
    seen.append((size, frame.f_code.co_qualname, frame.f_lineno - up))
    return size


def block(size):
    return bytearray(size)


def function():
    a = bytearray(here(100_000))
    b = bytearray(
        here(110_000, 1)
    )
    return a, b


class Grid:
    def method(self):
        self.field = bytearray(here(120_000))

    @staticmethod
    def nested():
        def inner():
            return bytearray(here(130_000))
        return inner()


def generator():
    kept = bytearray(here(140_000))
    yield kept
    yield bytearray(here(150_000))


def raises():
    try:
        bytearray(here(160_000)) / 2
    except TypeError:
        held = bytearray(here(170_000))
        try:
            raise ValueError from None
        finally:
            held = bytearray(here(180_000))


def deep(levels):
    return deep(levels - 1) if levels else bytearray(here(190_000))


function()
Grid().method()
Grid.nested()
lists = [bytearray(here(size)) for size in (200_000, 210_000)]
list(generator())
try:
    raises()
except ValueError:
    pass
deep(40)
(lambda: bytearray(here(220_000)))()
sorted([1, 2], key=lambda n: len(bytearray(here(230_000 + 100 * n))))
contextvars.copy_context().run(lambda: bytearray(here(240_000)))
exec(compile("\n\n\nbytearray(here(250_000))", "made \u00fcp.py", "exec"))
exec(compile("\nbytearray(here(260_000))", "x" * 300 + "/\u4e2d\u6587.py", "exec"))


# Code objects that use the same memory one after another: the name of a released one must not appear for the next.
for number in range(200):
    exec(compile("\n" * number + "bytearray(here(%d))" % (300_000 + 100 * number), "again.py", "exec"))


def in_thread(number):
    for _ in range(50):
        bytearray(here(400_000 + 100 * number))
        zlib.compress(bytes(350_000), 0)  # releases the lock, and allocates


threads = [threading.Thread(target=in_thread, args=[n]) for n in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()


class Last:
    def __del__(self):
        bytearray(500_000)


last = Last()
daemon = threading.Thread(target=lambda: [zlib.compress(bytes(1_000_000), 1) for _ in iter(int, 1)], daemon=True)
daemon.start()
print("\n".join("%d %s %d" % line for line in sorted(set(seen))))
