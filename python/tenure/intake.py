"""The consumer's half of a connection: maps of the other end's arenas, and the leases held on them."""

from __future__ import annotations

import errno
import mmap
import sys
import weakref
from collections import deque
from typing import Callable, Deque, Dict, List, Optional, Sequence, Tuple, Union

from . import crash, device, memfd, wire
from .errors import DeviceError, ProtocolError
from .link import Link
from .received import Array, Received, bytes_of
from .tensor import DeviceTensor

_PENDING = 1024
_PENDING_BYTES = 32 << 20
_MAPS = 4096
_EVENTS = 1024


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

    kind = wire.CPU
    """Of the tensors in it."""

    def take(self, serial: int, offset: int, size: int) -> Tuple[Array, Optional[Tuple[int, int]]]:
        """The bytes of a block, and their pages if they are private ones."""
        memory, pages = self.view[offset : offset + size], None
        if self.private_view is not None:
            memory, pages = self.take_private(serial, offset, size) or (memory, None)
        return bytes_of(memory), pages

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


class DeviceMap:
    """An arena of the other end in the memory of a device, mapped here."""

    __slots__ = ("allocation", "at", "chunk", "device", "ended", "id", "retired", "size")

    def __init__(self, owner: bytes, arena: wire.Arena, fd: int) -> None:
        self.id = arena.id
        self.size = arena.size
        self.retired = False
        self.ended = False
        """The owner was told that it is closed."""
        self.device = device.find(arena.uuid)
        self.chunk: Optional[device.Chunk] = None
        self.allocation: Optional[device.Allocation] = None
        """Memory of another allocator. Its owner waits until it is closed, and it ends with its owner's process."""
        if arena.handle:
            self.allocation = device.allocation(owner, self.device, arena.handle, arena.size)
            self.at = self.allocation.at
        else:
            self.chunk = device.chunk(owner, arena.id, self.device, fd, arena.size)
            self.at = self.chunk.at

    kind = wire.CUDA

    def take(self, serial: int, offset: int, size: int) -> Tuple[Array, None]:
        """As that of Map."""
        return device.bytes_at(self.at + offset, size), None  # if it is closed, the tensor is let go of unseen

    def close(self) -> None:
        """Unmaps the memory, unless another connection has it too. Nothing describes it any more."""
        self.chunk = None
        if self.allocation is not None:
            self.allocation.close()
            self.allocation = None


class Lease(weakref.ref[Array]):
    """Watches the array that every view of a received tensor leads to, and says when the last of them is gone.

    That array is made from a memoryview. Were it a slice of a larger array, numpy would let views refer to the larger one directly,
    and the lease would be returned while they live.
    """

    __slots__ = ("bytes", "lent", "map", "pages", "serial")

    serial: int
    bytes: int
    map: Union[Map, DeviceMap]
    lent: bool
    """Work of other libraries on a device may read it."""
    pages: Optional[Tuple[int, int]]
    """Of the private map, where the tensor is writable."""


