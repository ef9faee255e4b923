"""Received tensors in the memory of a device, which other libraries take by DLPack."""

from __future__ import annotations

from typing import Any, NoReturn, Optional, Tuple

from . import device, dlpack, wire
from .errors import Error, GoneError
from .received import Array, Received


class DeviceTensor(Received):
    """A tensor from another process, in the memory of a device.

    `torch.from_dlpack(received)`, `cupy.from_dlpack(received)` and `jax.dlpack.from_dlpack(received)` take it as it is; `array` and `raw`
    raise an error, because the processor cannot read it. A consumer that cannot be told that memory is read-only gets a copy, which the
    device makes.

    The lease goes back to the owner when the last consumer is gone, and this object with it, and the device has done all work that was
    submitted before. Nothing here waits for a device: a stream that is named to `__dlpack__` waits for the owner's work.
    """

    __slots__ = ("_after", "_copies", "_lease", "device")

    def __init__(self, peer: Any, base: Array, form: wire.Form, label: str, lease: Any, after: Optional[device.Event]) -> None:
        super().__init__(peer, base, form, label, lease.serial)
        self.device: device.Device = lease.map.device
        """The device of this process that has the tensor; `number` is its number here."""
        self._lease = lease
        self._after = after
        self._copies = False

    @property
    def array(self) -> Array:
        """Raises: there is no numpy array over a device's memory."""
        self._no_array("array")

    @property
    def raw(self) -> Array:
        """Raises, as `array`."""
        self._no_array("raw")

    def __array__(self, dtype: Any = None, copy: Optional[bool] = None) -> Array:
        self._no_array("array")

    def _no_array(self, what: str) -> NoReturn:
        self._held()
        raise Error(f"{what}: got a tensor on {self.device}, want one in host memory (torch, cupy and JAX take it: from_dlpack(received))")

    def __dlpack__(self, *, stream: Any = None, max_version: Any = None, dl_device: Any = None, copy: Any = None) -> Any:
        place = self.__dlpack_device__()
        asked = dlpack.request_on(place, stream, max_version, dl_device, copy)
        array = self._elements()
        copied = self._copies if asked.copy is None else asked.copy
        if not asked.versioned and not copied:
            if asked.copy is False:
                raise BufferError("dlpack: got a consumer that takes no copy and does not know read-only memory, want one that asks for version 1.0 or later")
            copied = True
        if copied and asked.stream == dlpack.NO_SYNC:
            raise BufferError("dlpack: got stream -1 for a copy, want the stream that is to make it")
        self._precede(asked.stream)
        self._lease.lent = True
        if copied:
            array = self._copy_on(asked.stream)
        return dlpack.describe(array, self.dtype, self.shape, place, asked.versioned, copied)

    def __dlpack_device__(self) -> Tuple[int, int]:
        return wire.CUDA, self.device.number

    def _precede(self, stream: int) -> None:
        """Has later work of a stream wait for the work of the owner that writes the tensor."""
        if self._lease.map.allocation is not None and self.peer._is_dead():
            raise GoneError("dlpack: the owner died, and the memory of the tensor, which another allocator made, with it")
        after = self._after
        if after is None or stream == dlpack.NO_SYNC:
            return
        gone = self.peer._gone  # before the question: the owner may complete the work and end
        if after.is_complete():
            self._after = None
        elif gone:
            raise GoneError("dlpack: the owner died before the work that writes the tensor was complete")
        else:
            after.precede(stream)

    def _copy_on(self, stream: int) -> Array:
        form, base = self._form, self._held()
        made = device.copy(self.device, base.__array_interface__["data"][0], form.end, stream)
        kept, self._base = base, made
        try:
            return self._elements()
        finally:
            self._base = kept

    def _own(self) -> None:
        """Consumers get copies of their own, which they may write."""
        self._copies = True
