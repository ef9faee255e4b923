"""Receives tensors of a device from "python", has a stream read each, and says what it saw. Its driver is python/tests/libcuda.c."""

import ctypes
import os
import sys
import time

import tenure
from tenure import dlpack

c = ctypes.CDLL(os.environ["TENURE_LIBCUDA"])
c.fake_read.argtypes = [ctypes.c_uint64, ctypes.c_uint64, ctypes.c_uint64, ctypes.c_void_p]


def say(text: str) -> None:
    print(text, flush=True)


for received in tenure.attach("python"):
    n = received.shape[0]
    capsule = received.__dlpack__(stream=7, max_version=(1, 3))
    at = dlpack.Versioned.from_address(dlpack.pointer_of(capsule, dlpack.NEW)).tensor.data
    seen = (ctypes.c_float * n)()
    c.fake_read(7, at, 4 * n, seen)
    label = received.label
    if label.startswith("hold"):
        say("holds")
        sys.stdin.readline()
    del capsule
    received.release()
    if label.startswith("late"):
        say("late" if c.fake_run() else "violation: no stream waits")
    while c.fake_run():
        time.sleep(0.001)
    if list(seen) != [int(label.split()[-1]) + i for i in range(n)]:
        say(f"violation: {label}: got {seen[0]}, {seen[n - 1]}")
say("clean")
