"""The handshake: each end says HELLO, and then they are peers."""

from __future__ import annotations

import os
import socket
import time
from typing import Optional, Tuple

from . import crash, memfd, process, wire
from .errors import GoneError, ProtocolError, RefusedError, Timeout
from .link import _SEND, left, pidof
from .peer import Peer
from .store import Store

HANDSHAKE = 5.0
"""Seconds within which the other end must say HELLO."""
_WRITABLE = (None, "copy", "cow")


def pair() -> Tuple[socket.socket, socket.socket]:
    """Two connected sockets, one for each of two processes."""
    memfd.require("pair")
    return socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)


def meet(sock: socket.socket, owner: Store, timeout: float, writable: Optional[str]) -> Peer:
    """Makes a peer of a connected socket, which is the peer's from then on, and is closed where that fails."""
    try:
        greeting = Greeting(sock, owner, writable)
        crash.at(21)
        greeting.say()
        crash.at(22)
        return greeting.finish(timeout)
    except BaseException:
        sock.close()
        raise


class Greeting:
    """A handshake under way."""

    def __init__(self, sock: socket.socket, owner: Store, writable: Optional[str]) -> None:
        memfd.require("connect")
        if writable not in _WRITABLE:
            raise ValueError(f"connect: got writable {writable!r}, want None, 'copy' or 'cow'")
        if sock.family != socket.AF_UNIX or sock.type != socket.SOCK_SEQPACKET:
            raise ValueError(f"connect: got a socket of {sock.family!r}, {sock.type!r}, want AF_UNIX, SOCK_SEQPACKET")
        sock.setblocking(True)
        self.sock = sock
        self.owner = owner
        self.owner._check("connect")
        self._writable = writable
        _, user = pidof(sock)
        if user != os.geteuid():
            raise RefusedError(f"connect: got a peer of user {user}, want {os.geteuid()}", wire.NO_PERMISSION)

    def say(self) -> None:
        hello = wire.Hello(process.instance(), process.boot(), self.owner.max_leases, self.owner.max_bytes)
        try:
            self.sock.send(wire.hello(hello), _SEND)
        except OSError as e:
            raise GoneError(f"connect: the other end is gone: {e}") from None

    def finish(self, timeout: float) -> Peer:
        """Waits for the other's HELLO."""
        deadline = time.monotonic() + timeout
        self.sock.settimeout(max(left(deadline) or 0.0, 0.001))
        packet = b""
        for _ in range(2):
            try:
                packet = self.sock.recv(wire.PACKET)
                break
            except socket.timeout:
                raise Timeout(f"connect: no HELLO came within {timeout} s") from None
            except ConnectionResetError:
                continue  # before what is queued
            except OSError as e:
                raise GoneError(f"connect: {e}") from None
        if not packet:
            raise GoneError("connect: the other end hung up before it said HELLO")
        view = memoryview(packet)
        head = wire.header(view, len(view))
        if head[0] != wire.HELLO:
            raise ProtocolError(f"connect: got a message of kind {head[0]}, want HELLO")
        hello = wire.body(head, view, len(view))
        assert isinstance(hello, wire.Hello), "BUG: HELLO is none"
        return Peer(self.sock, self.owner, hello, self._writable)
