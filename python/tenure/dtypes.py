"""Element types: the codes of DLPack that travel, their names, and what numpy calls them.

numpy has no bfloat16 and nothing of less than a byte. Where the package ml_dtypes can be imported its types are used; without it such
tensors are received and can be read as unsigned integers (`Received.raw`), and `Received.array` says what is missing.
"""

from __future__ import annotations

import importlib
from typing import Any, Dict, NamedTuple, Optional, Tuple

import numpy as np

from .errors import DTypeError

_INT, _UINT, _FLOAT, _OPAQUE, _BFLOAT, _COMPLEX, _BOOL = range(7)

_NUMPY = {
    (_FLOAT, 16): ("f16", "f2"), (_FLOAT, 32): ("f32", "f4"), (_FLOAT, 64): ("f64", "f8"),
    (_INT, 8): ("i8", "i1"), (_INT, 16): ("i16", "i2"), (_INT, 32): ("i32", "i4"), (_INT, 64): ("i64", "i8"),
    (_UINT, 8): ("u8", "u1"), (_UINT, 16): ("u16", "u2"), (_UINT, 32): ("u32", "u4"), (_UINT, 64): ("u64", "u8"),
    (_COMPLEX, 64): ("c64", "c8"), (_COMPLEX, 128): ("c128", "c16"), (_BOOL, 8): ("bool", "?"),
}

_ML_DTYPES = {
    (_BFLOAT, 16): ("bf16", "bfloat16"),
    (7, 8): ("f8e3m4", "float8_e3m4"), (8, 8): ("f8e4m3", "float8_e4m3"), (9, 8): ("f8e4m3b11fnuz", "float8_e4m3b11fnuz"),
    (10, 8): ("f8e4m3fn", "float8_e4m3fn"), (11, 8): ("f8e4m3fnuz", "float8_e4m3fnuz"), (12, 8): ("f8e5m2", "float8_e5m2"),
    (13, 8): ("f8e5m2fnuz", "float8_e5m2fnuz"), (14, 8): ("f8e8m0", "float8_e8m0fnu"),
    (15, 6): ("f6e2m3fn", "float6_e2m3fn"), (16, 6): ("f6e3m2fn", "float6_e3m2fn"), (17, 4): ("f4e2m1", "float4_e2m1fn"),
    (_INT, 4): ("i4", "int4"), (_UINT, 4): ("u4", "uint4"), (_INT, 2): ("i2", "int2"), (_UINT, 2): ("u2", "uint2"),
}

_NAMELESS = {(_COMPLEX, 32): "c32", (18, 32): "bc32", (_OPAQUE, 64): "opaque"}


class DType(NamedTuple):
    """An element type as it travels. `numpy` is None where neither numpy nor an importable ml_dtypes has it."""

    code: int
    bits: int
    name: str
    numpy: Optional[np.dtype[Any]]
    raw: np.dtype[Any]
    """The unsigned integers that the same bytes are read as; bytes where elements are packed."""

    @property
    def packed(self) -> bool:
        """Whether elements share bytes."""
        return self.bits % 8 != 0

    def missing(self) -> DTypeError:
        """The error for an array of a type that numpy lacks."""
        if (self.code, self.bits) in _ML_DTYPES:
            hint = "install ml_dtypes (a version that has it), or use raw"
        else:
            hint = "use raw"
        return DTypeError(f"array: got elements of type {self.name}, want one that numpy has: {hint}")


_known: Dict[Tuple[int, int], DType] = {}
_by_numpy: Dict[np.dtype[Any], DType] = {}


def _fill() -> None:
    for (code, bits), (name, text) in _NUMPY.items():
        of = np.dtype(text)
        _known[code, bits] = DType(code, bits, name, of, np.dtype("V16" if of.itemsize == 16 else f"u{of.itemsize}"))
    ml_dtypes: Any = None
    try:
        ml_dtypes = importlib.import_module("ml_dtypes")
    except ImportError:
        pass
    for (code, bits), (name, text) in _ML_DTYPES.items():
        scalar = getattr(ml_dtypes, text, None)
        raw = np.dtype("u2" if bits == 16 else "u1")
        _known[code, bits] = DType(code, bits, name, None if scalar is None else np.dtype(scalar), raw)
    for (code, bits), name in _NAMELESS.items():
        _known[code, bits] = DType(code, bits, name, None, np.dtype(f"u{bits // 8}"))
    for known in _known.values():
        if known.numpy is not None:
            _by_numpy[known.numpy] = known


_fill()


def from_codes(code: int, bits: int) -> DType:
    """The type of DLPack's code and bits. An unknown one has a name made of its codes, and bytes as its raw form."""
    known = _known.get((code, bits))
    return known if known is not None else DType(code, bits, f"dlpack:{code}:{bits}", None, np.dtype("u1"))


def from_numpy(of: np.dtype[Any]) -> DType:
    """The type of a numpy array's elements."""
    known = _by_numpy.get(of)
    if known is None:
        raise DTypeError(f"offer: got elements of type {of}, want one of {', '.join(sorted(d.name for d in _by_numpy.values()))}")
    return known


def packed_size(elements: int, bits: int) -> int:
    """Bytes of so many packed elements."""
    return (elements * bits + 7) // 8


def unpack(data: np.ndarray[Any, Any], of: DType, shape: Tuple[int, ...]) -> np.ndarray[Any, Any]:
    """A fresh array of packed elements, one per byte, as ml_dtypes has them."""
    if of.numpy is None:
        raise of.missing()
    elements = int(np.prod(shape, dtype=object))
    bits = np.unpackbits(data, count=elements * of.bits, bitorder="little").reshape(elements, of.bits)
    if of.code == _INT:  # the sign fills the byte
        wide = np.concatenate([bits, np.repeat(bits[:, -1:], 8 - of.bits, axis=1)], axis=1)
        return np.packbits(wide, axis=1, bitorder="little").view(np.int8).reshape(shape).astype(of.numpy)
    return np.packbits(bits, axis=1, bitorder="little").view(of.numpy).reshape(shape)


def pack(array: np.ndarray[Any, Any], of: DType) -> np.ndarray[Any, Any]:
    """The packed bytes of an array whose elements have a byte each."""
    bits = np.unpackbits(np.ascontiguousarray(array).view(np.uint8).reshape(-1, 1), axis=1, bitorder="little")
    return np.packbits(bits[:, : of.bits].reshape(-1), bitorder="little")
