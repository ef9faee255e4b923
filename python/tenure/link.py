"""One end of a connection as packets: which thread reads, what waits to be written, and how it ends.

Several threads may wait on a link at once. One of them reads for all (`_reading`); the others sleep until it has read something. Writing
never blocks: what the socket does not take is kept in order, and the service writes it when there is room.
"""

from __future__ import annotations

import array
import contextlib
import os
import select
import socket
import struct
import threading
import time
from collections import deque
from typing import Any, Callable, Deque, List, Optional, Sequence, Set, Tuple, Type, TypeVar

from . import crash, service, wire
from .errors import ClosedError, EndedError, Error, GoneError, ProtocolError, Timeout

T = TypeVar("T")

# Plain numbers: the enumerations of module socket cost more than the system calls.
_NOW = int(getattr(socket, "MSG_DONTWAIT", 0))
_SEND = _NOW | int(getattr(socket, "MSG_NOSIGNAL", 0))
_CLOEXEC = int(getattr(socket, "MSG_CMSG_CLOEXEC", 0))
_TRUNCATED = int(getattr(socket, "MSG_TRUNC", 0))
_CONTROL_TRUNCATED = int(getattr(socket, "MSG_CTRUNC", 0))
_ANCILLARY = socket.CMSG_SPACE(4) if hasattr(socket, "CMSG_SPACE") else 0
_MUCH = 1024
"""As many packets may wait to be written before their reader gets no more answers."""


