"""Ways to get a connection: over a socket, under a name, with the process that started this one."""

from __future__ import annotations

import os
import socket
from typing import Optional

from . import memfd, names
from .errors import GoneError, PlaceError, Timeout
from .greeting import HANDSHAKE, meet
from .owner import Owner
from .peer import Peer


def connect(sock: socket.socket, owner: Optional[Owner] = None, *, timeout: float = HANDSHAKE, writable: Optional[str] = None) -> Peer:
    """Makes a peer of a connected socket of type SOCK_SEQPACKET, which is the peer's from then on. Without an owner the peer has one of its
    own."""
    try:
        memfd.require("connect")
        owner = owner if owner is not None else Owner()
    except BaseException:
        sock.close()
        raise
    return meet(sock, owner, timeout, writable)


def attach(name: str, dir: Optional[str] = None, *, owner: Optional[Owner] = None, timeout: float = HANDSHAKE, writable: Optional[str] = None) -> Peer:
    """Connects to the listener of a name. This end offers arrays of owner, or of an owner of its own; timeout bounds, in seconds, the
    connecting and then the handshake; writable is explained at Peer."""
    memfd.require("attach")
    path, _ = names.paths(name, dir)
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    try:
        names.connect(sock, path, timeout)
    except (FileNotFoundError, ConnectionRefusedError) as e:
        sock.close()
        raise GoneError(f"attach: no process listens under {name!r} in {os.path.dirname(path)}: {e.strerror}") from None
    except BlockingIOError:
        sock.close()
        raise Timeout(f"attach: {name!r} had no room for another connection within {timeout} s") from None
    except BaseException:
        sock.close()
        raise
    return connect(sock, owner, timeout=timeout, writable=writable)


def parent(owner: Optional[Owner] = None, *, writable: Optional[str] = None) -> Peer:
    """The peer of the process that started this one with a socket, whose number is in TENURE_SHARE_FD."""
    memfd.require("parent")
    text = os.environ.get("TENURE_SHARE_FD", "")
    if not text.isdigit():
        raise PlaceError(f"parent: got TENURE_SHARE_FD {text!r}, want the number of a descriptor: was this process started to share?")
    try:
        sock = socket.socket(fileno=int(text))
    except OSError as e:
        raise PlaceError(f"parent: descriptor {text} of TENURE_SHARE_FD is no socket of this process: {e}") from None
    del os.environ["TENURE_SHARE_FD"]  # its children have no such descriptor
    sock.set_inheritable(False)
    return connect(sock, owner, writable=writable)
