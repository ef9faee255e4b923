"""The library of NVIDIA's driver, through ctypes: what a consumer of device memory calls, and nothing else.

No CUDA package and no toolkit is needed. The library is loaded when the first arena of a device comes.
"""

from __future__ import annotations

import ctypes
import os
import platform
import threading
from typing import Any, Dict, Optional, Sequence, Tuple

from .errors import DeviceError

LIBRARY = "TENURE_LIBCUDA"
"""The environment variable that names another library."""
_NAME = "libcuda.so.1"
_TRIPLET = f"/usr/lib/{platform.machine()}-linux-gnu"
_FOLDERS = (
    "/usr/lib/wsl/lib", "/usr/local/nvidia/lib64", "/usr/lib64", "/run/opengl-driver/lib", _TRIPLET, f"{_TRIPLET}/nvidia", f"{_TRIPLET}/tegra",
)  # fmt: skip
"""Of containers, and of systems whose loader is not told of them."""
READ, READ_WRITE = 1, 3
INVALID_VALUE, OUT_OF_MEMORY, NOT_SUPPORTED = 1, 2, 801
_ON_DEVICE = 1
_POSIX_DESCRIPTOR = 1
_DISABLE_TIMING = 2
_NOT_READY = 600
_LAZY_PEER_ACCESS = 1
HANDLE = 64

_number = ctypes.c_int
_size = ctypes.c_size_t
_handle = ctypes.c_void_p
_address = ctypes.c_uint64
_flags32 = ctypes.c_uint32
_flags64 = ctypes.c_uint64


class Handle(ctypes.Structure):
    """CUipcEventHandle and CUipcMemHandle, which are passed by value."""

    _fields_ = [("bytes", ctypes.c_char * HANDLE)]


class UUID(ctypes.Structure):
    """CUuuid."""

    _fields_ = [("bytes", ctypes.c_ubyte * 16)]


class Access(ctypes.Structure):
    """CUmemAccessDesc."""

    _fields_ = [("kind", _number), ("device", _number), ("flags", _number)]


def _out(of: Any) -> Any:
    return ctypes.POINTER(of)


_FUNCTIONS: Dict[str, Tuple[Any, ...]] = {
    "cuInit": (_flags32,),
    "cuDeviceGetCount": (_out(_number),),
    "cuDeviceGet": (_out(_number), _number),
    "cuDeviceGetUuid_v2": (_out(UUID), _number),
    "cuDevicePrimaryCtxRetain": (_out(_handle), _number),
    "cuCtxPushCurrent_v2": (_handle,),
    "cuCtxPopCurrent_v2": (_out(_handle),),
    "cuCtxSynchronize": (),
    "cuMemImportFromShareableHandle": (_out(_flags64), _handle, _number),
    "cuMemRelease": (_flags64,),
    "cuMemAddressReserve": (_out(_address), _size, _size, _address, _flags64),
    "cuMemAddressFree": (_address, _size),
    "cuMemMap": (_address, _size, _size, _flags64, _flags64),
    "cuMemUnmap": (_address, _size),
    "cuMemSetAccess": (_address, _size, _out(Access), _size),
    "cuMemAlloc_v2": (_out(_address), _size),
    "cuMemFree_v2": (_address,),
    "cuMemcpyDtoDAsync_v2": (_address, _address, _size, _handle),
    "cuIpcOpenEventHandle": (_out(_handle), Handle),
    "cuIpcOpenMemHandle_v2": (_out(_address), Handle, _flags32),
    "cuIpcCloseMemHandle": (_address,),
    "cuMemGetAddressRange_v2": (_out(_address), _out(_size), _address),
    "cuEventCreate": (_out(_handle), _flags32),
    "cuEventQuery": (_handle,),
    "cuEventDestroy_v2": (_handle,),
    "cuStreamWaitEvent": (_handle, _handle, _flags32),
}
_NEWER: Dict[str, Tuple[Any, ...]] = {"cuCtxRecordEvent": (_handle, _handle)}
"""Of CUDA 12.5."""


class CallError(DeviceError):
    """A call of the driver that failed."""

    def __init__(self, text: str, result: int) -> None:
        super().__init__(text)
        self.result = result


