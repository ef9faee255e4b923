"""Memory with a descriptor and no name: made and sealed by its owner, checked and mapped by its consumers."""

from __future__ import annotations

import ctypes
import errno
import mmap
import os
import sys
import weakref
from typing import Any, List

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


_all: "weakref.WeakSet[mmap.mmap]" = weakref.WeakSet()
_kept: List[mmap.mmap] = []


def _map(fd: int, size: int, flags: int, prot: int) -> mmap.mmap:
    options: Any = {"trackfd": False} if sys.version_info >= (3, 13) else {}  # before, every map keeps a descriptor
    m = mmap.mmap(fd, size, flags, prot, **options)
    m.madvise(mmap.MADV_DONTFORK)
    _all.add(m)
    return m


def room() -> int:
    """Bytes until the memory cgroups of this process are full: beyond them there is no error, only the kernel's kill."""
    least = 1 << 62
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


def populate(fd: int, size: int) -> mmap.mmap:
    """The writable map of a descriptor, with every page there: no write to it can fail any more."""
    left = room()
    if size > left:
        raise LimitError(f"arena: got {size} bytes, want at most {max(left, 0)}, which are left in this memory cgroup")
    m = _map(fd, size, mmap.MAP_SHARED, mmap.PROT_READ | mmap.PROT_WRITE)
    try:
        if size >= _HUGE:
            try:
                m.madvise(mmap.MADV_HUGEPAGE)
            except OSError:
                pass  # a kernel without them
        try:
            m.madvise(_MADV_POPULATE_WRITE)
        except OSError as e:
            if e.errno != errno.EINVAL:
                raise LimitError(f"arena: {size} bytes are not to be had: {e}") from None
            os.posix_fallocate(fd, 0, size)
    except BaseException:
        m.close()
        raise
    return m


def seal(fd: int) -> None:
    """After this nobody can resize the memory, or get another writable map of it."""
    import fcntl

    fcntl.fcntl(fd, _F_ADD_SEALS, _SEAL_SHRINK | _SEAL_GROW | _SEAL_FUTURE_WRITE | _SEAL_SEAL)


def fault(fd: int, size: int) -> str:
    """What is wrong with a received descriptor, which its owner could truncate under its readers; empty if nothing is."""
    import fcntl

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


def attach(fd: int, size: int) -> mmap.mmap:
    """A read-only map."""
    return _map(fd, size, mmap.MAP_SHARED, mmap.PROT_READ)


def attach_private(fd: int, size: int) -> mmap.mmap:
    """A writable map whose changes nobody else sees."""
    return _map(fd, size, mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_WRITE)


def forget() -> None:
    """In a forked child, where nothing of this is mapped: sees to it that nothing is unmapped either, also at the child's end. The
    addresses belong to nobody there, and may be anybody's later."""
    for m in list(_all):
        _kept.append(m)
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(m))
    _all.clear()
