"""Names: sockets in a private directory, each with a lock that dies with its listener."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import socket
import stat
import struct
import sys
import time
from typing import Optional, Tuple

from .errors import NameTakenError, PlaceError
from .link import left

if sys.platform.startswith("linux"):
    import fcntl

_NAME = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,63}")
_LONGEST = 107
"""Bytes of a socket's path that the system takes."""


def directory(dir: Optional[str] = None) -> str:
    """The directory of the sockets: the one given, or the one that the environment says. Made if missing, refused if others could use it."""
    path = dir or os.environ.get("TENURE_SHARE_DIR") or _default()
    try:
        _make(path)
    except OSError as e:
        raise PlaceError(f"directory {path}: cannot be made: {e}") from None
    info = os.lstat(path)
    mode = stat.S_IMODE(info.st_mode)
    # Only access rights matter: a set-group-ID bit, inherited from the parent folder, grants none.
    if not stat.S_ISDIR(info.st_mode) or info.st_uid != os.geteuid() or mode & 0o077:
        kind = "directory" if stat.S_ISDIR(info.st_mode) else "file"
        raise PlaceError(
            f"directory {path}: got a {kind} of user {info.st_uid} with mode {mode:04o}, want a directory of user {os.geteuid()} that no other user may enter (0700)"
        )
    return path


def _make(path: str) -> None:
    """Makes a directory that is missing, and those above it, for this user alone."""
    try:
        os.mkdir(path, 0o700)
    except FileExistsError:
        pass
    except FileNotFoundError:
        above = os.path.dirname(path.rstrip("/"))
        if not above:
            raise
        _make(above)
        with contextlib.suppress(FileExistsError):  # another process makes it too
            os.mkdir(path, 0o700)


def _default() -> str:
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    if runtime:
        return os.path.join(runtime, "tenure")
    user = f"/run/user/{os.geteuid()}"
    if os.path.isdir(user):
        return os.path.join(user, "tenure")
    return os.path.join(os.environ.get("TMPDIR") or "/tmp", f"tenure-{os.geteuid()}")


def paths(name: str, dir: Optional[str]) -> Tuple[str, str]:
    """The socket and the lock of a name."""
    if not _NAME.fullmatch(name):
        raise ValueError(f"name: got {name!r}, want 1 to 64 of A-Z a-z 0-9 . _ - that do not begin with a point")
    base = os.path.join(directory(dir), name)
    if len(os.fsencode(base + ".sock")) > _LONGEST:
        raise PlaceError(f"name: got the path {base}.sock, want one of at most {_LONGEST} bytes: choose another directory")
    return base + ".sock", base + ".lock"


def connect(sock: socket.socket, path: str, timeout: float) -> None:
    """Connects, and waits while the listener's queue is full: a socket with a timeout of its own would not."""
    deadline = time.monotonic() + timeout
    while True:
        seconds = max(left(deadline) or 0.0, 0.001)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", int(seconds), int(seconds % 1 * 1e6)))
        sock.connect(path)
        try:
            sock.getpeername()
            break
        except OSError as e:  # a signal came, after which module socket takes every socket for connected
            if e.errno != errno.ENOTCONN:
                raise
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", 0, 0))


def lock(path: str, name: str) -> int:
    """The lock of a name, as a descriptor; it is held until that is closed."""
    while True:
        try:
            fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        except OSError as e:
            raise PlaceError(f"listen: {path}: {e.strerror}") from None
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.path.samestat(os.fstat(fd), os.stat(path)):
                return fd
        except FileNotFoundError:
            pass  # its holder ended between the two, and took the file away
        except BlockingIOError:
            os.close(fd)
            raise NameTakenError(f"listen: another process listens under {name!r}") from None
        except BaseException:
            os.close(fd)
            raise
        os.close(fd)
