"""Arrays of other libraries, offered: in place where they lie in the owner's memory, copied where they do not, and checked field by field."""

from __future__ import annotations

import ctypes
from typing import Any, Dict, List, Tuple

import numpy as np
import pytest
from conftest import Connect

import tenure
from tenure import dlpack, dtypes

pytestmark = pytest.mark.usefixtures("nothing_is_left")

BIG = 20000


class Producer:
    """A library written by hand: it lends bytes with whatever fields a test wants, and counts what comes back."""

    def __init__(self, versioned: bool = True, **fields: Any) -> None:
        self.bytes = np.arange(4096, dtype="u2").astype("u1")
        self.deleted = 0
        self.device: Tuple[Any, Any] = (1, 0)
        self.sizes = (ctypes.c_int64 * 8)(*fields.pop("shape", (4, 3)))
        self.steps = (ctypes.c_int64 * 8)(*fields.pop("strides", (3, 1)))
        self.struct: Any = dlpack.Versioned(major=1, minor=3) if versioned else dlpack.Managed()
        t = self.struct.tensor
        t.data, t.device, t.rank, t.code, t.bits, t.lanes = self.bytes.ctypes.data, 1, 2, 2, 32, 1
        t.shape, t.strides = self.sizes, self.steps
        for name, value in fields.items():
            setattr(t if hasattr(t, name) else self.struct, name, value)
        self.back = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(self._back)
        self.struct.deleter = ctypes.cast(self.back, ctypes.c_void_p).value
        self.name = dlpack.NEW if versioned else dlpack.OLD

    def _back(self, address: int) -> None:
        assert address == ctypes.addressof(self.struct)
        self.deleted += 1

    def __dlpack__(self, **arguments: Any) -> Any:
        if self.name == dlpack.OLD and arguments:
            raise TypeError("got arguments, want none")
        new = ctypes.pythonapi.PyCapsule_New
        new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
        return new(ctypes.addressof(self.struct), self.name, None)

    def __dlpack_device__(self) -> Any:
        return self.device


def sent(connect: Connect, x: Any, **options: Any) -> tenure.Received:
    peer, consumer = connect()
    peer.offer(x, timeout=10, **options)
    return consumer.receive(10)


GOOD: List[Tuple[Dict[str, Any], Any]] = [
    (dict(), lambda b: b[:48].view("f4").reshape(4, 3)),
    (dict(versioned=False), lambda b: b[:48].view("f4").reshape(4, 3)),
    (dict(strides=(1, 4)), lambda b: b[:48].view("f4").reshape(3, 4).T),
    (dict(strides=(-3, 0), byte_offset=400), lambda b: np.lib.stride_tricks.as_strided(b[400:].view("f4"), (4, 3), (-12, 0))),
    (dict(strides_=None), lambda b: b[:48].view("f4").reshape(4, 3)),
    (dict(rank=0), lambda b: b[:4].view("f4").reshape(())),
    (dict(shape=(4, 0), data=None), lambda b: np.empty((4, 0), "f4")),
    (dict(flags=dlpack.READ_ONLY | dlpack.COPIED), lambda b: b[:48].view("f4").reshape(4, 3)),
    (dict(code=6, bits=8), lambda b: b[:12].view("?").reshape(4, 3)),
    (dict(code=5, bits=128), lambda b: b[:192].view("c16").reshape(4, 3)),
]


@pytest.mark.parametrize("fields, want", GOOD)
def test_structs(connect: Connect, fields: Dict[str, Any], want: Any) -> None:
    fields = dict(fields)
    null = fields.pop("strides_", 0) is None
    p = Producer(**fields)
    if fields.get("code") == 6:
        p.bytes[:] %= 2
    if null:
        p.struct.tensor.strides = None
    with sent(connect, p) as got:
        assert got.array.tobytes() == np.ascontiguousarray(want(p.bytes)).tobytes() and got.shape == want(p.bytes).shape
    assert p.deleted == 1