class Driver:
    """The functions of the library. The methods that have a context's name in them need one that is current."""

    def __init__(self, library: str) -> None:
        self._library = load(library)
        self._functions: Dict[str, Any] = {}
        for name, types in {**_FUNCTIONS, **_NEWER}.items():
            function = getattr(self._library, name, None)
            if function is None and name in _FUNCTIONS:
                raise DeviceError(f"cuda: {library} has no {name}, want the library of a driver for CUDA 11.4 or newer")
            if function is not None:
                function.argtypes, function.restype = types, _number
                self._functions[name] = function
        self.call("cuInit", 0)

    def call(self, name: str, *args: Any) -> None:
        """Calls a function, and raises CallError with its name, code and text where it fails."""
        result = self._functions[name](*args)
        if result != 0:
            raise CallError(f"cuda: {name.split('_v')[0]}: {self._text(result)}", result)

    def has(self, name: str) -> bool:
        return name in self._functions

    def _text(self, result: int) -> str:
        words = []
        for name in ("cuGetErrorName", "cuGetErrorString"):
            text = ctypes.c_char_p()
            function = getattr(self._library, name, None)
            if function is not None and function(_number(result), ctypes.byref(text)) == 0 and text.value:
                words.append(text.value.decode("utf-8", "replace"))
        return f"error {result}" if not words else f"{words[0]} ({result})" + "".join(f": {w}" for w in words[1:])

    # --- calls with results ---

    def uuids(self) -> Dict[bytes, int]:
        """The devices, by UUID."""
        count = _number()
        self.call("cuDeviceGetCount", ctypes.byref(count))
        found = {}
        for i in range(count.value):
            device, uuid = _number(), UUID()
            self.call("cuDeviceGet", ctypes.byref(device), i)
            self.call("cuDeviceGetUuid_v2", ctypes.byref(uuid), device.value)
            found[bytes(uuid.bytes)] = device.value
        return found

    def retain(self, device: int) -> int:
        """The primary context of a device, which other libraries of the process use too."""
        context = _handle()
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
        return context.value or 0

    def open_memory(self, fd: int) -> int:
        """Memory behind a descriptor, which is not kept."""
        memory = _flags64()
        self.call("cuMemImportFromShareableHandle", ctypes.byref(memory), fd, _POSIX_DESCRIPTOR)
        return memory.value

    def reserve(self, size: int) -> int:
        at = _address()
        self.call("cuMemAddressReserve", ctypes.byref(at), size, 0, 0, 0)
        return at.value

    def grant(self, at: int, size: int, device: int, flags: int) -> None:
        self.call("cuMemSetAccess", at, size, ctypes.byref(Access(_ON_DEVICE, device, flags)), 1)

    def allocate(self, size: int) -> int:
        at = _address()
        self.call("cuMemAlloc_v2", ctypes.byref(at), size)
        return at.value

    def open_event(self, handle: bytes) -> int:
        event = _handle()
        self.call("cuIpcOpenEventHandle", ctypes.byref(event), _by_value(handle))
        return event.value or 0

    def open_allocation(self, handle: bytes) -> int:
        at = _address()
        self.call("cuIpcOpenMemHandle_v2", ctypes.byref(at), _by_value(handle), _LAZY_PEER_ACCESS)
        return at.value

    def range_of(self, at: int) -> Tuple[int, int]:
        """The first address and the size of the allocation that has an address."""
        base, size = _address(), _size()
        self.call("cuMemGetAddressRange_v2", ctypes.byref(base), ctypes.byref(size), at)
        return base.value, size.value

    def make_event(self) -> int:
        event = _handle()
        self.call("cuEventCreate", ctypes.byref(event), _DISABLE_TIMING)
        return event.value or 0

    def is_complete(self, event: int) -> bool:
        result = self._functions["cuEventQuery"](event)
        if result not in (0, _NOT_READY):
            raise CallError(f"cuda: cuEventQuery: {self._text(result)}", result)
        return bool(result == 0)


def _by_value(handle: bytes) -> Handle:
    made = Handle()
    ctypes.memmove(ctypes.addressof(made), handle, HANDLE)
    return made


def load(library: str, folders: Sequence[str] = _FOLDERS) -> ctypes.CDLL:
    """The library, by its path, or by its name where the loader or one of the folders has it."""
    try:
        return ctypes.CDLL(library)
    except OSError as e:
        why = e
    for folder in folders if library == _NAME else ():
        path = os.path.join(folder, library)
        if os.path.exists(path):
            try:
                return ctypes.CDLL(path)
            except OSError as e:  # a file that does not load is the answer
                why = e
                break
    raise DeviceError(f"cuda: no driver: {' '.join(str(why).split())}") from None


_lock = threading.Lock()
_the: Optional[Driver] = None


def the() -> Driver:
    """The driver of this process; loads it if need be, and raises DeviceError where there is none."""
    global _the
    with _lock:
        if _the is None:
            _the = Driver(os.environ.get(LIBRARY) or _NAME)
        return _the


def forget() -> None:
    """In a forked child, where the driver does not work: it is to say so."""
    global _lock
    _lock = threading.Lock()
