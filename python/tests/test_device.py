"""Tensors of devices: mapped, lent to other libraries, waited for and given back. The driver is tests/libcuda.c."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import itertools
import os
import select
import shutil
import socket
import struct
import subprocess
import threading
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, Optional, Tuple

import numpy as np
import pytest
from conftest import Raw, eventually
from test_dlpack import TYPES, Taken, bits_of

import tenure
from tenure import device, dlpack, driver, dtypes, service, wire

pytestmark = pytest.mark.usefixtures("nothing_is_left")

UNIT = 1 << 16
MAGIC = 0x454B4146554E4554
UUID = b"fake" + bytes(12)
F32 = dtypes.from_codes(2, 32)
_ids = itertools.count(0x1000)
_built: Dict[str, str] = {}


def build(folder: Path, macro: str) -> str:
    """The library, or a skipped test where there is no C compiler."""
    if macro not in _built:
        compiler = next((c for c in (os.environ.get("CC", ""), "gcc", "clang", "cc") if c and shutil.which(c)), None)
        if compiler is None:
            pytest.skip("no C compiler (gcc, clang or cc) to compile tests/libcuda.c")
        path = folder / f"libcuda{macro}.so"
        source = Path(__file__).with_name("libcuda.c")
        subprocess.run([compiler, "-O1", "-shared", "-fPIC", "-pthread", f"-D{macro or 'NEW'}", "-o", str(path), str(source)], check=True)
        _built[macro] = str(path)
    return _built[macro]


class Library:
    """The controls of the library."""

    def __init__(self, path: str) -> None:
        self.c = ctypes.CDLL(path)
        self.c.fake_read.argtypes = [ctypes.c_uint64, ctypes.c_uint64, ctypes.c_uint64, ctypes.c_void_p]
        self.c.fake_spin.argtypes = [ctypes.c_uint64]
        self.c.fake_fail.argtypes = [ctypes.c_char_p, ctypes.c_int]
        self.c.fake_reset()
        self.reads: List[Any] = []

    def read(self, at: int, size: int, stream: int = 7) -> "ctypes.Array[Any]":
        """What a stream will read; the bytes are there after fake_run."""
        to = (ctypes.c_char * size)()
        self.reads.append(to)
        self.c.fake_read(stream, at, size, to)
        return to


def use(monkeypatch: pytest.MonkeyPatch, path: str) -> None:
    """Makes this process one that has loaded no driver."""
    monkeypatch.setenv(driver.LIBRARY, path)
    monkeypatch.setattr(driver, "_the", None)
    monkeypatch.setattr(device, "_open", {})


def checked(monkeypatch: pytest.MonkeyPatch, path: str) -> Iterator[Library]:
    library = Library(path)
    use(monkeypatch, path)
    try:
        yield library
    finally:
        gc.collect()
    assert eventually(lambda: library.c.fake_live() == sum(len(d.limbo._events) for d in device._open.values()))
    for d in device._open.values():
        with d.current() as the:
            for event in d.limbo._events:
                the.call("cuEventDestroy_v2", event)


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("libcuda")


@pytest.fixture
def library(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Library]:
    yield from checked(monkeypatch, build(folder, ""))


@pytest.fixture
def old(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Library]:
    yield from checked(monkeypatch, build(folder, "OLD"))


def backing(size: int, content: bytes = b"") -> int:
    """A file of the test driver: bytes of a device, or the marks of an event."""
    fd = os.memfd_create("tenure-fake-cuda", os.MFD_CLOEXEC)
    os.ftruncate(fd, size + 4096)
    os.pwrite(fd, content, 0)
    os.pwrite(fd, struct.pack("<4Q", MAGIC, next(_ids), size, 0), size)
    return fd


class Event:
    """An event of the owner: records have numbers, and are reached when the test says so."""

    def __init__(self) -> None:
        self.fd = backing(512 * 16)
        self.handle = struct.pack("<4QIIB23x", MAGIC, 1, 1, 1, os.getpid(), self.fd, 1)

    def record(self, number: int) -> None:
        os.pwrite(self.fd, struct.pack("<Q", number), 512 * 16 + 48)

    def reach(self, number: int) -> None:
        os.pwrite(self.fd, struct.pack("<Q", number), number % 512 * 16)

    def close(self) -> None:
        os.close(self.fd)


class DeviceOwner(Raw):
    """An owner on a device, driven by hand."""

    def arena(self, content: bytes = b"", uuid: bytes = UUID, arena_id: Optional[int] = None) -> int:
        made = next(_ids) if arena_id is None else arena_id
        fd = backing(UNIT, content)
        self.send(wire.arena(wire.Arena(made, UNIT, wire.CUDA_ARENA, UNIT, uuid)), fd)
        os.close(fd)
        return made

    def allocation(self, fd: int, size: int = 1000, uuid: bytes = UUID) -> int:
        """Announces memory of another allocator: that of a backing."""
        made = next(_ids)
        (nonce,) = struct.unpack("<8xQ16x", os.pread(fd, 32, UNIT))
        handle = struct.pack("<4QIIB23x", MAGIC, 1, nonce, UNIT, os.getpid(), fd, 0)
        self.send(wire.arena(wire.Arena(made, size, wire.ALLOCATION_ARENA, 0, uuid, handle)))
        return made

    def mapped(self, content: bytes = b"") -> int:
        made = self.arena(content)
        assert self.recv() == (wire.MAPPED, made)
        return made

    def offer(self, arena: int, serial: int, shape: Tuple[int, ...] = (2, 3), of: dtypes.DType = F32, offset: int = 256, mark: Tuple[int, int] = (0, 0)) -> tenure.Received:
        """Offers a tensor in an arena, and receives it."""
        packet = bytearray(wire.offer(0, serial, arena, offset, 1024, 1, wire.form(of, False, 0, shape, wire.rows(shape)), b"x"))
        struct.pack_into("<B", packet, 8 + 41, wire.CUDA)
        struct.pack_into("<II", packet, 8 + 56, *mark)
        self.send(bytes(packet))
        return self.peer.receive(5)

    def event(self, slot: int) -> Event:
        made = Event()
        self.send(wire.event(wire.Event(slot, made.handle)))
        assert self.recv() == (wire.OPENED, wire.Opened(slot, 0, ""))
        return made

    def silent(self) -> bool:
        """Whether nothing comes for a moment."""
        return not select.select([self.sock], [], [], 0.08)[0]

    def released(self, *serials: int) -> bool:
        return self.recv() == (wire.RELEASE, tuple(serials))


Start = Callable[..., DeviceOwner]


@pytest.fixture
def start() -> Iterator[Start]:
    made: List[DeviceOwner] = []

    def make(**options: Any) -> DeviceOwner:
        made.append(DeviceOwner(**options))
        return made[-1]

    yield make
    if driver._the is not None:  # what is submitted is done
        with contextlib.suppress(AttributeError):
            driver._the._library.fake_stop()
            driver._the._library.fake_auto(1)
    gc.collect()  # exceptions refer to frames with tensors
    for r in made:
        r.close()


NUMBERS = bytes(256) + np.arange(6, dtype="f4").tobytes()


def test_in_place(library: Library, start: Start) -> None:
    o = start()
    got = o.offer(o.mapped(NUMBERS), 1)
    assert isinstance(got, tenure.DeviceTensor) and got.__dlpack_device__() == (2, 0) and str(got.device) == "cuda:0"
    assert (got.shape, got.dtype.name, got.label) == ((2, 3), "f32", "x")
    for what in (lambda: got.array, lambda: got.raw, lambda: np.asarray(got)):
        with pytest.raises(tenure.Error, match="got a tensor on cuda:0, want one in host memory"):
            what()
    taken = Taken(got.__dlpack__(stream=7, max_version=(1, 3)))
    assert (taken.tensor.device, taken.tensor.number, taken.struct.flags) == (2, 0, dlpack.READ_ONLY)
    assert taken.shape == (2, 3) and taken.type == (2, 32, 1)
    seen = library.read(taken.data, 24)
    assert library.c.fake_run() == 0 and np.frombuffer(seen, "f4").tolist() == [0, 1, 2, 3, 4, 5]
    taken.delete()
    assert not got.closed and got.release() and o.released(1)
    with pytest.raises(tenure.ClosedError):
        got.__dlpack__()


def test_release_waits_for_work(library: Library, start: Start) -> None:
    o = start()
    got = o.offer(o.mapped(NUMBERS), 1)
    taken = Taken(got.__dlpack__(stream=7, max_version=(1, 3)))
    seen = library.read(taken.data, 24)
    taken.delete_on_a_thread_of_c()
    got.release()
    assert o.silent()
    library.c.fake_run()
    assert o.released(1) and np.frombuffer(seen, "f4")[5] == 5 and library.c.fake_synchronised() == 0


def test_later_work_is_not_waited_for(library: Library, start: Start) -> None:
    o = start()
    arena = o.mapped(NUMBERS)
    first, second = o.offer(arena, 1), o.offer(arena, 2)
    for got in (first, second):
        Taken(got.__dlpack__(stream=7, max_version=(1, 3))).delete()
    first.release()
    assert o.released(1)
    library.c.fake_spin(9)
    second.release()
    assert o.silent()
    library.c.fake_stop()
    assert o.released(2)


def test_what_nobody_took_goes_at_once(library: Library, start: Start) -> None:
    o = start()
    got = o.offer(o.mapped(), 1)
    library.c.fake_spin(7)
    assert got.release() and o.released(1)
    library.c.fake_stop()


def test_old_driver(old: Library, start: Start) -> None:
    o = start()
    got = o.offer(o.mapped(), 1)
    Taken(got.__dlpack__(stream=7, max_version=(1, 3))).delete()
    old.c.fake_spin(7)
    got.release()
    assert o.silent()
    old.c.fake_stop()
    assert o.released(1) and old.c.fake_synchronised() == 1


def test_the_stream_waits_for_the_owner(library: Library, start: Start) -> None:
    o = start()
    arena = o.mapped(NUMBERS)
    event = o.event(1)
    event.record(1)
    got = o.offer(arena, 1, mark=(1, 1))
    for stream, name in ((7, 7), (None, 1)):
        taken = Taken(got.__dlpack__(stream=stream, max_version=(1, 3)))
        library.read(taken.data, 24, name)
        taken.delete()
    assert library.c.fake_run() == 4  # two waits, two reads
    free = Taken(got.__dlpack__(stream=-1, max_version=(1, 3)))
    free.delete()
    assert library.c.fake_run() == 4
    event.reach(1)
    assert library.c.fake_run() == 0
    taken = Taken(got.__dlpack__(stream=7, max_version=(1, 3)))
    taken.delete()
    assert library.c.fake_run() == 0  # complete: no wait is submitted
    library.c.fake_auto(1)
    got.release()
    assert o.released(1)
    event.close()


def test_owner_dies_with_its_work(library: Library, start: Start) -> None:
    o = start()
    arena = o.mapped(NUMBERS)
    event = o.event(1)
    event.record(1)
    got, whole = o.offer(arena, 1, mark=(1, 1)), o.offer(arena, 2)
    o.sock.close()
    eventually(lambda: o.peer._gone)
    with pytest.raises(tenure.GoneError, match="^dlpack: the owner died before the work that writes the tensor was complete$"):
        got.__dlpack__(stream=7, max_version=(1, 3))
    taken = Taken(whole.__dlpack__(stream=7, max_version=(1, 3)))  # the memory stays
    seen = library.read(taken.data, 24)
    library.c.fake_run()
    assert np.frombuffer(seen, "f4")[5] == 5
    taken.delete()
    event.reach(1)
    Taken(got.__dlpack__(stream=7, max_version=(1, 3))).delete()  # it was completed before the death was noticed
    got.release()
    whole.release()
    event.close()


def test_copies(library: Library, start: Start) -> None:
    o = start()
    got = o.offer(o.mapped(NUMBERS), 1)
    old = Taken(got.__dlpack__(stream=7))
    new = Taken(got.__dlpack__(stream=7, max_version=(1, 3), copy=True))
    assert not old.versioned and new.struct.flags == dlpack.COPIED and old.data != new.data
    got.release()
    assert o.silent()  # the copies are to be made
    seen = [library.read(t.data, 24) for t in (old, new)]
    assert library.c.fake_run() == 0 and o.released(1)
    assert all(np.frombuffer(s, "f4").tolist() == [0, 1, 2, 3, 4, 5] for s in seen)
    old.delete()
    new.delete_on_a_thread_of_c()


def test_copies_for_writing(library: Library) -> None:
    sock, other = tenure.pair()
    sock.send(wire.hello(wire.Hello(bytes(16), bytes(16), 10, 1 << 30)))
    with tenure.Owner() as owner:
        o = DeviceOwner.__new__(DeviceOwner)
        o.sock, o.owner, o.own = sock, owner, False
        o.peer = tenure.connect(other, owner, writable="cow")
        assert o.recv()[0] == wire.HELLO
        got = o.offer(o.mapped(NUMBERS), 1)
        taken = Taken(got.__dlpack__(stream=7, max_version=(1, 3)))
        assert taken.struct.flags == dlpack.COPIED
        library.c.fake_run()
        taken.delete()
        got.release()
        assert o.released(1)
        o.close()


@pytest.mark.parametrize("of", TYPES, ids=lambda of: of.name)
def test_every_type(library: Library, start: Start, of: dtypes.DType) -> None:
    o = start()
    bits = bits_of(of, 18)
    got = o.offer(o.mapped(bytes(256) + bits.tobytes()), 1, (3, 6), of)
    taken = Taken(got.__dlpack__(stream=7, max_version=(1, 3)))
    assert taken.type == (of.code, of.bits, 1) and taken.shape == (3, 6) and taken.strides == (6, 1)
    seen = library.read(taken.data, bits.size)
    library.c.fake_run()
    assert bytes(seen) == bits.tobytes()
    taken.delete()


def test_no_elements(library: Library, start: Start) -> None:
    o = start()
    got = o.offer(o.mapped(), 1, (0, 3))
    taken = Taken(got.__dlpack__(max_version=(1, 3)))
    assert taken.shape == (0, 3)
    taken.delete()
    Taken(got.__dlpack__()).delete()
    library.c.fake_run()


@pytest.mark.parametrize(
    "asked,kind,text",
    [
        ({"stream": 0}, BufferError, "got stream 0, want -1, 1, 2 or a CUstream"),
        ({"stream": -2}, BufferError, "got stream -2"),
        ({"stream": "7"}, TypeError, "got stream '7', want an integer"),
        ({"dl_device": (1, 0)}, BufferError, r"got device \(1, 0\), want \(2, 0\)"),
        ({"dl_device": 2}, TypeError, "dl_device"),
        ({"copy": 1}, TypeError, "got copy 1"),
        ({"copy": False}, BufferError, "takes no copy"),
        ({"copy": True, "stream": -1}, BufferError, "got stream -1 for a copy"),
        ({"max_version": 1}, TypeError, "max_version"),
    ],
)
def test_requests_that_are_refused(library: Library, start: Start, asked: Dict[str, Any], kind: Any, text: str) -> None:
    o = start()
    got = o.offer(o.mapped(), 1)
    with pytest.raises(kind, match=text):
        got.__dlpack__(**asked)
    assert got.release() and o.released(1)


def test_arena_of_two_connections(library: Library, start: Start) -> None:
    one, two = start(), start()
    arena = one.mapped(NUMBERS)
    two.arena(NUMBERS, arena_id=arena)
    assert two.recv() == (wire.MAPPED, arena) and library.c.fake_live() == 1
    got, other = one.offer(arena, 1), two.offer(arena, 1)
    taken, same = Taken(got.__dlpack__(max_version=(1, 3))), Taken(other.__dlpack__(max_version=(1, 3)))
    assert taken.data == same.data
    for t in (taken, same):
        t.delete()
    one.send(wire.about(wire.RETIRE, arena))
    got.release()
    assert one.released(1) and one.recv() == (wire.UNMAPPED, arena) and library.c.fake_live() == 2  # and the event of the release
    two.send(wire.about(wire.RETIRE, arena))
    assert two.silent()
    other.release()
    assert two.released(1) and two.recv() == (wire.UNMAPPED, arena) and library.c.fake_live() == 1


@pytest.fixture
def lent() -> Iterator[int]:
    """Memory of another allocator, in the owner's process."""
    fd = backing(UNIT, NUMBERS)
    yield fd
    os.close(fd)


