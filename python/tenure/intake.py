"""The consumer's half of a connection: maps of the other end's arenas, and the leases held on them."""

from __future__ import annotations

import errno
import mmap
import sys
import weakref
from collections import deque
from typing import Callable, Deque, Dict, List, Optional, Sequence, Tuple

from . import crash, memfd, wire
from .errors import ProtocolError
from .link import Link
from .received import Array, Received, bytes_of

_PENDING = 1024
_PENDING_BYTES = 32 << 20
_MAPS = 4096


class Map:
    """An arena of the other end, mapped here. The private map is there only where received tensors are to be written."""

    __slots__ = ("id", "leases", "private", "private_pages", "private_view", "retired", "size", "view")

    def __init__(self, arena: wire.Arena, fd: int, private: bool) -> None:
        self.id = arena.id
        self.size = arena.size
        self.retired = False
        self.view = memfd.attach(fd, arena.size)
        self.private: Optional[memfd.Memory] = None
        self.private_view: Optional[memoryview] = None
        self.private_pages: Dict[int, int] = {}
        """First and last pages of the tensors that are out, by serial."""
        if private:
            self.private = memfd.attach_private(fd, arena.size)
            self.private_view = self.private.view()

    def take_private(self, serial: int, offset: int, size: int) -> Optional[Tuple[memoryview, Tuple[int, int]]]:
        """A writable piece, or None where its first or last page also belongs to another tensor that is out: a page can only be
        private as a whole, so the one would see it as the other left it."""
        if self.private_view is None:
            return None
        low = offset // mmap.PAGESIZE
        high = max(low, (offset + size - 1) // mmap.PAGESIZE)
        if low in self.private_pages or high in self.private_pages:
            return None
        self.private_pages[low] = self.private_pages[high] = serial
        return self.private_view[offset : offset + size], (low, high)

    def give_back(self, pages: Tuple[int, int]) -> None:
        """Drops what was written to pages, so that the next tensor there is read as its owner wrote it. Takes no lock."""
        low, high = pages
        if self.private is not None:
            self.private.advise(mmap.MADV_DONTNEED, low * mmap.PAGESIZE, min((high + 1) * mmap.PAGESIZE, self.size) - low * mmap.PAGESIZE)
        self.private_pages.pop(low, None)
        self.private_pages.pop(high, None)

    def close(self) -> None:
        """Releases the memory. An array whose finaliser has just run is still about to, and code that has the base of an array keeps it;
        the kernel's map ends with the last of them."""
        self.view.release()
        if self.private_view is not None:
            self.private_view.release()
            self.private = self.private_view = None


class Lease(weakref.ref[Array]):
    """Watches the array that every view of a received tensor leads to, and says when the last of them is gone.

    That array is made from a memoryview. Were it a slice of a larger array, numpy would let views refer to the larger one directly,
    and the lease would be returned while they live.
    """

    __slots__ = ("bytes", "map", "pages", "serial")

    serial: int
    bytes: int
    map: Map
    pages: Optional[Tuple[int, int]]
    """Of the private map, where the tensor is writable."""


class Intake:
    """Used by the thread that reads the connection, except the methods that finalisers call, which take no lock."""

    def __init__(self, peer: Link, max_leases: int, max_bytes: int, private: bool) -> None:
        self._peer = peer
        self._private = private
        """Received tensors are written in private pages."""
        self._max_leases = max_leases
        self._max_bytes = max_bytes
        self._maps: Dict[int, Map] = {}
        self._retired: List[Map] = []
        self._seen_bytes = 0
        """At least the bytes of what is held."""
        self.held: Dict[int, Lease] = {}
        self.returning: Dict[int, None] = {}
        """Serials whose finaliser is about to use the socket."""
        self._unsent: Deque[int] = deque()
        """Serials whose RELEASE the socket did not take."""
        self.inbox: Deque[Received] = deque()
        self._inline_bytes = 0

    # --- arenas ---

    def arena(self, arena: wire.Arena, fds: Sequence[int], truncated: bool) -> None:
        crash.at(23)
        if arena.id in self._maps:
            raise ProtocolError(f"arena: got id {arena.id:x} again, want a new one")
        if len(fds) != 1 and not (truncated and not fds):
            raise ProtocolError(f"arena: got {len(fds)} descriptors, want 1")
        code, reason = self._map(arena, fds)
        if reason:
            self._peer._send(wire.refused(wire.Refused(arena.id, code, reason)))
            return
        crash.at(24)
        self._peer._send(wire.about(wire.MAPPED, arena.id))
        crash.at(25)

    def _map(self, arena: wire.Arena, fds: Sequence[int]) -> Tuple[int, str]:
        """Errno and reason where it cannot be."""
        if not fds:
            return errno.EMFILE, "no descriptor is left in this process"
        if arena.kind != 0:
            return 0, f"got arena of kind {arena.kind}, want host memory (0)"
        if len(self._maps) + len(self._retired) >= _MAPS:
            return 0, f"got {_MAPS} arenas already"
        fault = memfd.fault(fds[0], arena.size)
        if fault:
            return 0, fault
        try:
            self._maps[arena.id] = Map(arena, fds[0], self._private)
        except OSError as e:
            return e.errno or 0, str(e)
        return 0, ""

    def retire(self, arena_id: int) -> None:
        crash.at(30)
        m = self._maps.pop(arena_id, None)
        if m is None:
            raise ProtocolError(f"retire: got arena {arena_id:x}, want one that is mapped")
        m.retired = True
        self._retired.append(m)

    # --- offers ---

    def offer(self, tensors: List[wire.Tensor], data: bytes) -> List[Received]:
        """The tensors of an OFFER, with their leases."""
        return [self._lease(*t) if t[0] else self._inline(t, data) for t in tensors]

    def _inline(self, t: wire.Tensor, data: bytes) -> Received:
        return Received(self._peer, bytes_of(memoryview(data)), t[4], t[5], 0)

    def _lease(self, serial: int, arena: int, offset: int, size: int, form: wire.Form, label: str) -> Received:
        m = self._maps.get(arena)
        if m is None:
            raise ProtocolError(f"offer: got arena {arena:x}, want one that is mapped")
        end = offset + size
        if end > m.size:
            raise ProtocolError(f"offer: got a block up to byte {end}, want it within its arena of {m.size} bytes")
        held = self.held
        if serial in held:
            raise ProtocolError(f"offer: got serial {serial} again")
        self._seen_bytes += size
        if len(held) >= self._max_leases or self._seen_bytes > self._max_bytes:
            self._check_credit(size)
        memory, pages = m.view[offset:end], None
        if m.private_view is not None:
            memory, pages = m.take_private(serial, offset, size) or (memory, None)
        base = bytes_of(memory)
        lease = held[serial] = Lease(base, self._let_go)
        lease.serial, lease.bytes, lease.map, lease.pages = serial, size, m, pages
        return Received(self._peer, base, form, label, serial)

    def _check_credit(self, size: int) -> None:
        self._seen_bytes = size + sum(lease.bytes for lease in list(self.held.values()))
        if len(self.held) >= self._max_leases or self._seen_bytes > self._max_bytes:
            raise ProtocolError(f"offer: got {len(self.held) + 1} leases of {self._seen_bytes} bytes, want at most {self._max_leases} of {self._max_bytes}")

    def deliver(self, received: List[Received]) -> None:
        for r in received:
            if r.serial == 0:
                self._inline_bytes += r._form.end
        self.inbox.extend(received)

    def fetch(self) -> Received:
        r = self.inbox.popleft()
        if r.serial == 0:
            self._inline_bytes -= r._form.end
        return r

    def full(self) -> bool:
        """Inline tensors need no credit, so they are bounded here: reading stops until they are fetched."""
        return len(self.inbox) >= _PENDING or self._inline_bytes >= _PENDING_BYTES

    # --- letting go ---

    def _let_go(self, lease: Lease, finalizing: Callable[[], bool] = sys.is_finalizing) -> None:
        """The finaliser of a lease: its last view is gone. It may run anywhere, so it takes no lock and never waits. At the end of the
        process modules are empty, and the end of the connection says it all."""
        if finalizing():
            return
        serial, peer = lease.serial, self._peer
        self.returning[serial] = None
        self.held.pop(serial, None)
        try:
            if lease.pages is not None:
                lease.map.give_back(lease.pages)
            crash.at(28)
            if self._unsent or not peer._send_release(serial):
                self._unsent.append(serial)
                if len(self._unsent) == 1:  # those behind it go with it
                    peer._nudge()
            crash.at(29)
        finally:
            self.returning.pop(serial, None)
        if lease.map.retired or peer._said_end or peer._gone:
            peer._nudge()

    def tidy(self) -> None:
        """Sends the releases that the socket did not take, then unmaps the arenas that have ended. Only the service calls it."""
        unsent = self._unsent
        while unsent and not self._peer._out:  # what waits here goes in few messages, as soon as the other end reads again
            serials = [unsent.popleft() for _ in range(min(len(unsent), wire.MAX_RELEASES))]
            self._peer._send(wire.release(serials))
        if unsent:  # an arena's end comes behind its leases'
            return
        for m in self._retired[:]:
            if any(lease.map is m for lease in list(self.held.values())) or self.returning:
                continue
            m.close()
            self._retired.remove(m)
            crash.at(31)
            self._peer._send(wire.about(wire.UNMAPPED, m.id))

    def idle(self) -> bool:
        """Whether nothing is held, and no finaliser is about to use the socket."""
        return not self.held and not self.returning and not self._unsent

    def end(self) -> None:
        """After the connection: maps go with the last arrays over them."""
        self._maps.clear()
        self._retired.clear()

    def forget(self) -> None:
        """In a forked child: the leases are the parent's."""
        self.held.clear()
        self.returning.clear()
        self._unsent.clear()
        self.inbox.clear()
