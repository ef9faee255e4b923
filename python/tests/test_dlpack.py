"""Received tensors and arrays of an owner in other libraries' hands: every element type, in place, and for as long as they have them."""

from __future__ import annotations

import ctypes
import gc
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any, List, Tuple

import numpy as np
import pytest
from conftest import Connect, eventually

import tenure
from tenure import dlpack, dtypes, table, wire
from tenure.table import Prepared

pytestmark = pytest.mark.usefixtures("nothing_is_left")

if not dlpack._KNOWS_READ_ONLY:
    pytest.skip("numpy before 2.1 cannot say read-only", allow_module_level=True)

BIG = 20000
"""Bytes that go through an arena."""

TYPES = sorted(dtypes._known.values())


def out(owner: tenure.Owner) -> int:
    return len(owner.outstanding())


def bits_of(of: dtypes.DType, elements: int) -> np.ndarray[Any, Any]:
    """Bytes of so many elements."""
    made = np.arange(dtypes.packed_size(elements, of.bits), dtype="u2").astype("u1")
    return made % 2 if of.name == "bool" else made


def send_bits(peer: tenure.Peer, owner: tenure.Owner, of: dtypes.DType, shape: Tuple[int, ...], first: int = 0, strides: Any = None) -> np.ndarray[Any, Any]:
    """Offers elements of any type, as another program would, and returns their bytes."""
    block, base = owner._alloc(BIG)
    base[:] = np.resize(bits_of(of, 4096), BIG)
    item = table.Item(block, wire.form(of, False, first, shape, strides or wire.rows(shape)), b"")
    peer._lending.offer(Prepared(item, base), True, 5)
    return base.copy()


class Taken:
    """A consumer written by hand: it has the struct of a capsule."""

    def __init__(self, capsule: Any) -> None:
        name = b"dltensor_versioned" if "dltensor_versioned" in repr(capsule) else b"dltensor"
        self.address = dlpack.pointer_of(capsule, name)
        self.used = b"used_" + name
        rename = ctypes.pythonapi.PyCapsule_SetName
        rename.argtypes = [ctypes.py_object, ctypes.c_char_p]
        rename(capsule, self.used)
        self.versioned = name == b"dltensor_versioned"
        self.struct: Any = (dlpack.Versioned if self.versioned else dlpack.Managed).from_address(self.address)
        self.tensor = self.struct.tensor
        self.type = self.tensor.code, self.tensor.bits, self.tensor.lanes
        self.shape = tuple(self.tensor.shape[: self.tensor.rank])
        self.strides = tuple(self.tensor.strides[: self.tensor.rank]) if self.tensor.strides else None
        self.data = self.tensor.data

    def delete(self) -> None:
        ctypes.CFUNCTYPE(None, ctypes.c_void_p)(self.struct.deleter)(self.address)

    def delete_on_a_thread_of_c(self) -> None:
        """Where Python has never been."""
        libc = ctypes.CDLL(None)
        thread = ctypes.c_ulong()
        assert libc.pthread_create(ctypes.byref(thread), None, ctypes.c_void_p(self.struct.deleter), ctypes.c_void_p(self.address)) == 0
        assert libc.pthread_join(thread, None) == 0


def test_structs() -> None:
    assert [ctypes.sizeof(s) for s in (dlpack.Tensor, dlpack.Managed, dlpack.Versioned)] == [48, 64, 80]


@pytest.mark.parametrize("of", TYPES, ids=lambda of: of.name)
def test_every_type(connect: Connect, owner: tenure.Owner, of: dtypes.DType) -> None:
    peer, consumer = connect()
    sent = send_bits(peer, owner, of, (3, 6))
    got = consumer.receive(5)
    at = got._held().ctypes.data
    taken = Taken(got.__dlpack__(max_version=(1, 3)))
    assert taken.type == (of.code, of.bits, 1) and taken.shape == (3, 6) and taken.strides == (6, 1) and taken.data == at
    assert (taken.struct.major, taken.struct.minor >= 1) == (1, of.code > 6) and taken.struct.flags == dlpack.READ_ONLY
    old = Taken(got.__dlpack__())
    assert not old.versioned and old.type == taken.type and old.shape == taken.shape and old.data != at
    size = dtypes.packed_size(18, of.bits)
    assert bytes((ctypes.c_uint8 * size).from_address(old.data)) == sent[:size].tobytes()
    copied = Taken(got.__dlpack__(max_version=(1, 0), copy=True))
    assert copied.struct.flags == dlpack.COPIED and copied.data != at and copied.type == taken.type
    assert bytes((ctypes.c_uint8 * size).from_address(copied.data)) == sent[:size].tobytes()
    old.delete()
    copied.delete()
    assert not got.release() and out(owner) == 1
    taken.delete()
    assert out(owner) == 0


