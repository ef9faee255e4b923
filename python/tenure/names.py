"""Names: sockets in a private directory, each with a lock that dies with its listener."""

from __future__ import annotations

import errno
import os
import re
import select
import socket
import stat
import sys
import threading
import time
from types import TracebackType
from typing import TYPE_CHECKING, Dict, Iterator, Optional, Tuple, Type

from . import memfd, process
from .errors import ClosedError, Error, GoneError, NameTakenError, PlaceError, Timeout
from .link import left
from .peer import HANDSHAKE, Greeting, Peer, connect

if TYPE_CHECKING:
    from .owner import Owner

if sys.platform.startswith("linux"):
    import fcntl

_NAME = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,63}")
_GREETINGS = 256
"""Handshakes under way at once."""
_LONGEST = 107
"""Bytes of a socket's path that the system takes."""


def directory(dir: Optional[str] = None) -> str:
    """The directory of the sockets: the one given, or the one that the environment says. Made if missing, refused if others could use it."""
    path = dir or os.environ.get("TENURE_SHARE_DIR") or _default()
    try:
        os.mkdir(path, 0o700)
        os.chmod(path, 0o700)
    except FileExistsError:
        pass
    except OSError as e:
        raise PlaceError(f"directory {path}: cannot be made: {e}") from None
    info = os.lstat(path)
    mode = stat.S_IMODE(info.st_mode)
    if not stat.S_ISDIR(info.st_mode) or info.st_uid != os.geteuid() or mode != 0o700:
        kind = "directory" if stat.S_ISDIR(info.st_mode) else "file"
        raise PlaceError(f"directory {path}: got a {kind} of user {info.st_uid} with mode {mode:04o}, want a directory of user {os.geteuid()} with mode 0700")
    return path


def _default() -> str:
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    if runtime:
        return os.path.join(runtime, "tenure")
    user = f"/run/user/{os.getuid()}"
    if os.path.isdir(user):
        return os.path.join(user, "tenure")
    return os.path.join(os.environ.get("TMPDIR") or "/tmp", f"tenure-{os.getuid()}")


def paths(name: str, dir: Optional[str]) -> Tuple[str, str]:
    """The socket and the lock of a name."""
    if not _NAME.fullmatch(name):
        raise ValueError(f"name: got {name!r}, want 1 to 64 of A-Z a-z 0-9 . _ - that do not begin with a point")
    base = os.path.join(directory(dir), name)
    if len(os.fsencode(base + ".sock")) > _LONGEST:
        raise PlaceError(f"name: got the path {base}.sock, want one of at most {_LONGEST} bytes: choose another directory")
    return base + ".sock", base + ".lock"


def attach(name: str, dir: Optional[str] = None, *, owner: Optional["Owner"] = None, timeout: float = HANDSHAKE, writable: Optional[str] = None) -> Peer:
    """Connects to who listens under a name. owner is whose arrays this end offers, one of its own without; timeout bounds, in seconds, the
    connecting and then the handshake; writable is explained at Peer."""
    memfd.require("attach")
    path, _ = paths(name, dir)
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    try:
        sock.settimeout(timeout)
        sock.connect(path)
    except (FileNotFoundError, ConnectionRefusedError) as e:
        sock.close()
        raise GoneError(f"attach: nobody listens under {name!r} in {os.path.dirname(path)}: {e.strerror}") from None
    except socket.timeout:
        sock.close()
        raise Timeout(f"attach: {name!r} did not answer within {timeout} s") from None
    except BaseException:
        sock.close()
        raise
    return connect(sock, owner, timeout=timeout, writable=writable)


def _lock(path: str, name: str) -> int:
    """The lock of a name, as a descriptor; it is held until that is closed."""
    while True:
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
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


