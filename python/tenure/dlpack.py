"""DLPack exports of arrays, for every element type of the protocol.

numpy makes the structs and the capsules. Its deleter is C code, which may be called on any thread, with or without Python's global lock, and
after the end of the interpreter; a deleter that ctypes makes of a Python function may not. numpy has no DLPack code for bfloat16 and similar
types. It exports such elements as unsigned integers of the same width, packed ones as bytes, and the type in its struct is corrected before
a consumer receives the struct.
"""

from __future__ import annotations

import ctypes
import operator
from typing import Any, NamedTuple, Optional, Tuple, Type

import numpy as np

from . import dtypes
from .errors import DTypeError
from .wire import rows

Array = np.ndarray[Any, Any]

HOST = (1, 0)
"""DLPack's CPU, number 0."""
NEW, OLD = b"dltensor_versioned", b"dltensor"
"""Names of capsules that no consumer has taken yet."""
READ_ONLY, COPIED, PADDED = 1, 2, 4
"""Flags of the versioned struct: 2 is for a copy of the consumer's own, 4 for elements of less than a byte that have one each."""
MAJOR = 1
_FIRST_CODE_OF_1_1 = 7
_KNOWS_READ_ONLY = tuple(map(int, np.__version__.split(".")[:2])) >= (2, 1)
"""Whether this numpy makes the versioned struct, which can say read-only."""


class Tensor(ctypes.Structure):
    """DLTensor."""

    _fields_ = [
        ("data", ctypes.c_void_p), ("device", ctypes.c_int32), ("number", ctypes.c_int32), ("rank", ctypes.c_int32),
        ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.POINTER(ctypes.c_int64)), ("byte_offset", ctypes.c_uint64),
    ]  # fmt: skip


class Managed(ctypes.Structure):
    """DLManagedTensor, the struct of before DLPack 1.0."""

    _fields_ = [("tensor", Tensor), ("manager", ctypes.c_void_p), ("deleter", ctypes.c_void_p)]


class Versioned(ctypes.Structure):
    """DLManagedTensorVersioned."""

    _fields_ = [
        ("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("manager", ctypes.c_void_p), ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64), ("tensor", Tensor),
    ]  # fmt: skip


pointer_of = ctypes.pythonapi.PyCapsule_GetPointer
pointer_of.restype, pointer_of.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]


class Request(NamedTuple):
    """A consumer's request: whether it knows the versioned struct, and whether to copy (None: if need be)."""

    versioned: bool
    copy: Optional[bool]
    stream: int = 0
    """Of a device: the one whose later work sees the tensor, or NO_SYNC."""


NO_SYNC, LEGACY_STREAM = -1, 1


def request(stream: Any, max_version: Any, dl_device: Any, copy: Any) -> Request:
    """The arguments of __dlpack__ for host memory, checked. Types and values that the protocol does not have are a TypeError and a
    ValueError, what host memory cannot do is a BufferError."""
    if stream is not None:
        raise BufferError(f"dlpack: got stream {stream!r}, want none for host memory")
    return _request(HOST, max_version, dl_device, copy)


def request_on(place: Tuple[int, int], stream: Any, max_version: Any, dl_device: Any, copy: Any) -> Request:
    """The same for memory of a CUDA device. No stream means the legacy default stream; 0 could be either default stream."""
    number = LEGACY_STREAM
    if stream is not None:
        try:
            number = operator.index(stream)
        except TypeError:
            raise TypeError(f"dlpack: got stream {stream!r}, want an integer or None") from None
        if number == 0 or number < NO_SYNC:
            raise BufferError(f"dlpack: got stream {number}, want -1, 1, 2 or a CUstream")
    return _request(place, max_version, dl_device, copy)._replace(stream=number)


def _request(place: Tuple[int, int], max_version: Any, dl_device: Any, copy: Any) -> Request:
    if copy is not None and not isinstance(copy, bool):
        raise TypeError(f"dlpack: got copy {copy!r}, want True, False or None")
    if dl_device is not None and _two(dl_device, "dl_device") != place:
        raise BufferError(f"dlpack: got device {dl_device!r}, want {place}, where the tensor is")
    if max_version is None:
        return Request(False, copy)
    version = _two(max_version, "max_version")
    if min(version) < 0:
        raise ValueError(f"dlpack: got max_version {max_version!r}, want numbers from 0 on")
    return Request(version[0] >= MAJOR and _KNOWS_READ_ONLY, copy)