def opened(o: DeviceOwner, fd: int, size: int = UNIT) -> int:
    made = o.allocation(fd, size)
    assert o.recv() == (wire.MAPPED, made)
    return made


def test_allocation(library: Library, start: Start, lent: int) -> None:
    o = start()
    arena = opened(o, lent, 256 + 1024 + 3)
    got = o.offer(arena, 1)
    taken = Taken(got.__dlpack__(stream=7, max_version=(1, 3)))
    assert taken.struct.flags == dlpack.READ_ONLY and str(got.device) == "cuda:0"
    seen = library.read(taken.data, 24)
    taken.delete()
    o.send(wire.about(wire.RETIRE, arena))
    got.release()
    assert o.silent() and library.c.fake_live() == 2  # the memory, and the event of the release
    library.c.fake_run()
    assert np.frombuffer(seen, "f4").tolist() == [0, 1, 2, 3, 4, 5]
    assert o.released(1) and o.recv() == (wire.UNMAPPED, arena) and library.c.fake_live() == 1


def test_allocation_is_opened_once(library: Library, start: Start, lent: int) -> None:
    one, two = start(), start()
    arenas = opened(one, lent), opened(one, lent), opened(two, lent)
    assert library.c.fake_live() == 1
    last = two.offer(arenas[2], 1)
    for arena in arenas[:2]:
        one.send(wire.about(wire.RETIRE, arena))
        assert one.recv() == (wire.UNMAPPED, arena) and library.c.fake_live() == 1
    last.release()
    assert two.released(1)
    two.send(wire.about(wire.RETIRE, arenas[2]))
    assert two.recv() == (wire.UNMAPPED, arenas[2]) and library.c.fake_live() == 0
    opened(one, lent)


