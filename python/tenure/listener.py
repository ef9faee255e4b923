"""A listener: a named socket, and the handshakes of the processes that connect to it."""

from __future__ import annotations

import errno
import os
import select
import socket
import threading
import time
from collections import Counter, deque
from types import TracebackType
from typing import Deque, Dict, Iterator, Optional, Type

from . import names, process, service
from .errors import ClosedError, Error, Timeout
from .greeting import HANDSHAKE, Greeting
from .link import pidof
from .peer import Peer
from .store import Store

_GREETINGS = 256
"""Handshakes under way at once. Beyond that the oldest of the process with the most of them is turned away."""
_READY = 256
"""Peers at once that the program has not accepted yet; the others wait in the system's queue."""
_BACKLOG = 4096
"""The system's queue; it cuts this down to its own limit."""
_AT_ONCE = 64
_EXHAUSTED = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)


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
    """A named socket. `accept`, or iterating, returns a peer for every process that connects. The service greets newcomers and serves them,
    whether the program is in `accept` or not: what an owner publishes can be got, what it offered comes back."""

    def __init__(self, owner: Store, name: str, dir: Optional[str], writable: Optional[str]) -> None:
        self.name = name
        self.path, self._lock_path = names.paths(name, dir)
        self._owner = owner
        self._writable = writable
        self._greetings: Dict[int, _Newcomer] = {}
        """Handshakes under way, by descriptor, the oldest first."""
        self._ready: Deque[Peer] = deque()
        """Peers that the program has not accepted yet."""
        self._paused = self._starved = False
        """Newcomers wait in the system's queue: until the program accepts, or until there are descriptors."""
        self._lock_fd = names.lock(self._lock_path, name)
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
        """The next peer. A process that sends no HELLO within 5 seconds, or a wrong one, is turned away and delays no other."""
        with self._changed:
            if not self._changed.wait_for(lambda: self._ready or self._lock_fd < 0, timeout):
                raise Timeout("accept: no process connected in time")
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
                    if e.errno in _EXHAUSTED:
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
        if len(self._greetings) >= _GREETINGS:  # a proper peer has sent HELLO long before this
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
        """A peer for each process that connects, until the listener is closed."""
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