@pytest.mark.parametrize("name", ["f32", "bf16", "f8e4m3fn"])
def test_strides(connect: Connect, owner: tenure.Owner, name: str) -> None:
    of = next(t for t in TYPES if t.name == name)
    peer, consumer = connect()
    send_bits(peer, owner, of, (3, 5), 40, (-2, 0))
    got = consumer.receive(5)
    taken = Taken(got.__dlpack__(max_version=(1, 3), copy=False))
    assert taken.shape == (3, 5) and taken.strides == (-2, 0) and taken.data == got._held().ctypes.data + 40
    taken.delete()
    got.release()


def test_empty_and_scalar(connect: Connect, owner: tenure.Owner) -> None:
    peer, consumer = connect()
    for of in TYPES:
        for shape in ((0, 3), ()):
            send_bits(peer, owner, of, shape)
            with consumer.receive(5) as got:
                taken = Taken(got.__dlpack__(max_version=(1, 3)))
                assert taken.shape == shape and taken.type == (of.code, of.bits, 1)
                taken.delete()


def test_types_of_tomorrow_are_refused(connect: Connect, owner: tenure.Owner) -> None:
    peer, consumer = connect()
    send_bits(peer, owner, dtypes.from_codes(99, 24), (3,))
    with consumer.receive(5) as got:
        with pytest.raises(BufferError, match="dlpack:99:24"):
            got.__dlpack__(max_version=(1, 3))


ARGUMENTS: List[Tuple[dict[str, Any], Any]] = [
    (dict(max_version=(2, 5)), True), (dict(max_version=(2**70, 0)), True), (dict(max_version=(1, 0), dl_device=(1, 0)), True),
    (dict(max_version=(0, 8)), False), (dict(), False),
    (dict(max_version=(-1, 0)), ValueError), (dict(max_version=(1, -2**70)), ValueError), (dict(max_version="13"), TypeError),
    (dict(max_version=(1, "3")), TypeError), (dict(max_version=[1, 3]), TypeError), (dict(max_version=(1,)), TypeError), (dict(max_version=1), TypeError),
    (dict(copy="no"), TypeError), (dict(copy=1), TypeError), (dict(stream=1), BufferError), (dict(stream=-1), BufferError),
    (dict(dl_device=(0, 0)), BufferError), (dict(dl_device=(2, 0)), BufferError), (dict(dl_device=(1, 1)), BufferError),
    (dict(dl_device=(2**40, 0)), BufferError), (dict(dl_device=1), TypeError), (dict(dl_device=(1, None)), TypeError),
    (dict(copy=False), BufferError),
]  # fmt: skip


@pytest.mark.parametrize("arguments, want", ARGUMENTS)
def test_arguments(connect: Connect, owner: tenure.Owner, arguments: dict[str, Any], want: Any) -> None:
    peer, consumer = connect()
    peer.offer(owner.zeros(BIG))
    with consumer.receive(5) as got:
        assert got.__dlpack_device__() == (1, 0)
        if isinstance(want, bool):
            taken = Taken(got.__dlpack__(**arguments))
            assert taken.versioned == want
            taken.delete()
        else:
            with pytest.raises(want):
                got.__dlpack__(**arguments)


def test_capsules_nobody_takes(connect: Connect, owner: tenure.Owner) -> None:
    peer, consumer = connect()
    peer.offer(owner.zeros(BIG))
    got = consumer.receive(5)
    capsules = [got.__dlpack__(max_version=(1, 3)), got.__dlpack__()]
    assert not got.release()
    capsules.clear()
    assert out(owner) == 0


def test_deleters_on_threads_of_c(connect: Connect, owner: tenure.Owner) -> None:
    peer, consumer = connect()
    for _ in range(20):
        send_bits(peer, owner, dtypes.from_codes(4, 16), (100,))
        got = consumer.receive(5)
        taken = Taken(got.__dlpack__(max_version=(1, 3)))
        got.release()
        assert out(owner) == 1
        taken.delete_on_a_thread_of_c()
        assert out(owner) == 0


def test_deleters_in_a_storm(connect: Connect, owner: tenure.Owner) -> None:
    peer, consumer = connect()
    x = owner.zeros(BIG)

    def use() -> None:
        for _ in range(100):
            got = consumer.receive(10)
            taken = [Taken(got.__dlpack__(max_version=(1, 3))) for _ in range(3)]
            got.release()
            for t in taken:
                t.delete()

    threads = [threading.Thread(target=use) for _ in range(4)]
    for t in threads:
        t.start()
    for _ in range(400):
        peer.offer(x, timeout=20)
    for t in threads:
        t.join()
    eventually(lambda: out(owner) == 0)  # what did not fit into the socket follows


