"""Memory with a descriptor and no name: made and sealed by its owner, checked and mapped by its consumers."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import mmap
import os
import sys
from typing import Callable, Optional

import numpy as np

from .errors import LimitError, UnsupportedError

_MFD_CLOEXEC, _MFD_ALLOW_SEALING, _MFD_NOEXEC_SEAL = 1, 2, 8
_F_ADD_SEALS, _F_GET_SEALS = 1033, 1034
_SEAL_SEAL, _SEAL_SHRINK, _SEAL_GROW, _SEAL_WRITE, _SEAL_FUTURE_WRITE = 1, 2, 4, 8, 16
_MADV_POPULATE_WRITE = 23
_HUGE = 2 << 20
_CGROUPS = "/sys/fs/cgroup"

PAGE = 4096


def require(what: str) -> None:
    """Raises where there is no Linux."""
    if not sys.platform.startswith("linux"):
        raise UnsupportedError(f"{what}: got system {sys.platform}, want linux")


if sys.platform.startswith("linux"):
    import fcntl

    _libc = ctypes.CDLL(None, use_errno=True)
    _mmap, _munmap, _madvise = _libc.mmap, _libc.munmap, _libc.madvise
    _mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_int64]
    _mmap.restype = ctypes.c_void_p
    _munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
    _madvise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]

_FAILED = ctypes.c_void_p(-1).value
_here = object()
"""Stands for this process; a forked child has another."""


class Memory:
    """A map of a descriptor, which it does not keep: module mmap does, before Python 3.13. It is unmapped when the last view of it is gone,
    and everything that was made from one.

    numpy knows it by its array interface. An array over it is the one thing that refers to it; arrays are nothing that the collector of
    cycles looks into, so it never finds the map unused while there is a way to it.
    """

    __slots__ = ("__array_interface__", "_address", "_process", "_size")

    def __init__(self, fd: int, size: int, flags: int, prot: int) -> None:
        self._process: Optional[object] = None
        address = _mmap(None, size, prot, flags, fd, 0)
        if address == _FAILED:
            raise _error()
        self._address: int = address
        self._size = size
        self._process = _here
        self.__array_interface__ = {"version": 3, "typestr": "|u1", "shape": (size,), "data": (address, not prot & mmap.PROT_WRITE)}
        self.advise(mmap.MADV_DONTFORK)

    def view(self) -> memoryview:
        """All of it, as bytes."""
        return np.asarray(self).data

    def advise(self, advice: int, at: int = 0, size: Optional[int] = None) -> None:
        """Tells the system about a part of it that begins with a page, or about all of it."""
        while _madvise(self._address + at, self._size if size is None else size, advice) != 0:
            e = _error()
            if e.errno != errno.EINTR:
                raise e

    def __del__(self, finalizing: Callable[[], bool] = sys.is_finalizing) -> None:
        # In a forked child nothing is mapped there, or something else is. At the end of the process the system does it, and this
        # module's names are nothing any more.
        if not finalizing() and self._process is _here:
            _munmap(self._address, self._size)


def _error() -> OSError:
    code = ctypes.get_errno()
    return OSError(code, os.strerror(code))


def forget() -> None:
    """In a forked child: nothing of the parent's is mapped, so nothing is to be unmapped."""
    global _here
    _here = object()


def room() -> int:
    """Bytes until the machine or a memory cgroup of this process is full: beyond that there is no error, only the kernel's kill."""
    least = 1 << 62
    with contextlib.suppress(OSError, ValueError):
        with open("/proc/meminfo") as f:
            least = next((1024 * int(line.split()[1]) for line in f if line.startswith("MemAvailable:")), least)
    try:
        with open("/proc/self/cgroup") as f:
            path = next((line[3:].strip() for line in f if line.startswith("0::")), "")
    except OSError:
        return least
    while True:
        folder = _CGROUPS + path.rstrip("/")
        try:
            with open(folder + "/memory.max") as f:
                most = f.read().strip()
            if most != "max":
                with open(folder + "/memory.current") as f:
                    least = min(least, int(most) - int(f.read()))
        except (OSError, ValueError):
            pass  # the root has no limit, and cgroups of version 1 are not read
        if path in ("", "/"):
            return least
        path = os.path.dirname(path)


def create(name: str, size: int) -> int:
    """A descriptor of so many bytes. The caller closes it."""
    for flags in (_MFD_CLOEXEC | _MFD_ALLOW_SEALING | _MFD_NOEXEC_SEAL, _MFD_CLOEXEC | _MFD_ALLOW_SEALING):
        try:
            fd = os.memfd_create(name, flags)
            break
        except OSError as e:
            if e.errno != errno.EINVAL:
                raise
    else:
        raise UnsupportedError("memfd_create: this kernel has no sealed memory")
    try:
        os.ftruncate(fd, size)
    except BaseException:
        os.close(fd)
        raise
    return fd


def populate(fd: int, size: int) -> memoryview:
    """A writable view of a descriptor's memory, with every page there: no write to it can fail any more."""
    left = room()
    if size > left:
        raise LimitError(f"arena: got {size} bytes, want at most {max(left, 0)}, which the machine or a memory cgroup has left")
    m = Memory(fd, size, mmap.MAP_SHARED, mmap.PROT_READ | mmap.PROT_WRITE)
    if size >= _HUGE:
        with contextlib.suppress(OSError):  # a kernel without them
            m.advise(mmap.MADV_HUGEPAGE)
    try:
        m.advise(_MADV_POPULATE_WRITE)
    except OSError as e:
        if e.errno != errno.EINVAL:
            raise LimitError(f"arena: {size} bytes are not to be had: {e}") from None
        os.posix_fallocate(fd, 0, size)  # before Linux 5.14
    return m.view()


def seal(fd: int) -> None:
    """After this no process can resize the memory, or get another writable map of it."""
    fcntl.fcntl(fd, _F_ADD_SEALS, _SEAL_SHRINK | _SEAL_GROW | _SEAL_FUTURE_WRITE | _SEAL_SEAL)


def fault(fd: int, size: int) -> str:
    """The fault of a received descriptor, which its owner could truncate under its readers; empty if there is none."""
    info = os.fstat(fd)
    if info.st_size != size:
        return f"got memory of {info.st_size} bytes, want {size}"
    try:
        seals = fcntl.fcntl(fd, _F_GET_SEALS)
    except OSError:
        return "got a file without seals, want a memfd"
    want = _SEAL_SHRINK | _SEAL_GROW
    if seals & want != want or not seals & (_SEAL_WRITE | _SEAL_FUTURE_WRITE):
        return f"got seals {seals:#x}, want {want | _SEAL_FUTURE_WRITE:#x} among them"
    if info.st_blocks * 512 < size:  # reading would make the others, at this process's cost
        return f"got memory of which {info.st_blocks * 512} bytes are there, want all {size}"
    return ""


def attach(fd: int, size: int) -> memoryview:
    """A view for reading."""
    return Memory(fd, size, mmap.MAP_SHARED, mmap.PROT_READ).view()


def attach_private(fd: int, size: int) -> Memory:
    """Private memory: writes are not visible to other processes."""
    return Memory(fd, size, mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_WRITE)
