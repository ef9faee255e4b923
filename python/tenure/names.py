"""Names: sockets in a private directory, each with a lock that dies with its listener."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import select
import socket
import stat
import struct
import sys
import threading
import time
from collections import Counter, deque
from types import TracebackType
from typing import TYPE_CHECKING, Deque, Dict, Iterator, Optional, Tuple, Type

from . import memfd, process, service
from .errors import ClosedError, Error, GoneError, NameTakenError, PlaceError, Timeout
from .link import left, pidof
from .peer import HANDSHAKE, Greeting, Peer, connect

if TYPE_CHECKING:
    from .owner import Owner

if sys.platform.startswith("linux"):
    import fcntl

_NAME = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,63}")
_GREETINGS = 256
"""Handshakes under way at once. Beyond that the oldest of the process with the most of them is turned away."""
_READY = 256
"""Peers at once that the program has not accepted yet; the others wait in the system's queue."""
_BACKLOG = 4096
"""The system's queue; it cuts this down to its own limit."""
_AT_ONCE = 64
_LACKING = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)
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
    # Who may enter is what counts: the bit that a folder below one with set-group-ID has lets nobody in.
    if not stat.S_ISDIR(info.st_mode) or info.st_uid != os.geteuid() or mode & 0o077:
        kind = "directory" if stat.S_ISDIR(info.st_mode) else "file"
        raise PlaceError(
            f"directory {path}: got a {kind} of user {info.st_uid} with mode {mode:04o}, want a directory of user {os.geteuid()} that nobody else may enter (0700)"
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


def attach(name: str, dir: Optional[str] = None, *, owner: Optional["Owner"] = None, timeout: float = HANDSHAKE, writable: Optional[str] = None) -> Peer:
    """Connects to who listens under a name. owner is whose arrays this end offers, one of its own without; timeout bounds, in seconds, the
    connecting and then the handshake; writable is explained at Peer."""
    memfd.require("attach")
    path, _ = paths(name, dir)
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    try:
        _connect(sock, path, timeout)
    except (FileNotFoundError, ConnectionRefusedError) as e:
        sock.close()
        raise GoneError(f"attach: nobody listens under {name!r} in {os.path.dirname(path)}: {e.strerror}") from None
    except BlockingIOError:
        sock.close()
        raise Timeout(f"attach: {name!r} had no room for another connection within {timeout} s") from None
    except BaseException:
        sock.close()
        raise
    return connect(sock, owner, timeout=timeout, writable=writable)


def _connect(sock: socket.socket, path: str, timeout: float) -> None:
    """Connects, and waits for room in a queue that is full: a socket with a timeout of its own would not."""
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


def _lock(path: str, name: str) -> int:
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


class _Newcomer:
    """A connection that has not said HELLO yet. Used by the service alone, and under its listener's lock."""

    def __init__(self, listener: "Listener", greeting: Greeting) -> None:
        self.greeting = greeting
        self.fd = greeting.sock.fileno()
        self.until = time.monotonic() + HANDSHAKE
        self.pid, _ = pidof(greeting.sock)
        self._listener = listener

    def fileno(self) -> int:
        """See Served."""
        return self.fd

    def serve(self, events: int, buffer: memoryview) -> None:
        """See Served."""
        self._listener._finish(self)

    def reclaim(self) -> bool:
        """See Served."""
        return True


class Listener:
    """A named socket. `accept`, or iterating, gives a peer for every process that connects. The service greets newcomers and serves them,
    whether the program is in `accept` or not: what an owner publishes can be got, what it offered comes back."""

    def __init__(self, owner: "Owner", name: str, dir: Optional[str], writable: Optional[str]) -> None:
        self.name = name
        self.path, self._lock_path = paths(name, dir)
        self._owner = owner
        self._writable = writable
        self._greetings: Dict[int, _Newcomer] = {}
        """Handshakes under way, by descriptor, the oldest first."""
        self._ready: Deque[Peer] = deque()
        """Peers that nobody has accepted yet."""
        self._paused = self._starved = False
        """Newcomers wait in the system's queue: until somebody accepts, or until there are descriptors."""
        self._lock_fd = _lock(self._lock_path, name)
        try:
            self._sock = self._bind()
        except BaseException:
            os.close(self._lock_fd)
            raise
        self._changed = threading.Condition()
        process.register(self)
        self._service = service.the()
        self._service.add(self)
        self._service.watch(self._sock.fileno(), select.EPOLLIN)

    def _bind(self) -> socket.socket:
        try:
            os.unlink(self.path)
        except FileNotFoundError:
            pass
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        try:
            sock.bind(self.path)
            os.chmod(self.path, 0o600)
            sock.listen(_BACKLOG)
            sock.setblocking(False)
        except BaseException:
            sock.close()
            raise
        return sock

    def accept(self, timeout: Optional[float] = None) -> Peer:
        """The next peer. Who says no HELLO within 5 seconds, or a wrong one, is turned away and holds up nobody."""
        with self._changed:
            if not self._changed.wait_for(lambda: self._ready or self._lock_fd < 0, timeout):
                raise Timeout("accept: nobody connected in time")
            if self._lock_fd < 0:
                raise ClosedError("accept: the listener is closed")
            peer = self._ready.popleft()
            paused, self._paused = self._paused, False
        if paused:
            self._service.nudge(self)
        return peer

    # --- the service's side ---

    def fileno(self) -> int:
        """See Served."""
        return self._sock.fileno()

    def serve(self, events: int, buffer: Optional[memoryview] = None) -> None:
        """See Served."""
        with self._changed:
            if self._lock_fd < 0:
                return
            for _ in range(_AT_ONCE):
                self._paused = len(self._ready) >= _READY
                if self._paused:
                    return
                try:
                    sock, _address = self._sock.accept()
                except BlockingIOError:
                    break
                except OSError as e:
                    if e.errno in _LACKING:
                        self._starved = True
                        self._service.lend(self)
                        return
                    continue  # it is gone already
                self._greet(sock)
            self._service.watch(self._sock.fileno(), select.EPOLLIN)

    def reclaim(self) -> bool:
        """See Served. Called from time to time while handshakes are under way."""
        with self._changed:
            now = time.monotonic()
            for newcomer in [n for n in self._greetings.values() if now >= n.until]:
                self._turn_away(newcomer)
        if self._starved:
            self._starved = False
            self.serve(0)
        return not self._greetings and not self._starved

    def _greet(self, sock: socket.socket) -> None:
        if len(self._greetings) >= _GREETINGS:  # those who mean it have said HELLO long before this
            counts = Counter(n.pid for n in self._greetings.values())
            most = max(counts.values())
            self._turn_away(next(n for n in self._greetings.values() if counts[n.pid] == most))
        try:
            newcomer = _Newcomer(self, Greeting(sock, self._owner, self._writable))
            newcomer.greeting.say()
        except (Error, OSError):
            sock.close()
            return
        self._greetings[newcomer.fd] = newcomer
        self._service.add(newcomer)
        self._service.watch(newcomer.fd, select.EPOLLIN)
        self._service.lend(self)

    def _leave(self, newcomer: _Newcomer) -> bool:
        """Ends the greeting of one that is still being greeted."""
        if self._greetings.get(newcomer.fd) is not newcomer:
            return False
        del self._greetings[newcomer.fd]
        self._service.remove(newcomer, newcomer.fd)
        return True

    def _turn_away(self, newcomer: _Newcomer) -> None:
        if self._leave(newcomer):
            newcomer.greeting.sock.close()

    def _finish(self, newcomer: _Newcomer) -> None:
        with self._changed:
            if not self._leave(newcomer):
                return
            try:
                peer = newcomer.greeting.finish(0.0)
            except (Error, OSError):
                newcomer.greeting.sock.close()
                return
            self._ready.append(peer)
            self._changed.notify()

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
        with self._changed:
            lock, self._lock_fd = self._lock_fd, -1
            os.close(lock)
            self._service.remove(self, self._sock.fileno())
            self._sock.close()
            for newcomer in list(self._greetings.values()):
                self._turn_away(newcomer)
            left_over = list(self._ready)
            self._ready.clear()
            self._changed.notify_all()
        for peer in left_over:
            peer.close()

    def __enter__(self) -> "Listener":
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], value: Optional[BaseException], trace: Optional[TracebackType]) -> None:
        self.close()

    def _forget(self) -> None:
        """In a forked child: the name is the parent's."""
        if self._lock_fd >= 0:
            os.close(self._lock_fd)
            self._lock_fd = -1
            self._sock.close()
            for newcomer in self._greetings.values():
                newcomer.greeting.sock.close()
            self._greetings.clear()
            self._ready.clear()
        self._changed = threading.Condition()