def test_allocation_is_closed_before_the_end(library: Library, start: Start, lent: int) -> None:
    o = start()
    other = backing(UNIT)
    idle, arena = opened(o, other), opened(o, lent)
    os.close(other)
    got = o.offer(arena, 1)
    o.peer.close()
    assert o.recv() == (wire.END, b"") and o.silent()
    o.send(wire.about(wire.RETIRE, idle))
    assert o.recv() == (wire.UNMAPPED, idle)
    late = bytearray(wire.offer(0, 2, arena, 0, 1024, 1, wire.form(F32, False, 0, (2, 3), (12, 4)), b"x"))
    struct.pack_into("<B", late, 8 + 41, wire.CUDA)
    o.send(bytes(late))
    assert o.released(2)
    again = o.allocation(lent)
    kind, r = o.recv()
    assert kind == wire.REFUSED and r.id == again and "the connection has ended" in r.reason
    got.release()
    assert o.released(1) and o.recv() == (wire.UNMAPPED, arena) and library.c.fake_live() == 0
    o.send(wire.about(wire.RETIRE, arena))  # was under way
    assert o.recv() == (0, None)
    assert o.peer._failure is None or "retire" not in str(o.peer._failure)


def test_allocation_ends_with_its_owner(library: Library, start: Start, lent: int) -> None:
    o = start()
    got = o.offer(opened(o, lent), 1)
    o.sock.shutdown(socket.SHUT_WR)  # no death: the owner waits for releases
    assert eventually(lambda: o.peer._gone)
    Taken(got.__dlpack__(stream=7, max_version=(1, 3))).delete()
    o.sock.close()
    with pytest.raises(tenure.GoneError, match="^dlpack: the owner died, and the memory of the tensor, which another allocator made, with it$"):
        got.__dlpack__(stream=7, max_version=(1, 3))
    with pytest.raises(tenure.GoneError):
        got.__dlpack__(stream=-1, max_version=(1, 3))
    library.c.fake_run()
    got.release()
    assert eventually(lambda: library.c.fake_live() == 1)  # the event of the release


