"""Devices whose memory others share with this process: chunks that are mapped, events that are waited for, and the end of work.

The processor cannot read this memory. Tensors in it are described to other libraries, whose work on the device reads it.
"""

from __future__ import annotations

import contextlib
import ctypes
import itertools
import os
import sys
import threading
import weakref
from collections import deque
from typing import Callable, Deque, Dict, Iterator, List, Tuple

import numpy as np

from . import driver, service
from .dlpack import Array
from .errors import DeviceError

_SOON, _LATE = 0.0005, 0.025
"""Seconds between two questions whether work is complete."""


class Device:
    """A device of this process. Its primary context is retained until the process ends."""

    def __init__(self, of: driver.Driver, number: int, uuid: bytes) -> None:
        self.driver = of
        self.number = number
        self.uuid = uuid
        self.context = of.retain(number)
        self.limbo = Limbo(self)

    @contextlib.contextmanager
    def current(self) -> Iterator[driver.Driver]:
        """The driver, with this device's context as the thread's."""
        self.driver.call("cuCtxPushCurrent_v2", self.context)
        try:
            yield self.driver
        finally:
            self.driver.call("cuCtxPopCurrent_v2", ctypes.byref(ctypes.c_void_p()))

    def __str__(self) -> str:
        return f"cuda:{self.number}"


_lock = threading.Lock()
_open: Dict[bytes, Device] = {}
_chunks: "weakref.WeakValueDictionary[Tuple[bytes, int], Chunk]" = weakref.WeakValueDictionary()
_allocations: "Dict[Tuple[bytes, bytes], Allocation]" = {}
_process = os.getpid()


def name_of(uuid: bytes) -> str:
    """A UUID in the form that nvidia-smi prints."""
    text = uuid.hex()
    return f"GPU-{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


def find(uuid: bytes) -> Device:
    """This process's device with a UUID. Raises DeviceError where there is none."""
    with _lock:
        known = _open.get(uuid)
        if known is None:
            the = driver.the()
            uuids = the.uuids()
            if uuid not in uuids:
                have = " ".join(map(name_of, uuids))
                raise DeviceError(f"cuda: this arena is on device {name_of(uuid)}, and this process has [{have}]")
            known = _open[uuid] = Device(the, uuids[uuid], uuid)
        return known


def forget() -> None:
    """In a forked child, where the driver's objects are the parent's."""
    global _lock, _process
    _lock = threading.Lock()
    _process = os.getpid()
    _open.clear()
    _allocations.clear()
    driver.forget()


class Chunk:
    """Memory of another process, mapped here for reading. It is unmapped with the last reference, which must not be a finaliser's."""

    def __init__(self, device: Device, fd: int, size: int) -> None:
        self.device = device
        self.size = size
        self._mine = _process
        self.at = 0
        with device.current() as the:
            memory = the.open_memory(fd)
            try:
                at = the.reserve(size)
                try:
                    the.call("cuMemMap", at, size, 0, memory, 0)
                    try:
                        self._grant(the, at)
                    except BaseException:
                        the.call("cuMemUnmap", at, size)
                        raise
                except BaseException:
                    the.call("cuMemAddressFree", at, size)
                    raise
            finally:
                the.call("cuMemRelease", memory)  # the mapping keeps the memory
        self.at = at

    def _grant(self, the: driver.Driver, at: int) -> None:
        try:
            the.grant(at, self.size, self.device.number, driver.READ)
        except driver.CallError as e:
            if e.result not in (driver.INVALID_VALUE, driver.NOT_SUPPORTED):
                raise
            the.grant(at, self.size, self.device.number, driver.READ_WRITE)  # the driver knows no memory that is only read

    def __del__(self, finalizing: Callable[[], bool] = sys.is_finalizing) -> None:
        if finalizing() or not self.at or self._mine != _process:
            return
        with contextlib.suppress(DeviceError), self.device.current() as the:
            the.call("cuMemUnmap", self.at, self.size)
            the.call("cuMemAddressFree", self.at, self.size)


def chunk(owner: bytes, arena: int, device: Device, fd: int, size: int) -> Chunk:
    """An arena of an owner, which is mapped once however many connections announce it."""
    with _lock:
        known = _chunks.get((owner, arena))
        if known is None or known.device is not device or known.size != size:
            known = _chunks[owner, arena] = Chunk(device, fd, size)
        return known


class Allocation:
    """Memory that another allocator of another process made, open here: once for all connections and announcements that name it, which the
    driver wants."""

    def __init__(self, key: Tuple[bytes, bytes], device: Device, handle: bytes, size: int) -> None:
        self.device = device
        self.size = size
        self._key = key
        self._users = 1
        with device.current() as the:
            self.at = the.open_allocation(handle)
            try:
                self._check(the)
            except BaseException:
                the.call("cuIpcCloseMemHandle", self.at)
                raise

    def _check(self, the: driver.Driver) -> None:
        """The owner says how large it is. Where the driver knows, it has to agree."""
        try:
            base, size = the.range_of(self.at)
        except driver.CallError:
            return
        if base != self.at or size < self.size:
            raise DeviceError(f"cuda: got an allocation of {size} bytes on {self.device}, want the {self.size} that its owner announces")

    def close(self) -> None:
        """Ends one announcement. The last one closes the memory, which nothing uses any more."""
        with _lock:
            self._users -= 1
            if self._users or _allocations.get(self._key) is not self:
                return
            del _allocations[self._key]
            with contextlib.suppress(DeviceError), self.device.current() as the:
                the.call("cuIpcCloseMemHandle", self.at)


