"""Arrays to offer: of numpy, and of every library that supports DLPack."""

from __future__ import annotations

import ctypes
import sys
from typing import Any, Callable, NamedTuple, Tuple

import numpy as np

from . import dtypes, wire
from .dlpack import COPIED, MAJOR, NEW, OLD, PADDED, READ_ONLY, Array, Managed, Tensor, Versioned, pointer_of
from .dtypes import DType
from .errors import DTypeError, Error

_HOST = frozenset((1, 3, 11, 20))
"""Devices whose memory the processor reads: the processor's own, and what CUDA, ROCm and TPU drivers have pinned."""
_MINOR = 3
_MOST = 1 << 58
_PAIRS = (17, 4, 2)
"""torch's float4_e2m1fn_x2: two elements are one of its own."""

_valid = ctypes.pythonapi.PyCapsule_IsValid
_valid.restype, _valid.argtypes = ctypes.c_int, [ctypes.py_object, ctypes.c_char_p]
_rename = ctypes.pythonapi.PyCapsule_SetName
_rename.restype, _rename.argtypes = ctypes.c_int, [ctypes.py_object, ctypes.c_char_p]
_NEW_TAKEN, _OLD_TAKEN = b"used_dltensor_versioned", b"used_dltensor"
for _name in (_NEW_TAKEN, _OLD_TAKEN):
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(_name))  # a capsule keeps the address, and may outlive this module
_Deleter = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class Given(NamedTuple):
    """An array to offer. Elements that numpy has no type for are unsigned integers of the same width."""

    array: Array
    dtype: DType
    shape: Tuple[int, ...]
    packed: bool = False
    """Whether the array is the bytes of elements that share them; its shape is not theirs then."""


class _Struct:
    """A struct that was taken from a capsule: an array over its memory keeps it, and with the last one its deleter is called."""

    __slots__ = ("__array_interface__", "_address", "_deleter", "_self")

    def __init__(self, capsule: Any) -> None:
        self._deleter = 0
        if _valid(capsule, NEW):
            name, taken = NEW, _NEW_TAKEN
        elif _valid(capsule, OLD):
            name, taken = OLD, _OLD_TAKEN
        else:
            raise BufferError(f"got {capsule!r}, want a capsule with a DLPack tensor")
        address: int = pointer_of(capsule, name)
        struct: Any = (Versioned if name == NEW else Managed).from_address(address)
        _rename(capsule, taken)  # from here on the struct is this object's
        self._self, self._address, self._deleter = struct, address, struct.deleter or 0

    def __del__(self, finalizing: Callable[[], bool] = sys.is_finalizing) -> None:
        if self._deleter and not finalizing():
            _Deleter(self._deleter)(self._address)


def given(source: Any, what: str) -> Given:
    """An array of any library. What DLPack cannot lend is asked for as a numpy array, which may be a copy."""
    if not isinstance(source, np.ndarray) and hasattr(source, "__dlpack__") and hasattr(source, "__dlpack_device__"):
        try:
            return _take(source)
        except BufferError as e:
            if not hasattr(source, "__array__"):
                raise Error(f"{what}: {e}") from e
    array: Array = np.asarray(source)
    return Given(array, dtypes.from_numpy(array.dtype.newbyteorder("=")), array.shape)


def _take(source: Any) -> Given:
    holder = _Struct(_ask(source))
    struct = holder._self
    flags = 0
    if isinstance(struct, Versioned):
        if struct.major != MAJOR:
            raise BufferError(f"got a struct of DLPack {struct.major}.{struct.minor}, want {MAJOR}")
        flags = struct.flags
        if flags & ~(READ_ONLY | COPIED | PADDED):
            raise BufferError(f"got flags {flags:#x}, want those of DLPack {MAJOR}.{_MINOR}")
    return _view(holder, struct.tensor, flags)


def _ask(source: Any) -> Any:
    """A library's capsule. Libraries refuse with whatever exception they like."""
    try:
        device = source.__dlpack_device__()
        if int(device[0]) not in _HOST:
            raise BufferError(f"got a tensor on device {device!r}, want one in host memory")
        try:
            return source.__dlpack__(max_version=(MAJOR, _MINOR))
        except TypeError:  # from before there were versions
            return source.__dlpack__()
    except (BufferError, Error):
        raise
    except Exception as e:
        raise BufferError(f"{type(e).__name__}: {e}") from e


def _view(holder: _Struct, t: Tensor, flags: int) -> Given:
    """An array over a struct's memory, every field of which is checked."""
    shape, strides = _sizes(t)
    of = dtypes.from_codes(t.code, t.bits)
    if (t.code, t.bits, t.lanes) == _PAIRS and shape:
        shape, strides = (*shape[:-1], 2 * shape[-1]), (*(2 * s for s in strides[:-1]), strides[-1])
    elif t.lanes != 1:
        raise DTypeError(f"offer: got elements of {t.lanes} lanes of {of.name}, want 1")
    plain = of.numpy if of.numpy is not None and of.numpy.isbuiltin == 1 else of.raw
    packed = of.packed and not flags & PADDED
    if not of.packed and plain.itemsize * 8 != of.bits:
        raise DTypeError(f"offer: got elements of type {of.name}, want one that this package knows")
    elements = 1
    for n in shape:
        elements *= n
    if elements > _MOST or any(abs(s) * n > _MOST for n, s in zip(shape, strides)):
        raise BufferError(f"got shape {shape} and strides {strides}, want at most {_MOST} elements")
    size, step = shape, tuple(s * plain.itemsize for s in strides)
    if packed:
        if elements and any(n > 1 and s != want for n, s, want in zip(shape, strides, wire.rows(shape))):
            raise BufferError(f"got packed elements of shape {shape} with strides {strides}, want them contiguous")
        size, step = (dtypes.packed_size(elements, of.bits),), (1,)
    if not elements:
        return Given(np.empty(size, plain), of, shape, packed)
    low, high = bounds(size, step, plain.itemsize)
    data = (t.data or 0) + t.byte_offset
    if not t.data or data + low < 0 or data + high >= 1 << 64:
        raise BufferError(f"got data at {data:#x} with elements from byte {low} to {high}, want an address")
    keeper: Any = holder
    keeper.__array_interface__ = {"version": 3, "typestr": plain.str, "shape": size, "strides": step, "data": (data, bool(flags & READ_ONLY))}
    return Given(np.asarray(keeper), of, shape, packed)


def _sizes(t: Tensor) -> Tuple[Tuple[int, ...], Tuple[int, ...]]:
    """Shape, and strides in elements."""
    rank = t.rank
    if not 0 <= rank <= wire.MAX_RANK:
        raise ValueError(f"offer: got rank {rank}, want at most {wire.MAX_RANK}")
    if rank and not t.shape:
        raise BufferError(f"got no sizes, want {rank}")
    shape = tuple(t.shape[:rank]) if rank else ()
    if any(n < 0 for n in shape):
        raise BufferError(f"got shape {shape}, want sizes from 0 on")
    return shape, tuple(t.strides[:rank]) if rank and t.strides else wire.rows(shape)


def bounds(shape: Tuple[int, ...], strides: Tuple[int, ...], item: int) -> Tuple[int, int]:
    """The bytes that elements lie in, relative to the first one: from the first number to before the second. There is an element."""
    reach = [(n - 1) * s for n, s in zip(shape, strides)]
    return sum(r for r in reach if r < 0), sum(r for r in reach if r > 0) + item
