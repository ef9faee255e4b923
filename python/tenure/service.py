"""One thread per process that reads the connections which no other thread is reading.

A program that waits in `receive` reads its socket itself: handing packets from thread to thread would double the time of a hand-over.
While it does other things the connection must be read all the same, for there are questions to answer, releases to take in, ends to
notice. So a connection is lent to the threads that call into it, and comes back here when no call came for a moment.
"""

from __future__ import annotations

import os
import select
import threading
import time
from collections import deque
from typing import Any, Deque, Dict, Optional, Protocol

_MOMENT = 0.025


class Served(Protocol):
    """The interface of a connection to the service."""

    def fileno(self) -> int: ...
    def serve(self, events: int, buffer: memoryview) -> None:
        """Called when something of its event mask happened, or after a nudge (0). Sets the mask anew."""

    def reclaim(self) -> bool:
        """Called from time to time while the connection is lent. True: no thread reads it now, watch it again."""


class Service:
    """The thread, what it watches, and how to wake it."""

    def __init__(self) -> None:
        self._epoll = select.epoll(flags=select.EPOLL_CLOEXEC)
        if hasattr(os, "eventfd"):
            self._wake = self._woken = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        else:
            self._woken, self._wake = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        self._epoll.register(self._woken, select.EPOLLIN)
        self._links: Dict[int, Served] = {}
        self._lent: Dict[int, Served] = {}
        self._nudged: Deque[Served] = deque()
        self._reminders: Dict[Served, float] = {}
        threading.Thread(target=self._run, name="tenure", daemon=True).start()

    def add(self, link: Served) -> None:
        """Begins to look after a connection, for the moment without watching it."""
        fd = link.fileno()
        self._links[fd] = link
        self._epoll.register(fd, select.EPOLLONESHOT)

    def remove(self, link: Served, fd: int) -> None:
        """Before the socket is closed."""
        self._lent.pop(fd, None)
        if self._links.pop(fd, None) is not None:
            self._epoll.unregister(fd)

    def watch(self, fd: int, events: int) -> None:
        """Wants to hear once of the events, or none."""
        if fd in self._links:
            try:
                self._epoll.modify(fd, events | select.EPOLLONESHOT)
            except OSError:
                pass  # it was closed meanwhile

    def lend(self, link: Served) -> None:
        """The connection is read by threads that call into it, until no call came for a moment."""
        self._lent[link.fileno()] = link
        self._ring()

    def nudge(self, link: Served) -> None:
        """Has link.serve called soon. Takes no lock: finalisers call it."""
        self._nudged.append(link)
        self._ring()

    def remind(self, link: Served, seconds: float) -> None:
        """Has link.serve called after a time, or sooner. Only served objects call it, from serve."""
        self._reminders[link] = time.monotonic() + seconds

    def _ring(self) -> None:
        try:
            os.write(self._wake, b"\1\0\0\0\0\0\0\0")
        except OSError:
            pass  # full: it rings already; closed: the process ends

    def _run(self) -> None:
        buffer = memoryview(bytearray(65536 + 8))
        looked = 0.0
        while True:
            events = self._epoll.poll(self._patience())
            for fd, mask in events:
                if fd == self._woken:
                    try:
                        os.read(fd, 4096)
                    except BlockingIOError:
                        pass
                    continue
                link = self._links.get(fd)
                if link is not None:
                    self._serve(link, mask, buffer)
            while self._nudged:
                self._serve(self._nudged.popleft(), 0, buffer)
            if self._reminders:
                now = time.monotonic()
                for link in [link for link, due in self._reminders.items() if due <= now]:
                    del self._reminders[link]
                    self._serve(link, 0, buffer)
            if self._lent and time.monotonic() - looked >= _MOMENT:
                looked = time.monotonic()
                for fd, link in list(self._lent.items()):
                    self._lent.pop(fd, None)  # first: from here on another thread may lend it again
                    if link.reclaim():
                        self._serve(link, 0, buffer)
                    else:
                        self._lent[fd] = link

    def _patience(self) -> Optional[float]:
        """Seconds until something is to be done although nothing happens."""
        until = [_MOMENT] if self._lent else []
        if self._reminders:
            until.append(max(min(self._reminders.values()) - time.monotonic(), 0.0))
        return min(until) if until else None

    @staticmethod
    def _serve(link: Served, mask: int, buffer: memoryview) -> None:
        try:
            link.serve(mask, buffer)
        except Exception as e:  # one connection's fault must not end the service of the others
            args: Any = (type(e), e, e.__traceback__, threading.current_thread())
            threading.excepthook(threading.ExceptHookArgs(args))

    def forget(self) -> None:
        """In a forked child: the thread is not there, and the descriptors are the parent's too."""
        self._epoll.close()
        os.close(self._woken)
        if self._wake != self._woken:
            os.close(self._wake)


_lock = threading.Lock()
_the: Optional[Service] = None


def the() -> Service:
    """The service of this process; begins it if need be."""
    global _the
    with _lock:
        if _the is None:
            _the = Service()
        return _the


def nudge(link: Served) -> None:
    """Has link.serve called soon, if there is a service. Takes no lock: finalisers call it."""
    if _the is not None:
        _the.nudge(link)


def forget() -> None:
    """In a forked child."""
    global _the, _lock
    _lock = threading.Lock()
    if _the is not None:
        _the.forget()
        _the = None