def pidof(sock: socket.socket) -> Tuple[int, int]:
    """Process and user of the other end."""
    pid, uid, _ = struct.unpack("3i", sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
    return pid, uid


def command(pid: int) -> str:
    """The name of a process: a label, on which nothing depends."""
    try:
        with open(f"/proc/{pid}/comm", "rb") as f:
            return f.read().decode("utf-8", "replace").strip()
    except OSError:
        return ""


def left(deadline: Optional[float]) -> Optional[float]:
    """Seconds until then, from 0 on."""
    return None if deadline is None else max(0.0, deadline - time.monotonic())


class Link:
    """The transport of a Peer."""

    def __init__(self, sock: socket.socket) -> None:
        sock.setblocking(True)  # calls that must not wait say so
        self.pid, _ = pidof(sock)
        self.command = command(self.pid)
        self._sock = sock
        self._fd = sock.fileno()
        self._lock = threading.Lock()
        self._turns = threading.Condition(self._lock)
        self._reading = False
        self._brief = False
        """The reading thread takes only the packets that are there, and is done in a moment."""
        self._waiting = 0
        self._turn = self._turn_seen = 0
        self._armed = False
        """The service watches the socket."""
        self._parked = True
        """The service neither watches it nor looks at it: a reader waits, or it is new."""
        self._clogged = False
        """Too much waits to be written for more to be read."""
        self._buffer: Optional[memoryview] = None
        self._out_lock = threading.Lock()
        self._out: Deque[Tuple[bytes, int]] = deque()
        self._failure: Optional[Tuple[Type[Error], str]] = None
        """Why nothing more will be read."""
        self._over = False
        """This program has closed it."""
        self._said_end = self._heard_end = False
        self._gone = False
        """The other end's end of file has come: it holds nothing of ours and takes nothing more."""
        self._shut = False
        """So has ours to the other end."""
        self._poisoned = False
        self._closed = False
        self._forked = False
        self._service: Optional[service.Service] = None

    # --- what a Peer adds ---

    def close(self) -> None:
        """Says that nothing more will be offered or taken."""
        raise NotImplementedError

    def _take(self, head: wire.Header, packet: memoryview, size: int, fds: Sequence[int], truncated: bool) -> None:
        """Acts on one packet."""
        raise NotImplementedError

    def _holds_nothing(self) -> bool:
        """Whether nothing of the other end's is held here any more."""
        raise NotImplementedError

    def _full(self) -> bool:
        """Whether so much was read and not fetched that reading on its behalf must pause."""
        raise NotImplementedError

    def _tidy(self) -> None:
        """Does what had to wait until no packet is being read: releases that were not sent, maps of ended arenas."""
        raise NotImplementedError

    def _hung_up(self) -> None:
        """The other end's end of file has come."""
        raise NotImplementedError

    # --- waiting and reading ---

    def fileno(self) -> int:
        """The socket's descriptor."""
        return self._fd

    def _begin(self) -> None:
        self._service = service.the()
        self._service.add(self)
        self._service.lend(self)
        self._parked = False

    def _check(self, what: str) -> None:
        if self._forked:
            raise ClosedError(f"{what}: got a peer of the process that this one was forked from, want one of its own")

    def _check_open(self, what: str) -> None:
        self._check(what)
        if self._failure is not None and not self._over:
            kind, text = self._failure
            raise kind(f"{what}: {text}")
        if self._over or self._said_end:
            raise self._not_open(what)

    def _not_open(self, what: str) -> Error:
        if self._over:
            return ClosedError(f"{what}: got a peer that is closed")
        return EndedError(f"{what}: the other end has ended")

    def _wait(self, ready: Callable[[], Optional[T]], timeout: Optional[float], what: str) -> T:
        """Waits until ready returns a value that is not None, and returns it. ready is called under the lock, after every packet."""
        self._check(what)
        deadline = None if timeout is None else time.monotonic() + timeout
        in_time = True
        with self._lock:
            while True:
                self._turn += 1
                got = ready()
                if got is not None:
                    if self._parked and not self._reading:
                        self._lend()
                    return got
                if self._failure is not None:
                    kind, text = self._failure
                    raise kind(f"{what}: {text}")
                if not in_time:
                    raise Timeout(f"{what}: nothing came within {timeout} s")
                if self._reading:
                    self._waiting += 1
                    try:
                        in_time = self._turns.wait(left(deadline))
                    finally:
                        self._waiting -= 1
                    continue
                self._reading = True
                if self._armed:
                    self._armed = False
                    if self._service is not None:
                        self._service.watch(self._fd, self._events())
                    self._lend()
                self._lock.release()
                try:
                    in_time = self._read_within(deadline)
                finally:
                    self._lock.acquire()
                    self._leave()

    def _leave(self) -> None:
        """The end of a call's reading. Called under the lock."""
        self._reading = self._brief = False
        if self._waiting:
            self._turns.notify_all()
        if self._parked:
            self._lend()
        if self._gone or self._heard_end:
            self._nudge()  # the socket could not be closed while it was read

    def _poll(self) -> None:
        """Processes the packets that have arrived, unless another thread waits for them."""
        if self._forked:
            return
        with self._lock:
            if self._reading and self._brief:
                self._waiting += 1
                try:
                    self._turns.wait(1.0)
                finally:
                    self._waiting -= 1
            if self._reading or self._failure is not None:
                return
            self._reading = self._brief = True
        try:
            if self._buffer is None:
                self._buffer = memoryview(bytearray(wire.PACKET + 8))
            while not self._full() and self._read(self._buffer, _NOW):
                pass
        finally:
            with self._lock:
                self._leave()

    def _lend(self) -> None:
        self._parked = False
        if self._service is not None and not self._closed:
            self._service.lend(self)

    def _read_within(self, deadline: Optional[float]) -> bool:
        """Reads one packet; False if none came in time."""
        if self._buffer is None:
            self._buffer = memoryview(bytearray(wire.PACKET + 8))
        if deadline is None:
            self._read(self._buffer, 0)
            return True
        if self._read(self._buffer, _NOW):
            return True
        seconds = left(deadline) or 0.0
        waiter = select.poll()
        waiter.register(self._fd, select.POLLIN)
        if not waiter.poll(seconds * 1000):
            return False
        self._read(self._buffer, _NOW)
        return True

    def _read(self, buffer: memoryview, flags: int) -> bool:
        """Reads one packet and acts on it; False if there is none. Called with _reading set, without the lock."""
        if self._failure is not None:
            return False
        try:
            size, ancillary, got, _ = self._sock.recvmsg_into((buffer,), _ANCILLARY, flags | _CLOEXEC)
        except BlockingIOError:
            return False
        except ConnectionResetError:
            return True  # comes once, before what is still queued
        except OSError as e:
            self._end_of_file(str(e))
            return True
        if not ancillary and not got & (_TRUNCATED | _CONTROL_TRUNCATED) and size:
            try:
                self._take(wire.header(buffer, size), buffer, size, (), False)
            except ProtocolError as e:
                self._poison(str(e))
            return True
        return self._read_special(buffer, size, _descriptors(ancillary), got)

    def _read_special(self, buffer: memoryview, size: int, fds: List[int], got: int) -> bool:
        """A packet with descriptors, one cut off, or none at all."""
        try:
            if size == 0 and not fds and self._peer_is_done():
                self._end_of_file("the other end is gone")
                return True
            if got & _TRUNCATED:
                raise ProtocolError(f"message: got more than {wire.PACKET} bytes")
            head = wire.header(buffer, size)
            truncated = bool(got & _CONTROL_TRUNCATED)
            if (fds or truncated) and head[0] != wire.ARENA:
                raise ProtocolError(f"message of kind {head[0]}: got descriptors with it")
            self._take(head, buffer, size, fds, truncated)
        except ProtocolError as e:
            self._poison(str(e))
        finally:
            for fd in fds:
                os.close(fd)
        return True

    def _peer_is_done(self) -> bool:
        """Tells the end of file from an empty packet."""
        waiter = select.poll()
        waiter.register(self._fd, 0x2000)  # POLLRDHUP, which module select lacks
        return bool(waiter.poll(0))

    def _is_dead(self) -> bool:
        """Whether the other end's process is gone. While this end holds anything, the other closes its socket only with its process."""
        waiter = select.poll()
        waiter.register(self._fd, 0)  # a complete hang-up is always told
        return self._closed or bool(waiter.poll(0))

    def _end_of_file(self, why: str) -> None:
        with self._lock:
            if self._gone:
                return
            self._gone = True
            if self._failure is None:
                self._failure = (EndedError, "the other end has ended") if self._heard_end else (GoneError, why)
            self._turns.notify_all()
        with self._out_lock:  # arenas may end from now on
            self._out = deque(entry for entry in self._out if entry[1] < 0)
        crash.at(8)
        self._hung_up()
        crash.at(9)
        self._nudge()

    def _poison(self, why: str) -> None:
        """The other end broke a rule: no message of it is read any more, and its row stays until its end of file."""
        with self._lock:
            if self._failure is None:
                self._failure = (ProtocolError, why)
            self._turns.notify_all()
        self._say_end()
        with self._out_lock:
            self._poisoned = True
            self._out.clear()
        self._nudge()

    def _say_end(self) -> None:
        with self._out_lock:
            if not self._said_end:
                self._send_locked(wire.with_bytes(wire.END, 0, b""))
                self._said_end = True

    # --- writing ---

    def _send(self, packet: bytes, fd: int = -1) -> None:
        with self._out_lock:
            self._send_locked(packet, fd)

    def _send_locked(self, packet: bytes, fd: int = -1) -> None:
        """Sends a packet or keeps it until there is room. A packet that cannot be sent is dropped: the connection is about to end."""
        if self._poisoned or self._shut:
            return
        if not self._out:
            try:
                self._send_now(packet, fd)
                return
            except BlockingIOError:
                pass
            except OSError:
                return
        self._out.append((packet, fd))
        self._nudge()

    def _send_now(self, packet: bytes, fd: int) -> None:
        if fd < 0:
            self._sock.send(packet, _SEND)
        else:
            self._sock.sendmsg((packet,), ((socket.SOL_SOCKET, socket.SCM_RIGHTS, struct.pack("i", fd)),), _SEND)

    def _unsend_locked(self, kind: int, only: Optional[Set[int]] = None) -> List[int]:
        """Removes the packets of a kind that were not sent, all or those about the given numbers. Returns the number that each begins with: a
        serial or an arena's id, 0 for an inline tensor."""
        keep: Deque[Tuple[bytes, int]] = deque()
        numbers: List[int] = []
        for packet, fd in self._out:
            number = wire.leading(packet)
            if packet[0] == kind and (only is None or number in only):
                numbers.append(number)
            else:
                keep.append((packet, fd))
        self._out = keep
        return numbers

    def _send_release(self, serial: int) -> bool:
        """From a finaliser: without a lock, without waiting. False if it must be sent later."""
        if self._out:
            return False
        try:
            self._sock.send(wire.release_one(serial), _SEND)
        except BlockingIOError:
            return False
        except OSError:
            pass  # the other end is gone
        return True

    def _flush(self) -> bool:
        """Whether everything that waited is written."""
        with self._out_lock:
            while self._out:
                try:
                    self._send_now(*self._out[0])
                except BlockingIOError:
                    return False
                except OSError:
                    self._out.clear()
                    break
                self._out.popleft()
        return True

    def _nudge(self) -> None:
        if self._service is not None:
            self._service.nudge(self)

    # --- the service's side ---

    def _events(self) -> int:
        events = 0
        if self._out:
            events |= select.EPOLLOUT
        if self._gone:
            return events
        if self._failure is not None:
            return events | select.EPOLLRDHUP
        if self._armed:
            events |= select.EPOLLIN
        return events

    def serve(self, events: int, buffer: memoryview) -> None:
        """See Served."""
        if self._closed or self._forked:
            return
        if events & ~select.EPOLLOUT:
            self._serve_reading(buffer)
        self._flush()
        self._tidy()
        with self._lock:
            if not self._shut and (self._said_end or self._gone) and not self._out and self._holds_nothing():
                self._shut = True
                with contextlib.suppress(OSError):
                    self._sock.shutdown(socket.SHUT_WR)
            if self._shut and self._gone and not self._reading:
                self._close_socket()
                return
            if self._clogged and len(self._out) <= _MUCH:
                self._clogged = False
                self._armed = not self._reading
            events = self._events()
            # Without a mask a hang-up would be reported again and again while another thread is about to read it.
            if events and self._service is not None:
                self._service.watch(self._fd, events)

    def _serve_reading(self, buffer: memoryview) -> None:
        if self._failure is not None:
            if self._peer_is_done():
                self._end_of_file("the other end is gone")
            return
        with self._lock:
            if self._reading or not self._armed:
                return
            self._reading = self._brief = True
        try:
            for _ in range(64):
                if len(self._out) > _MUCH or self._full() or not self._read(buffer, _NOW):
                    break
        finally:
            with self._lock:
                self._reading = self._brief = False
                self._armed = self._may_read()
                if self._waiting:
                    self._turns.notify_all()

    def _may_read(self) -> bool:
        """Whether reading may go on although no thread waits for packets. If not, the event that has to come first resumes it."""
        self._clogged = len(self._out) > _MUCH  # until it is written
        self._parked = self._full()  # until it is fetched
        return not self._clogged and not self._parked

    def reclaim(self) -> bool:
        """See Served."""
        with self._lock:
            if self._closed or self._forked:
                return True
            if self._turn != self._turn_seen:
                self._turn_seen = self._turn
                return False
            if self._reading:
                self._parked = True  # a call that waits: it lends the connection again when it returns
                return True
            self._armed = self._may_read()
            return True

    def _arm(self) -> None:
        """Has the service read from now on: the caller waits for what it will read."""
        with self._lock:
            if self._armed or self._reading or self._closed or self._service is None:
                return
            self._armed = True
            self._parked = False
            self._service.watch(self._fd, self._events())

    # --- the end ---

    def _close_socket(self) -> None:
        if self._closed:
            return
        self._closed = True
        if self._service is not None:
            self._service.remove(self, self._fd)
        self._sock.close()
        self._turns.notify_all()

    def _forget_link(self) -> None:
        """In a forked child: the connection is the parent's."""
        self._forked = self._closed = True
        self._lock = threading.Lock()
        self._turns = threading.Condition(self._lock)
        self._out_lock = threading.Lock()
        self._out.clear()
        self._failure = (ClosedError, "it belongs to the process that this one was forked from")
        self._sock.close()


def _descriptors(ancillary: Any) -> List[int]:
    fds: List[int] = []
    for level, kind, data in ancillary:
        if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
            fds.extend(array.array("i", data[: len(data) - len(data) % 4]))
    return fds