def allocation(owner: bytes, device: Device, handle: bytes, size: int) -> Allocation:
    """An allocation of an owner's process, which the caller closes."""
    key = (owner, handle)
    with _lock:
        known = _allocations.get(key)
        if known is None:
            known = _allocations[key] = Allocation(key, device, handle, size)
        elif known.device is not device or known.size != size:
            raise DeviceError(f"cuda: got an allocation of {size} bytes on {device}, want {known.size} on {known.device} as before")
        else:
            known._users += 1
        return known


class Event:
    """An event of another process, which that process records again and again."""

    def __init__(self, device: Device, handle: bytes) -> None:
        self.device = device
        self._mine = _process
        self._event = 0
        with device.current() as the:
            self._event = the.open_event(handle)

    def is_complete(self) -> bool:
        """Whether the last record, and so all before it, is reached."""
        with self.device.current() as the:
            return the.is_complete(self._event)

    def precede(self, stream: int) -> None:
        """Has later work of a stream wait for the last record."""
        with self.device.current() as the:
            the.call("cuStreamWaitEvent", stream, self._event, 0)

    def __del__(self, finalizing: Callable[[], bool] = sys.is_finalizing) -> None:
        if finalizing() or not self._event or self._mine != _process:
            return
        with contextlib.suppress(DeviceError), self.device.current() as the:
            the.call("cuEventDestroy_v2", self._event)


class _Memory:
    """Bytes of a device as numpy knows memory. numpy describes them and never reads them."""

    __slots__ = ("__array_interface__",)

    def __init__(self, at: int, size: int, read_only: bool) -> None:
        self.__array_interface__ = {"version": 3, "typestr": "|u1", "shape": (size,), "data": (at, read_only)}


def bytes_at(at: int, size: int, read_only: bool = True) -> Array:
    """An array that only describes bytes of a device: whoever reads it crashes."""
    return np.asarray(_Memory(at, size, read_only))


def copy(device: Device, at: int, size: int, stream: int) -> Array:
    """A copy of bytes of the device, which a stream makes. It is freed after the last reference, when the device no longer uses it."""
    with device.current() as the:
        to = the.allocate(max(size, 1))
        try:
            the.call("cuMemcpyDtoDAsync_v2", to, at, size, stream)
        except BaseException:
            the.call("cuMemFree_v2", to)
            raise
    made = bytes_at(to, size, False)
    weakref.finalize(made, _leave_copy, device, to, _process).atexit = False
    return made


def _leave_copy(device: Device, at: int, process: int) -> None:
    if process == _process:
        device.limbo.leave(lambda: device.driver.call("cuMemFree_v2", at))


class Limbo:
    """What must wait until the device has done all work that was submitted before: other libraries tell nobody what their work uses.

    Finalisers only put something in here. The service's thread asks the device, and never waits for it where the driver has an event of
    all work; drivers before 12.5 lack that, and there it does.
    """

    def __init__(self, device: Device) -> None:
        self._device = device
        self._new: Deque[Callable[[], None]] = deque()
        self._waiting: List[Tuple[int, List[Callable[[], None]]]] = []
        self._events: List[int] = []
        """For further records."""
        self._pause = _SOON

    def leave(self, then: Callable[[], None]) -> None:
        """Has then called on the service's thread, with the device current, when the work is complete. It takes no lock and does not wait."""
        self._new.append(then)
        service.nudge(self)

    def serve(self, events: int, buffer: memoryview) -> None:
        """See Served."""
        try:
            with self._device.current():
                self._ask()
        except DeviceError:  # nothing runs any more
            self._end_all()
        if self._waiting:
            service.the().remind(self, self._pause)
            self._pause = min(2 * self._pause, _LATE)

    def _ask(self) -> None:
        new = [self._new.popleft() for _ in range(len(self._new))]
        if new:
            self._waiting.append((0, new))  # first: an error ends them, too
            self._waiting[-1] = (self._record(), new)
            self._pause = _SOON
        the = self._device.driver
        done = list(itertools.takewhile(lambda w: not w[0] or the.is_complete(w[0]), self._waiting))
        for event, all_of_it in done:
            self._waiting.pop(0)
            if event:
                self._events.append(event)
            for then in all_of_it:
                then()

    def _record(self) -> int:
        """An event behind all work of the device; 0 where that is complete."""
        the = self._device.driver
        if not the.has("cuCtxRecordEvent"):
            the.call("cuCtxSynchronize")
            return 0
        if not self._events:
            self._events.append(the.make_event())
        the.call("cuCtxRecordEvent", self._device.context, self._events[-1])
        return self._events.pop()

    def _end_all(self) -> None:
        waiting, self._waiting = self._waiting, []
        self._events.extend(event for event, _ in waiting if event)
        for then in [then for _, all_of_it in waiting for then in all_of_it] + list(self._new):
            with contextlib.suppress(DeviceError):
                then()
        self._new.clear()

    def fileno(self) -> int:
        """See Served. There is none: this is only nudged and reminded."""
        return -1

    def reclaim(self) -> bool:
        """See Served."""
        return True