def test_release(connect: Connect, owner: tenure.Owner) -> None:
    peer, consumer = connect()
    x = owner.zeros(BIG)
    for _ in range(3):
        peer.offer(x)
    first, second, third = (consumer.receive(5) for _ in range(3))
    assert first.release() and first.closed and out(owner) == 2
    assert first.release()  # twice is once
    for use in (lambda: first.array, lambda: first.raw, lambda: np.asarray(first), lambda: first.__dlpack__(max_version=(1, 3)), lambda: first.ticket(1)):
        with pytest.raises(tenure.ClosedError, match="released"):
            use()
    kept = second.array[5:9]
    assert not second.release() and out(owner) == 2 and kept.tolist() == [0.0] * 4
    del kept
    assert out(owner) == 1
    with third:
        pass
    assert third.release() and out(owner) == 0


EXIT = """
import ctypes, sys, threading
import tenure
from tenure import dlpack
peer = tenure.parent()
received = peer.receive(20)
capsule = received.__dlpack__(max_version=(1, 3))
address = dlpack.pointer_of(capsule, b"dltensor_versioned")
ctypes.pythonapi.PyCapsule_SetName(ctypes.py_object(capsule), b"used_dltensor_versioned")
ctypes.pythonapi.Py_IncRef(ctypes.py_object(capsule))
deleter = dlpack.Versioned.from_address(address).deleter
peer.offer(__import__("numpy").zeros(1), label="held")
del received
if sys.argv[1] == "atexit of C":  # after the interpreter is gone
    libc = ctypes.CDLL(None)
    libc.__cxa_atexit(ctypes.c_void_p(deleter), ctypes.c_void_p(address), None)
elif sys.argv[1] == "atexit":
    import atexit
    atexit.register(ctypes.CFUNCTYPE(None, ctypes.c_void_p)(deleter), address)
peer.receive(20)
"""


@pytest.mark.parametrize("how", ["never", "atexit", "atexit of C"])
def test_consumers_that_outlive_the_interpreter(owner: tenure.Owner, how: str) -> None:
    env = dict(os.environ, PYTHONPATH=str(Path(tenure.__file__).parent.parent))
    child, peer = owner.spawn([sys.executable, "-c", EXIT, how], env=env, stderr=subprocess.PIPE)
    with child, peer:
        peer.offer(owner.zeros(BIG))
        peer.receive(30).close()
        assert out(owner) == 1
        peer.offer(np.zeros(1))
        _, text = child.communicate(timeout=60)
        assert child.returncode == 0 and not text, text.decode()
        eventually(lambda: out(owner) == 0)


# --- arrays of an owner ---


@pytest.mark.parametrize("of", [t for t in TYPES if t.numpy is not None], ids=lambda of: of.name)
def test_arrays_of_an_owner(connect: Connect, owner: tenure.Owner, of: dtypes.DType) -> None:
    peer, consumer = connect()
    x = owner.empty((3, 7000), of.numpy)
    x[...] = np.ones((), of.numpy)
    assert x.__dlpack_device__()[0] == 1
    taken = Taken(x[1:].__dlpack__(max_version=(1, 3)))
    assert taken.type == (of.code, of.bits, 1) and taken.shape == (2, 7000)
    assert (taken.data == x[1:].ctypes.data and taken.struct.flags == 0) != of.packed
    assert of.packed == (taken.struct.flags == dlpack.COPIED)
    old = Taken(x.__dlpack__())
    assert old.type == taken.type and (old.data == x.ctypes.data) != of.packed
    old.delete()
    peer.offer(x)
    if not of.packed:
        held = Taken(x.__dlpack__(max_version=(1, 3)))
        assert held.struct.flags == dlpack.READ_ONLY
        held.delete()
    with consumer.receive(5) as got:
        again = Taken(got.array.__dlpack__(max_version=(1, 3)))
        assert again.type == taken.type and (got.array == x).all()
        again.delete()
    del x
    assert out(owner) == 0
    assert bool(owner.state()["bytes"]["used"]) != of.packed
    taken.delete()
    assert owner.state()["bytes"]["used"] == 0


def test_results_are_ordinary_arrays(owner: tenure.Owner) -> None:
    pytest.importorskip("ml_dtypes", reason="no ml_dtypes")
    x = owner.zeros((2, 3), dtypes.from_codes(4, 16).numpy)
    assert type(x) is dlpack.Lendable and type(x[0]) is dlpack.Lendable and type(owner.zeros(3)) is np.ndarray
    assert type(x + x) is np.ndarray and type(x.astype("f4") @ np.zeros((3, 2), "f4")) is not dlpack.Lendable
    assert not isinstance(x.sum(), np.ndarray)
    with pytest.raises(BufferError, match="takes no copy"):
        owner.zeros(3, dtypes.from_codes(0, 4).numpy).__dlpack__(max_version=(1, 3), copy=False)


