"""Handles on other processes, which become readable when the process is dead."""

from __future__ import annotations

import errno
import os
import select
import socket
import struct
from typing import Callable, Optional

from . import service

_SO_PEERPIDFD = 77  # Linux 6.5


def handle(sock: socket.socket, pid: int) -> int:
    """A handle on the process at the other end of a socket, -1 if the kernel does not tell which one it is: the other end of a socketpair
    has the number of this process, one of another PID namespace has number 0."""
    if pid in (0, os.getpid()):
        return -1
    try:
        return int(struct.unpack("i", sock.getsockopt(socket.SOL_SOCKET, _SO_PEERPIDFD, 4))[0])
    except OSError as e:
        if e.errno != errno.ENOPROTOOPT:
            return -1
    try:
        return os.pidfd_open(pid)
    except (AttributeError, OSError):
        return -1


class Watch:
    """Calls a function once, on the service's thread, when a process is dead. It owns the process's handle."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._then: Optional[Callable[[], None]] = None

    def start(self, then: Callable[[], None]) -> None:
        """Calls then when the process is dead; at once, in a moment, if it is dead already."""
        self._then = then
        the = service.the()
        the.add(self)
        the.watch(self._fd, select.EPOLLIN)

    def close(self) -> None:
        """Closes the handle. A watch that was started calls nothing any more."""
        if self._fd >= 0:
            if self._then is not None:
                service.the().remove(self, self._fd)
            self._then = None
            os.close(self._fd)
            self._fd = -1

    def fileno(self) -> int:
        """See Served."""
        return self._fd

    def serve(self, events: int, buffer: memoryview) -> None:
        """See Served."""
        then = self._then
        if events and then is not None:
            self.close()
            then()

    def reclaim(self) -> bool:
        """See Served."""
        return True

    def forget(self) -> None:
        """In a forked child: the handle is the parent's."""
        self._then = None
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