BAD: List[Tuple[Dict[str, Any], Any]] = [
    (dict(major=2), "DLPack 2.3"), (dict(flags=8), "flags"), (dict(rank=-1), "rank -1"), (dict(rank=9), "rank 9"), (dict(rank=2**31 - 1), "rank"),
    (dict(shape=(4, -1)), "sizes from 0"), (dict(shape=(2**40, 2**40)), "elements"), (dict(strides=(2**60, 1)), "elements"),
    (dict(data=None), "address"), (dict(byte_offset=2**64 - 8), "address"), (dict(lanes=2), "lanes"), (dict(lanes=0), "lanes"), (dict(code=99), "dlpack:99:32"),
    (dict(bits=24), "dlpack:2:24"), (dict(code=0, bits=4, strides=(1, 4)), "contiguous"), (dict(strides=(-(2**50), 1)), "address"),
]  # fmt: skip


@pytest.mark.parametrize("fields, want", BAD)
def test_bad_structs_are_given_back(connect: Connect, fields: Dict[str, Any], want: str) -> None:
    p = Producer(**fields)
    with pytest.raises((tenure.Error, ValueError), match=want):
        sent(connect, p)
    assert p.deleted == 1


def test_what_is_no_capsule(connect: Connect) -> None:
    class Liar:
        def __dlpack__(self, **_: Any) -> Any:
            return "capsule"

        def __dlpack_device__(self) -> Any:
            return 1, 0

    with pytest.raises(tenure.Error, match="want a capsule"):
        sent(connect, Liar())
    p = Producer()
    p.device = (2, 0)
    with pytest.raises(tenure.Error, match="want one in host memory"):
        sent(connect, p)
    assert p.deleted == 0


NEW_TYPES = [t for t in sorted(dtypes._known.values()) if t.code > 3 and t.name not in ("c64", "c128", "bool")]


@pytest.mark.parametrize("of", NEW_TYPES, ids=lambda of: of.name)
def test_types_that_numpy_lacks(connect: Connect, of: dtypes.DType) -> None:
    """Also with more bytes than a message takes."""
    for shape in ((6, 10), (60, 600)):
        p = Producer(shape=shape, strides=(shape[1], 1), code=of.code, bits=of.bits)
        p.bytes = np.resize(p.bytes, 200000)
        p.struct.tensor.data = p.bytes.ctypes.data
        with sent(connect, p) as got:
            assert got.dtype == of and got.shape == shape
            assert got.raw.tobytes() == p.bytes[: dtypes.packed_size(shape[0] * shape[1], of.bits)].tobytes()
        assert p.deleted == 1


def test_padded_and_paired_elements(connect: Connect) -> None:
    padded = Producer(code=1, bits=4, flags=dlpack.PADDED, shape=(5, 3))
    with sent(connect, padded) as got:
        assert got.dtype.name == "u4" and got.shape == (5, 3)
        want = [(2 * i % 16) | (2 * i + 1) % 16 << 4 for i in range(7)] + [14]
        assert got.raw.tolist() == want
    paired = Producer(code=17, bits=4, lanes=2, shape=(5, 3))
    with sent(connect, paired) as got:
        assert got.dtype.name == "f4e2m1" and got.shape == (5, 6) and got.raw.tolist() == list(range(15))
    assert padded.deleted == paired.deleted == 1


# --- in place ---


def test_a_foreign_view_of_an_owners_memory_is_not_copied(connect: Connect, owner: tenure.Owner) -> None:
    """Recognised by its address, whoever made it and with whatever type."""
    for _ in range(5):
        owner.empty(64)  # other blocks, some of them gone
    kept = [owner.empty(100) for _ in range(5)]
    x = owner.empty(BIG, "u1")
    x[:] = np.resize(np.arange(256, dtype="u1"), BIG)
    p = Producer(code=4, bits=16, shape=(100, 50), strides=(-100, 2))
    p.struct.tensor.data, p.struct.tensor.byte_offset = x.ctypes.data, 19800
    with sent(connect, p, copy=False) as got:
        assert owner.state()["bytes"]["copied"] == 0 and not x.flags.writeable
        assert got.dtype.name == "bf16" and got.raw.tobytes() == x.view("u2")[np.arange(9900, -1, -100)[:100, None] + 2 * np.arange(50)].tobytes()
    assert p.deleted == 1 and len(kept) == 5
    with pytest.raises(ValueError):
        x[0] = 1