class Listener:
    """A named socket. `accept`, or iterating, gives a peer for every process that connects; from then on the peer is served without
    further ado: what an owner publishes can be got, what it offered comes back."""

    def __init__(self, owner: "Owner", name: str, dir: Optional[str], writable: Optional[str]) -> None:
        self.name = name
        self.path, self._lock_path = paths(name, dir)
        self._owner = owner
        self._writable = writable
        self._greetings: Dict[int, Tuple[Greeting, float]] = {}
        """Handshakes under way, by descriptor, with the time at which they are given up."""
        self._lock_fd = _lock(self._lock_path, name)
        try:
            self._sock = self._bind()
        except BaseException:
            os.close(self._lock_fd)
            raise
        self._woken, self._wake = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        self._accepting = threading.RLock()
        process.register(self)

    def _bind(self) -> socket.socket:
        try:
            os.unlink(self.path)
        except FileNotFoundError:
            pass
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        try:
            sock.bind(self.path)
            os.chmod(self.path, 0o600)
            sock.listen(128)
            sock.setblocking(False)
        except BaseException:
            sock.close()
            raise
        return sock

    def accept(self, timeout: Optional[float] = None) -> Peer:
        """The next peer. One that says no HELLO within 5 seconds, or a wrong one, is turned away and holds up nobody."""
        deadline = None if timeout is None else time.monotonic() + timeout
        with self._accepting:
            return self._accept(deadline)

    def _accept(self, deadline: Optional[float]) -> Peer:
        while True:
            if self._lock_fd < 0:
                raise ClosedError("accept: the listener is closed")
            ready = self._poll(deadline)
            if self._woken in ready:
                continue
            if self._sock.fileno() in ready:
                self._greet()
            for fd in ready:
                if fd in self._greetings:
                    peer = self._finish(fd)
                    if peer is not None:
                        return peer
            now = time.monotonic()
            for fd in [fd for fd, (_, until) in self._greetings.items() if now >= until]:
                self._greetings.pop(fd)[0].sock.close()
            if not ready and deadline is not None and now >= deadline:
                raise Timeout("accept: nobody connected in time")

    def _poll(self, deadline: Optional[float]) -> Dict[int, int]:
        waiter = select.poll()
        waiter.register(self._woken, select.POLLIN)
        if len(self._greetings) < _GREETINGS:  # the others wait in the system's queue
            waiter.register(self._sock, select.POLLIN)
        ends = [until for _, until in self._greetings.values()] + ([] if deadline is None else [deadline])
        for fd in self._greetings:
            waiter.register(fd, select.POLLIN)
        seconds = left(min(ends)) if ends else None
        return dict(waiter.poll(None if seconds is None else int(seconds * 1000) + 1))

    def _greet(self) -> None:
        try:
            sock, _ = self._sock.accept()
        except OSError as e:
            if e.errno in (errno.EMFILE, errno.ENFILE):
                time.sleep(0.01)  # it stays in the queue until a descriptor is free
            return
        try:
            greeting = Greeting(sock, self._owner, self._writable)
            greeting.say()
        except Error:
            sock.close()
            if self._owner._closed:
                raise
            return
        self._greetings[sock.fileno()] = (greeting, time.monotonic() + HANDSHAKE)

    def _finish(self, fd: int) -> Optional[Peer]:
        greeting, _ = self._greetings.pop(fd)
        try:
            return greeting.finish(0.0)
        except Error:
            greeting.sock.close()
            return None

    def __iter__(self) -> Iterator[Peer]:
        """A peer for each who connects, until the listener is closed."""
        while True:
            try:
                yield self.accept()
            except ClosedError:
                return

    def close(self) -> None:
        """Ends listening and removes the name. Peers that were accepted stay."""
        if self._lock_fd < 0:
            return
        for path in (self.path, self._lock_path):  # the lock last, while it is held
            try:
                os.unlink(path)
            except FileNotFoundError:
                pass
        lock, self._lock_fd = self._lock_fd, -1
        os.close(lock)
        os.write(self._wake, b"x")
        with self._accepting:  # whoever waits in accept is out of it
            self._close_sockets()

    def _close_sockets(self) -> None:
        self._sock.close()
        for fd in (self._woken, self._wake):
            os.close(fd)
        for greeting, _ in self._greetings.values():
            greeting.sock.close()
        self._greetings.clear()

    def __enter__(self) -> "Listener":
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], value: Optional[BaseException], trace: Optional[TracebackType]) -> None:
        self.close()

    def _forget(self) -> None:
        """In a forked child: the name is the parent's."""
        if self._lock_fd >= 0:
            os.close(self._lock_fd)
            self._lock_fd = -1
            self._close_sockets()