# --- libraries ---


def test_numpy(connect: Connect, owner: tenure.Owner) -> None:
    peer, consumer = connect()
    x = owner.empty(BIG, "i2")
    x[:] = 7
    peer.offer(x)
    got = consumer.receive(5)
    y = np.from_dlpack(got)
    assert y.ctypes.data == got.array.ctypes.data and not y.flags.writeable and (y == 7).all()
    got.release()
    assert out(owner) == 1
    del y
    assert out(owner) == 0


def test_torch(connect: Connect, owner: tenure.Owner) -> None:
    torch = pytest.importorskip("torch", reason="no torch")
    names = {"f32": "float32", "i64": "int64", "bool": "bool", "bf16": "bfloat16", "c64": "complex64", "f16": "float16", "u16": "uint16",
             "f8e4m3fn": "float8_e4m3fn", "f8e5m2": "float8_e5m2", "f8e4m3fnuz": "float8_e4m3fnuz", "f8e5m2fnuz": "float8_e5m2fnuz",
             "f8e8m0": "float8_e8m0fnu"}  # fmt: skip
    peer, consumer = connect()
    for of in TYPES:
        if of.name not in names:
            continue
        sent = send_bits(peer, owner, of, (20, 30))
        got = consumer.receive(5)
        t = torch.from_dlpack(got)
        assert t.dtype == getattr(torch, names[of.name]) and t.shape == (20, 30) and t.data_ptr() == got._held().ctypes.data
        assert t.view(torch.uint8).numpy().tobytes() == sent[: 600 * of.bits // 8].tobytes()
        assert not got.release() and out(owner) == 1
        del t
        assert out(owner) == 0


def test_torch_takes_packed_bytes_and_arrays_of_an_owner(connect: Connect, owner: tenure.Owner) -> None:
    torch = pytest.importorskip("torch", reason="no torch")
    pytest.importorskip("ml_dtypes", reason="no ml_dtypes")
    peer, consumer = connect()
    send_bits(peer, owner, dtypes.from_codes(17, 4), (4, 6))
    with consumer.receive(5) as got:  # torch calls two of them one element
        t = torch.from_dlpack(got.raw.reshape(4, 3)).view(torch.float4_e2m1fn_x2)
        assert t.dtype == torch.float4_e2m1fn_x2 and t.shape == (4, 3)
        del t
    x = owner.zeros(9000, dtypes.from_codes(4, 16).numpy)
    t = torch.from_dlpack(x)
    t[5] = 1.5
    assert t.dtype == torch.bfloat16 and float(x[5]) == 1.5
    peer.offer(x)
    with consumer.receive(5) as got:
        assert float(got.array[5]) == 1.5 and float(torch.from_dlpack(got)[5]) == 1.5


def test_jax(connect: Connect, owner: tenure.Owner) -> None:
    pytest.importorskip("jax", reason="no jax")
    import jax.dlpack

    jax.numpy.zeros(1).block_until_ready()
    peer, consumer = connect()
    for name in ("f32", "bf16", "i8", "f8e5m2"):
        of = next(t for t in TYPES if t.name == name)
        sent = send_bits(peer, owner, of, (20, 30))
        got = consumer.receive(5)
        y = jax.dlpack.from_dlpack(got)
        assert str(y.dtype) == str(of.numpy) and np.asarray(y).tobytes() == sent[: 600 * of.bits // 8].tobytes()
        got.release()
        del y
        eventually(lambda: gc.collect() is not None and out(owner) == 0)


def test_tvm_ffi(connect: Connect, owner: tenure.Owner) -> None:
    tvm_ffi = pytest.importorskip("tvm_ffi", reason="no tvm_ffi")
    peer, consumer = connect()
    for of in TYPES:
        sent = send_bits(peer, owner, of, (20, 30))
        got = consumer.receive(5)
        size = dtypes.packed_size(600, of.bits)
        for asked, in_place in ((got, False), (got.__dlpack__(max_version=(1, 3)), True)):  # tvm-ffi asks for the old struct itself
            t = tvm_ffi.from_dlpack(asked)
            again = Taken(t.__dlpack__(max_version=(1, 3)))
            assert again.type == (of.code, of.bits, 1) and again.shape == (20, 30) and in_place == (again.data == got._held().ctypes.data)
            assert bytes((ctypes.c_uint8 * size).from_address(again.data)) == sent[:size].tobytes()
            again.delete()
        asked = None
        assert not got.release() and out(owner) == 1
        del t
        assert out(owner) == 0