@pytest.mark.parametrize("at, n", [(-4, 10), (BIG - 20, 10), (BIG, 1)])
def test_what_reaches_beyond_the_array_is_copied(connect: Connect, owner: tenure.Owner, at: int, n: int) -> None:
    before, x, behind = (owner.zeros(BIG, "u1") for _ in range(3))
    del behind
    p = Producer(shape=(n,), strides=(1,), rank=1)
    p.struct.tensor.data = x.ctypes.data + at
    with pytest.raises(tenure.Error, match="outside this owner's memory"):
        sent(connect, p, copy=False)
    assert p.deleted == 1 and x.flags.writeable and before.flags.writeable


def test_numpys_own_detours(connect: Connect, owner: tenure.Owner) -> None:
    x = owner.zeros(BIG, "i2")
    peer, consumer = connect()
    detours = [np.from_dlpack(x)[5:], np.frombuffer((ctypes.c_char * 2 * BIG).from_buffer(x), "i2")[::-2], np.ctypeslib.as_array(x.ctypes.data_as(ctypes.POINTER(ctypes.c_int16)), (BIG,))]
    x[7] = 99
    for y in detours:
        peer.offer(y, copy=False)
        with consumer.receive(5) as got:
            assert (got.array == y).all()
    assert owner.state()["bytes"]["copied"] == 0 and not x.flags.writeable


def test_received_is_offered_with_any_type(connect: Connect, owner: tenure.Owner) -> None:
    p = Producer(code=10, bits=8)
    with sent(connect, p) as got:
        with sent(connect, got) as again:
            assert again.dtype.name == "f8e4m3fn" and again.raw.tolist() == got.raw.tolist()


def test_owner_copy(owner: tenure.Owner) -> None:
    assert owner.copy(Producer()).tolist() == Producer().bytes[:48].view("f4").reshape(4, 3).tolist()
    assert owner.copy([1.5, 2]).tolist() == [1.5, 2.0]
    with pytest.raises(tenure.DTypeError):
        owner.copy(Producer(code=5, bits=32))  # two halves
    assert owner.copy(np.arange(3, dtype=">i4")).tolist() == [0, 1, 2]


# --- libraries ---


def test_torch(connect: Connect, owner: tenure.Owner) -> None:
    torch = pytest.importorskip("torch", reason="no torch")
    for name, of in (("bfloat16", "bf16"), ("float8_e4m3fn", "f8e4m3fn"), ("float8_e5m2", "f8e5m2"), ("float8_e8m0fnu", "f8e8m0"), ("float32", "f32")):
        for n in (10, 30000):
            t = torch.arange(n, dtype=torch.uint8).repeat(4).view(getattr(torch, name))[3:]
            with sent(connect, t) as got:
                assert got.dtype.name == of and got.raw.tobytes() == t.view(torch.uint8).numpy().tobytes()
    t = torch.arange(24, dtype=torch.uint8).reshape(4, 6).view(torch.float4_e2m1fn_x2)
    with sent(connect, t) as got:
        assert got.dtype.name == "f4e2m1" and got.shape == (4, 12) and got.raw.tolist() == list(range(24))
    with pytest.raises(RuntimeError, match="detach"):
        sent(connect, torch.zeros(3, requires_grad=True))


def test_torch_views_of_an_owners_memory(connect: Connect, owner: tenure.Owner) -> None:
    torch = pytest.importorskip("torch", reason="no torch")
    copied = owner.state()["bytes"]["copied"]
    for make in (torch.from_numpy, torch.from_dlpack):
        x = owner.empty((50, 200), "f4")
        t = make(x)
        t[...] = torch.arange(10000.0).reshape(50, 200)
        for view in (t, t.T, t[3:, ::7], t.view(torch.bfloat16)[1:], t.numpy()[5:]):
            with sent(connect, view, copy=False) as got:
                assert got.shape == tuple(view.shape) and torch.equal(torch.from_dlpack(got), torch.from_dlpack(view))
        assert not x.flags.writeable
    assert owner.state()["bytes"]["copied"] == copied


def test_jax(connect: Connect, owner: tenure.Owner) -> None:
    jnp = pytest.importorskip("jax.numpy", reason="no jax")
    for name in ("float32", "bfloat16", "int4", "float8_e5m2", "bool"):
        x = jnp.arange(12).reshape(3, 4).astype(name)
        with sent(connect, x) as got:
            assert got.shape == (3, 4) and (got.array == np.asarray(x)).all()