def test_allocations_that_are_refused(library: Library, start: Start, lent: int) -> None:
    o = start()
    for call, text in (("cuIpcOpenMemHandle_v2", "cuda: cuIpcOpenMemHandle: CUDA_ERROR_OUT_OF_MEMORY (2)"),):
        library.c.fake_fail(call.encode(), 2)
        o.allocation(lent)
        refused(o, text)
        library.c.fake_reset()
    o.allocation(lent, UNIT + 1)
    refused(o, f"got an allocation of {UNIT} bytes on cuda:0, want the {UNIT + 1} that its owner announces")
    o.allocation(lent, uuid=bytes(range(16)))
    refused(o, "this arena is on device GPU-00010203-")
    library.c.fake_fail(b"cuMemGetAddressRange_v2", 2)
    first = opened(o, lent)  # the driver does not know
    library.c.fake_reset()
    o.allocation(lent, 5)
    refused(o, f"got an allocation of 5 bytes on cuda:0, want {UNIT} on cuda:0 as before")
    o.send(wire.about(wire.RETIRE, first))
    assert o.recv() == (wire.UNMAPPED, first) and library.c.fake_live() == 0
    fd = backing(UNIT)
    packet = wire.arena(wire.Arena(5, UNIT, wire.ALLOCATION_ARENA, 0, UUID, bytes(64)))
    o.send(packet, fd)
    os.close(fd)
    with pytest.raises(tenure.ProtocolError, match="got 1 descriptors, want 0"):
        o.peer.receive(5)