class Intake:
    """Used by the thread that reads the connection, except the methods that finalisers call, which take no lock."""

    def __init__(self, peer: Link, instance: bytes, max_leases: int, max_bytes: int, private: bool) -> None:
        self._peer = peer
        self._instance = instance
        """Of the other end."""
        self._private = private
        """Received tensors are written in private pages."""
        self._max_leases = max_leases
        self._max_bytes = max_bytes
        self._maps: Dict[int, Union[Map, DeviceMap]] = {}
        self._retired: List[Union[Map, DeviceMap]] = []
        self._device: Optional[device.Device] = None
        """That of the arenas, whose events come."""
        self._events: Dict[int, Optional[device.Event]] = {}
        self.faults: Deque[DeviceError] = deque()
        """Why arenas of devices were refused: the program is told, too."""
        self._seen_bytes = 0
        """At least the bytes of what is held."""
        self.held: Dict[int, Lease] = {}
        self.returning: Dict[int, None] = {}
        """Serials whose finaliser is about to use the socket."""
        self._opening = 0
        """Arenas that are being mapped."""
        self._unsent: Deque[int] = deque()
        """Serials whose RELEASE the socket did not take."""
        self.inbox: Deque[Received] = deque()
        self._inline_bytes = 0

    # --- arenas ---

    def arena(self, arena: wire.Arena, fds: Sequence[int], truncated: bool) -> None:
        crash.at(23)
        if arena.id in self._maps:
            raise ProtocolError(f"arena: got id {arena.id:x} again, want a new one")
        want = 0 if arena.handle else 1
        if len(fds) != want and not (truncated and not fds):
            raise ProtocolError(f"arena: got {len(fds)} descriptors, want {want}")
        self._opening += 1  # before the question whether END was said: the connection is not shut in between
        try:
            self._answer(arena, *self._map(arena, fds))
        finally:
            self._opening -= 1
        if self._peer._said_end:
            self._peer._nudge()

    def _answer(self, arena: wire.Arena, code: int, reason: str) -> None:
        if reason:
            self._peer._send(wire.refused(wire.Refused(arena.id, code, reason)))
            return
        crash.at(24)
        self._peer._send(wire.about(wire.MAPPED, arena.id))
        crash.at(25)

    def _map(self, arena: wire.Arena, fds: Sequence[int]) -> Tuple[int, str]:
        """Errno and reason where it cannot be."""
        if not fds and not arena.handle:
            return errno.EMFILE, "no descriptor is left in this process"
        if arena.handle and self._peer._said_end:
            return 0, "the connection has ended"
        if arena.kind != wire.HOST_ARENA and not arena.granularity and not arena.handle:
            known = f"{wire.HOST_ARENA} (host memory), {wire.CUDA_ARENA} (of a CUDA device) or {wire.ALLOCATION_ARENA} (an allocation there)"
            return 0, f"got an arena of kind {arena.kind}, want {known}"
        if len(self._maps) + len(self._retired) >= _MAPS:
            return 0, f"got {_MAPS} arenas already"
        if arena.kind != wire.HOST_ARENA:
            return 0, self._map_device(arena, fds[0] if fds else -1)
        fault = memfd.fault(fds[0], arena.size)
        if fault:
            return 0, fault
        try:
            self._maps[arena.id] = Map(arena, fds[0], self._private)
        except OSError as e:
            return e.errno or 0, str(e)
        return 0, ""

    def _map_device(self, arena: wire.Arena, fd: int) -> str:
        try:
            m = DeviceMap(self._instance, arena, fd)
        except DeviceError as e:
            self.faults.append(e)
            return str(e)
        self._maps[arena.id] = m
        self._device = device.find(arena.uuid)
        return ""

    def event(self, event: wire.Event) -> None:
        """Opens an event of the other end's device, and says whether it could."""
        crash.at(32)
        if event.slot in self._events or len(self._events) >= _EVENTS:
            raise ProtocolError(f"event: got slot {event.slot} behind {len(self._events)} others, want a new one of at most {_EVENTS}")
        reason = "" if self._device is not None else "no arena of a device is mapped"
        self._events[event.slot] = None
        if self._device is not None:
            try:
                self._events[event.slot] = device.Event(self._device, event.handle)
            except DeviceError as e:
                reason = str(e)
        crash.at(33)
        self._peer._send(wire.opened(wire.Opened(event.slot, int(bool(reason)), reason)))

    def _after(self, mark: Optional[wire.Mark]) -> Optional[device.Event]:
        if mark is None:
            return None
        event = self._events.get(mark.slot)
        if event is None:
            raise ProtocolError(f"offer: got work behind event {mark.slot}, want one that is open")
        return event

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

    def _lease(self, serial: int, arena: int, offset: int, size: int, form: wire.Form, label: str, mark: Optional[wire.Mark]) -> Received:
        m = self._maps.get(arena)
        if m is None:
            raise ProtocolError(f"offer: got arena {arena:x}, want one that is mapped")
        if form.device != m.kind:
            raise ProtocolError(f"offer: got a tensor on device {form.device} in an arena of device {m.kind}")
        after = self._after(mark)
        end = offset + size
        if end > m.size:
            raise ProtocolError(f"offer: got a block up to byte {end}, want it within its arena of {m.size} bytes")
        held = self.held
        if serial in held:
            raise ProtocolError(f"offer: got serial {serial} again")
        self._seen_bytes += size
        if len(held) >= self._max_leases or self._seen_bytes > self._max_bytes:
            self._check_credit(size)
        base, pages = m.take(serial, offset, size)
        lease = held[serial] = Lease(base, self._let_go)
        lease.serial, lease.bytes, lease.map, lease.pages, lease.lent = serial, size, m, pages, False
        if isinstance(m, DeviceMap):
            return DeviceTensor(self._peer, base, form, label, lease, after)
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
        self.returning[lease.serial] = None
        self.held.pop(lease.serial, None)
        if lease.lent and isinstance(lease.map, DeviceMap):
            lease.map.device.limbo.leave(lambda: self._give_back(lease))
        else:
            self._give_back(lease)

    def _give_back(self, lease: Lease) -> None:
        """Nothing reads the bytes any more. It takes no lock and never waits."""
        serial, peer = lease.serial, self._peer
        try:
            if lease.pages is not None and isinstance(lease.map, Map):
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
            self._retired.remove(m)
            self._close(m)
        if self._peer._said_end and not self.held and not self.returning and not self._opening:
            for m in self._allocations():  # the maps stay, for offers that are under way
                self._close(m)

    def _close(self, m: Union[Map, DeviceMap]) -> None:
        m.close()
        crash.at(31)
        if isinstance(m, DeviceMap):
            if m.ended:
                return
            m.ended = True
        self._peer._send(wire.about(wire.UNMAPPED, m.id))

    def _allocations(self) -> List[DeviceMap]:
        """The allocations of the other end that are open. It waits until each is closed, so they are before the connection is shut."""
        return [m for m in list(self._maps.values()) if isinstance(m, DeviceMap) and m.allocation is not None]

    def idle(self) -> bool:
        """Whether nothing is held, and no finaliser is about to use the socket."""
        return not (self.held or self.returning or self._unsent or self._retired or self._opening or self._allocations())

    def end(self) -> None:
        """After the connection: maps of host memory go with the last arrays over them, those of devices when no lease is held."""
        self._retired = [m for m in (*self._maps.values(), *self._retired) if isinstance(m, DeviceMap)]
        self._maps.clear()
        self._events.clear()  # tensors keep theirs
        for m in self._retired:
            m.retired = True

    def forget(self) -> None:
        """In a forked child: the leases are the parent's."""
        self.held.clear()
        self.returning.clear()
        self._unsent.clear()
        self.inbox.clear()
