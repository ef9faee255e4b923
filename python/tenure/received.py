"""The objects that a consumer holds: received tensors, and tickets for them."""

from __future__ import annotations

import weakref
from types import TracebackType
from typing import Any, Optional, Tuple, Type, Union, cast

import numpy as np

from . import dlpack, dtypes, wire
from .errors import ClosedError, Error

Array = np.ndarray[Any, Any]

_BYTES = np.dtype("u1")


class Ticket(bytes):
    """16 bytes that stand for a tensor of one owner. Hand them to another process by any channel; its peer claims them once."""

    def __new__(cls, data: Union[bytes, str]) -> "Ticket":
        try:
            made = super().__new__(cls, bytes.fromhex(data) if isinstance(data, str) else data)
        except ValueError:
            raise ValueError(f"ticket: got {data!r}, want 32 hexadecimal digits") from None
        if len(made) != 16:
            raise ValueError(f"ticket: got {len(made)} bytes, want 16")
        return made

    def __str__(self) -> str:
        return self.hex()


class Received:
    """A tensor from another process.

    `array` is a numpy array over the owner's memory: no byte is copied, and it is read-only unless it was received with `writable`.
    Libraries that speak DLPack (torch, JAX, tvm-ffi) take it as it is: `torch.from_dlpack(received)`. Where the consumer can be told that
    memory is read-only (DLPack 1.0) nothing is copied, with any element type; the others get a copy.

    The lease goes back to the owner when the last array, view, memoryview or DLPack consumer of it is gone, and this object with them.
    `release`, or the end of a `with`, gives up this object's own hold; what was taken out of it stays valid for as long as it exists.
    """

    __slots__ = ("_array", "_base", "_form", "label", "peer", "serial")

    def __init__(self, peer: Any, base: Array, form: wire.Form, label: str, serial: int) -> None:
        self.peer = peer
        """The Peer that received it."""
        self.label = label
        self.serial = serial
        """Of the lease; 0 for a small tensor that came inside its message and has none."""
        self._base: Optional[Array] = base
        self._form = form
        self._array: Optional[Array] = None

    @property
    def array(self) -> Array:
        """The tensor. Elements of less than a byte are unpacked, which is a copy; see `raw`."""
        made = self._array
        if made is None:
            made = self._array = self._make()
        return made

    @property
    def shape(self) -> Tuple[int, ...]:
        """Sizes from the outermost dimension on, also where numpy has no such type."""
        return self._form.shape

    @property
    def dtype(self) -> dtypes.DType:
        """The element type as it travels, also where numpy has no such type."""
        return self._form.dtype

    @property
    def raw(self) -> Array:
        """The elements' bits as unsigned integers, or the bytes where elements are packed. Needs no type that numpy lacks."""
        return self._bits()

    def ticket(self, timeout: Optional[float] = None) -> Ticket:
        """Asks the owner for a ticket, with which any other peer of the same owner gets this tensor."""
        return cast(Ticket, self.peer.ticket(self, timeout))

    def release(self) -> bool:
        """Ends this object's hold, and says whether that was the last one, so that the bytes have gone back. If not, they go back with
        the last array, view or DLPack consumer that was made of it. Twice is once; the object cannot be used after it."""
        base, self._base, self._array = self._base, None, None
        watch = None if base is None else weakref.ref(base)
        del base
        return watch is None or watch() is None

    def close(self) -> None:
        """As release."""
        self.release()

    @property
    def closed(self) -> bool:
        """Whether this object was released; arrays that were taken out of it may still be there."""
        return self._base is None

    def __enter__(self) -> "Received":
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], value: Optional[BaseException], trace: Optional[TracebackType]) -> None:
        self.close()

    def __array__(self, dtype: Any = None, copy: Optional[bool] = None) -> Array:
        if copy is None:
            return np.asarray(self.array, dtype=dtype)
        return np.array(self.array, dtype=dtype, copy=copy)

    def __dlpack__(self, *, stream: Any = None, max_version: Any = None, dl_device: Any = None, copy: Any = None) -> Any:
        asked = dlpack.request(stream, max_version, dl_device, copy)
        return dlpack.lend(self._elements(), self.dtype, self.shape, asked)

    def __dlpack_device__(self) -> Tuple[int, int]:
        return dlpack.HOST

    def __repr__(self) -> str:
        state = "released" if self._base is None else f"{self._form.dtype.name}{list(self._form.shape)}"
        return f"<tenure.Received {self.label!r} {state}>"

    def _held(self) -> Array:
        if self._base is None:
            raise ClosedError("received: got a tensor that is released, want one that is held")
        return self._base

    def _bits(self) -> Array:
        form = self._form
        if form.packed or form.dtype.raw.itemsize * 8 != form.dtype.bits:
            return self._held()[form.first : form.end]
        return self._view(form.dtype.raw)

    def _elements(self) -> Array:
        """What `dlpack.lend` wants: elements of a type of numpy's own, or their bits."""
        of = self.dtype.numpy
        return self._bits() if of is None or of.isbuiltin != 1 else self._view(of)

    def _own(self) -> None:
        """Replaces what the owner lends by a copy that may be written; the lease ends."""
        self._base = self._held()[: self._form.end].copy()

    def _make(self) -> Array:
        base, form = self._held(), self._form
        if form.dtype.packed:
            return dtypes.unpack(base[form.first : form.end], form.dtype, form.shape).view(dlpack.Lendable)
        of = form.dtype.numpy
        if of is None:
            raise form.dtype.missing()
        return self._view(of)

    def _view(self, of: np.dtype[Any]) -> Array:
        form, base = self._form, self._held()
        kind = dlpack.kind_of(of)
        if form.elements == 0:
            return kind(form.shape, of, base)
        try:
            return kind(form.shape, of, base, form.first, form.strides)
        except (ValueError, OverflowError) as e:
            raise Error(f"array: got shape {form.shape}, want one that numpy can hold: {e}") from None


def bytes_of(memory: memoryview) -> Array:
    """The array at the end of all chains: over memory that stays mapped while it exists."""
    return np.frombuffer(memory, _BYTES)