def test_memory_that_cannot_be_read_only(library: Library, start: Start) -> None:
    library.c.fake_no_read_only()
    o = start()
    got = o.offer(o.mapped(), 1)
    taken = Taken(got.__dlpack__(max_version=(1, 3)))
    assert taken.struct.flags == dlpack.READ_ONLY
    taken.delete()


def refused(o: DeviceOwner, text: str) -> None:
    """The owner and the program are told why an arena is not mapped, in one line."""
    kind, r = o.recv()
    assert kind == wire.REFUSED and text in r.reason and "\n" not in r.reason
    with pytest.raises(tenure.DeviceError) as e:
        o.peer.receive(5)
    assert text in str(e.value) and "\n" not in str(e.value)
    with pytest.raises(tenure.Timeout):
        o.peer.receive(0.01)


def test_no_driver(start: Start, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    use(monkeypatch, str(tmp_path / "libcuda.so.1"))
    o = start()
    o.arena()
    refused(o, "cuda: no driver: ")
    monkeypatch.setenv(driver.LIBRARY, "libm.so.6")
    o.arena()
    refused(o, "cuda: libm.so.6 has no cuInit")


def test_no_device(library: Library, start: Start) -> None:
    library.c.fake_fail(b"cuInit", 100)
    o = start()
    o.arena()
    refused(o, "cuda: cuInit: CUDA_ERROR_NO_DEVICE (100): no CUDA-capable device is detected")


def test_another_device(library: Library, start: Start) -> None:
    library.c.fake_devices(2)
    o = start()
    o.arena(uuid=bytes(range(16)))
    refused(o, "this arena is on device GPU-00010203-0405-0607-0809-0a0b0c0d0e0f, and this process has [GPU-66616b65-")
    o.arena(uuid=UUID[:15] + b"\1")
    assert o.recv()[0] == wire.MAPPED
    got = o.offer(next(iter(o.peer._intake._maps)), 1)
    assert got.__dlpack_device__() == (2, 1)


@pytest.mark.parametrize("call", ["cuDevicePrimaryCtxRetain", "cuCtxPushCurrent_v2", "cuMemImportFromShareableHandle", "cuMemAddressReserve", "cuMemMap", "cuMemSetAccess"])
def test_calls_that_fail(library: Library, start: Start, call: str) -> None:
    o = start()
    library.c.fake_fail(call.encode(), 2)
    o.arena()
    refused(o, f"cuda: {call.split('_v')[0]}: CUDA_ERROR_OUT_OF_MEMORY (2): out of memory")
    library.c.fake_reset()
    assert library.c.fake_live() == 0
    o.offer(o.mapped(), 1).release()
    assert o.released(1)


def test_event_that_does_not_open(library: Library, start: Start) -> None:
    o = start()
    o.mapped()
    library.c.fake_fail(b"cuIpcOpenEventHandle", 2)
    o.send(wire.event(wire.Event(1, bytes(64))))
    kind, answer = o.recv()
    assert (kind, answer.slot, answer.code) == (wire.OPENED, 1, 1) and "cuIpcOpenEventHandle: CUDA_ERROR_OUT_OF_MEMORY" in answer.reason


def test_the_device_is_lost(library: Library, start: Start) -> None:
    """After an error nothing runs any more: leases end."""
    o = start()
    got = o.offer(o.mapped(), 1)
    Taken(got.__dlpack__(max_version=(1, 3))).delete()
    library.c.fake_fail(b"cuCtxRecordEvent", 700)
    got.release()
    assert o.released(1)
    library.c.fake_reset()


@pytest.mark.parametrize(
    "text,send",
    [
        ("device 2 in an arena of device 1", lambda o, host, own: wire.CUDA),
        ("event: got slot 1 behind 1 others", lambda o, host, own: [wire.event(wire.Event(1, bytes(64)))] * 2),
        ("work behind event 9", lambda o, host, own: 9),
        ("answer about event 3", lambda o, host, own: [wire.opened(wire.Opened(3, 0, ""))]),
    ],
)
def test_rules_that_are_broken(library: Library, start: Start, text: str, send: Any) -> None:
    o = start()
    arena = o.mapped()
    packets = send(o, None, arena)
    if packets == wire.CUDA:  # a tensor of a device in host memory
        fd = tenure.memfd.create("tenure-test", UNIT)
        tenure.memfd.populate(fd, UNIT)
        tenure.memfd.seal(fd)
        o.send(wire.arena(wire.Arena(77, UNIT)), fd)
        os.close(fd)
        assert o.recv() == (wire.MAPPED, 77)
        arena, packets = 77, 0
    if isinstance(packets, int):
        with pytest.raises(tenure.ProtocolError, match=text):
            o.offer(arena, 1, mark=(packets, packets))
        return
    for packet in packets:
        o.send(packet)
    with pytest.raises(tenure.ProtocolError, match=text):
        o.peer.receive(5)


def test_arena_of_another_kind(library: Library, start: Start) -> None:
    o = start()
    packet = bytearray(wire.arena(wire.Arena(5, UNIT, wire.CUDA_ARENA, UNIT, UUID)))
    packet[24] = 9
    fd = backing(UNIT)
    o.send(bytes(packet), fd)
    os.close(fd)
    kind, r = o.recv()
    assert kind == wire.REFUSED and "got an arena of kind 9, want 0 (host memory), 1 (of a CUDA device) or 2" in r.reason


def test_forked_child(library: Library, start: Start) -> None:
    o = start()
    got = o.offer(o.mapped(), 1)
    child = os.fork()
    if child == 0:
        try:
            del got
            gc.collect()
            os._exit(0 if not device._open else 1)
        except BaseException:
            os._exit(2)
    assert os.waitpid(child, 0)[1] == 0
    assert got.release() and o.released(1)


def test_many_threads(library: Library, start: Start) -> None:
    o = start()
    arena = o.mapped(NUMBERS)
    library.c.fake_auto(1)
    many = [o.offer(arena, serial) for serial in range(1, 201)]

    def take(part: List[tenure.Received]) -> None:
        for got in part:
            taken = Taken(got.__dlpack__(stream=7, max_version=(1, 3)))
            library.read(taken.data, 24)
            got.release()
            taken.delete()

    threads = [threading.Thread(target=take, args=(many[i::4],)) for i in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    gone: List[int] = []
    while len(gone) < 200:
        kind, serials = o.recv()
        assert kind == wire.RELEASE
        gone.extend(serials)
    assert sorted(gone) == list(range(1, 201)) and service.the() is not None


def test_library_of_a_folder(folder: Path, tmp_path: Path) -> None:
    """Where the loader does not find the library, by a name that is none."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(driver, "_NAME", "libcuda-of-no-system.so.1")
        (tmp_path / driver._NAME).write_bytes(Path(build(folder, "")).read_bytes())
        assert driver.load(driver._NAME, [str(tmp_path / "none"), str(tmp_path)]).fake_live() == 0
        broken = tmp_path / "broken"
        broken.mkdir()
        (broken / driver._NAME).write_text("text")
        with pytest.raises(tenure.DeviceError, match=f"^cuda: no driver: {broken}/"):
            driver.load(driver._NAME, [str(broken), str(tmp_path)])
        with pytest.raises(tenure.DeviceError, match="^cuda: no driver: libcuda-of-no-system.so.1: cannot open"):
            driver.load(driver._NAME, [])
