# Computes in two threads, each in functions of its own. Prints "THREAD LINE" of the line in which each spends its time.
import sys
import threading
import time
import zlib

SECONDS = 0.4
data = bytes(1 << 20)
found = []


def native():
    line = sys._getframe().f_lineno + 3
    found.append((threading.get_native_id(), line))
    while time.thread_time() < SECONDS:
        zlib.crc32(data)


def counts():
    return sum(i * i for i in range(2000))


def interpreted():
    found.append((threading.get_native_id(), counts.__code__.co_firstlineno + 1))
    while time.thread_time() < SECONDS:
        counts()


threads = [threading.Thread(target=function) for function in (native, interpreted)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
for one in found:
    print(*one)