def _two(pair: Any, what: str) -> Tuple[int, int]:
    if not isinstance(pair, tuple) or len(pair) != 2:
        raise TypeError(f"dlpack: got {what} {pair!r}, want a tuple of two integers")
    try:
        return operator.index(pair[0]), operator.index(pair[1])
    except TypeError:
        raise TypeError(f"dlpack: got {what} {pair!r}, want a tuple of two integers") from None


def lend(array: Array, of: dtypes.DType, shape: Tuple[int, ...], asked: Request) -> Any:
    """A capsule over an array's bytes, which stay until its consumer has called the deleter.

    The array has elements of a type of numpy's own, or their bits as unsigned integers; of packed ones it is the bytes, whose shape counts
    elements. Read-only bytes go to a consumer that cannot be told so as a copy.
    """
    copied = asked.copy is True
    if not asked.versioned and not array.flags.writeable:
        if asked.copy is False:
            raise BufferError("dlpack: got a consumer that takes no copy and does not know read-only memory, want one that asks for version 1.0 or later")
        copied = True
    if copied:
        array = array.copy()
    return describe(array, of, shape, HOST, asked.versioned, copied)


def describe(array: Array, of: dtypes.DType, shape: Tuple[int, ...], place: Tuple[int, int], versioned: bool, copied: bool) -> Any:
    """A capsule over the bytes of an array as they are. It reads none of them: they may be a device's."""
    if of.packed:  # never read: the array is longer than its memory
        array = np.lib.stride_tricks.as_strided(array, shape, rows(shape))
    elif array.itemsize * 8 != of.bits:
        raise BufferError(f"dlpack: got elements of type {of.name}, want one that this package knows")
    array = array.view(np.ndarray)
    if not versioned:
        capsule = array.__dlpack__()
        tensor = Managed.from_address(pointer_of(capsule, OLD)).tensor
    else:
        capsule = array.__dlpack__(max_version=(MAJOR, 0))
        made = Versioned.from_address(pointer_of(capsule, NEW))
        made.flags |= COPIED if copied else 0
        if of.code >= _FIRST_CODE_OF_1_1:
            made.minor = max(made.minor, 1)
        tensor = made.tensor
    tensor.code, tensor.bits, tensor.lanes = of.code, of.bits, 1
    tensor.device, tensor.number = place
    return capsule


class Lendable(np.ndarray[Any, Any]):
    """An array that speaks DLPack also where numpy does not know its elements' type. Elements of less than a byte are packed, a copy.
    Views of it are of this kind, results of computations are ordinary arrays."""

    def __dlpack__(self, *, stream: Any = None, max_version: Any = None, dl_device: Any = None, copy: Any = None) -> Any:
        asked = request(stream, max_version, dl_device, copy)
        try:
            of = dtypes.from_numpy(self.dtype)
        except DTypeError as e:
            raise BufferError(str(e)) from None
        plain = self.view(np.ndarray)
        if not of.packed:
            return lend(plain.view(_stand_in(of)), of, self.shape, asked)
        if asked.copy is False:
            raise BufferError(f"dlpack: got elements of type {of.name} with a byte each and a consumer that takes no copy, want to pack them")
        return lend(dtypes.pack(plain, of), of, self.shape, Request(asked.versioned, True))

    def __dlpack_device__(self) -> Tuple[int, int]:  # type: ignore[override]
        return HOST

    def __array_wrap__(self, array: Any, context: Any = None, return_scalar: bool = False) -> Any:
        return array[()] if return_scalar else np.asarray(array)


def _stand_in(of: dtypes.DType) -> np.dtype[Any]:
    """The element type for numpy: the type itself if numpy has it."""
    return of.numpy if of.numpy is not None and of.numpy.isbuiltin == 1 else of.raw


def kind_of(of: np.dtype[Any]) -> Type[Array]:
    """The class of arrays of a type: numpy's own, unless numpy would not lend them."""
    return np.ndarray if of.isbuiltin == 1 else Lendable
