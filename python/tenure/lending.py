"""The owner's half of a connection: what is offered to the other end, and the answers to what it asks."""

from __future__ import annotations

import time
from typing import Dict, List, Optional, Sequence, Tuple, Union

import numpy as np

from . import crash, table, wire
from .arena import Arena
from .death import Watch
from .errors import CreditError, Error, ProtocolError, Timeout
from .link import Link, left
from .table import Inline, Item, Prepared, Row, Table


def inline(item: Item) -> Optional[Inline]:
    """A leased tensor as one that needs no arena, if it is small enough."""
    form = wire.decode_form(item.form)
    b = item.block
    memory = b.arena.view[b.offset : b.offset + b.bytes]
    if form.packed:
        data = bytes(memory[form.first : form.end])
    else:
        raw = form.dtype.raw
        if form.elements * raw.itemsize > wire.INLINE:
            return None
        data = np.ndarray(form.shape, raw, memory, form.first if form.elements else 0, form.strides).tobytes()
    if len(data) > wire.INLINE:
        return None
    of = wire.form(form.dtype, True, 0, form.shape, wire.rows(form.shape))
    return Inline(of, item.label, data)


class Lending:
    """One per connection. The thread that reads calls it with messages; the program calls `offer`."""

    def __init__(self, peer: Link, books: Table, row: Row) -> None:
        self._peer = peer
        self.row = row
        self._table = books
        self._refused: Dict[int, str] = {}
        """Why the other end did not map an arena, until it is tried again."""
        self._pending: Dict[int, List[Tuple[int, int, Union[str, bytes]]]] = {}
        """Questions to answer once it is known whether the other end maps an arena."""

    # --- offering ---

    def offer(self, prepared: Prepared, wait: bool, timeout: Optional[float]) -> None:
        what = prepared.what
        if (isinstance(what, Inline) or what.block.arena.peers.get(self.row.number)) and self._try(what):
            return
        failed = to_all([self], prepared, wait, timeout)
        if failed:
            raise failed.pop()[1]  # not kept here: its traceback leads to this frame, and to the array

    def _try(self, what: Union[Item, Inline]) -> bool:
        """Offers at once, or not at all. The other end has mapped the arena."""
        peer = self._peer
        with peer._out_lock:  # serials go out in order
            peer._check_open("offer")
            if peer._out:
                return False
            if isinstance(what, Inline):
                peer._send_locked(_inline_packet(0, what))
                return True
            with self._table.lock:
                serial = self._table.lease(self.row, what)
            if serial is None:
                return False
            peer._send_locked(table.offer_packet(0, serial, what))
            crash.at(5)
            return True

    def _announce(self, a: Arena) -> None:
        """Tells the other end of an arena, if it does not know it."""
        with self._peer._out_lock, self._table.lock:
            self._peer._check_open("offer")
            if self.row.number in self._table.rows:
                self._tell(a)

    def _tell(self, a: Arena) -> None:
        if self.row.number not in a.peers:
            a.peers[self.row.number] = False
            self._refused.pop(a.id, None)
            self._peer._send_locked(wire.arena(wire.Arena(a.id, a.size)), a.fd)
            crash.at(2)

    # --- messages about arenas ---

    def mapped(self, arena_id: int) -> None:
        with self._table.lock:
            a = self._told(arena_id, "mapped")
            if a.peers[self.row.number]:
                raise ProtocolError(f"mapped: got arena {arena_id:x} again")
            a.peers[self.row.number] = True
            self._table.wake()
        self._resume(arena_id, None)

    def refused(self, r: wire.Refused) -> None:
        with self._table.lock:
            a = self._told(r.id, "refused")
            if a.peers[self.row.number]:
                raise ProtocolError(f"refused: got arena {r.id:x}, which is mapped")
            del a.peers[self.row.number]
            self._refused[r.id] = r.reason or f"errno {r.errno}"
            self._table.settle(a)
            self._table.wake()
        self._resume(r.id, self._refused[r.id])

    def unmapped(self, arena_id: int) -> None:
        with self._table.lock:
            a = self._told(arena_id, "unmapped")
            if not a.retired or any(e.item.block.arena is a for e in self.row.leases.values()):
                raise ProtocolError(f"unmapped: got arena {arena_id:x}, want one that was retired and has no leases")
            del a.peers[self.row.number]
            self._table.settle_all()  # the account may have room for another arena now
            self._table.wake()

    def _told(self, arena_id: int, what: str) -> Arena:
        a = self._table.arenas.get(arena_id) or self._table.pinned.get(arena_id)
        if a is None or self.row.number not in a.peers:
            raise ProtocolError(f"{what}: got arena {arena_id:x}, want one that was announced")
        return a

    def _resume(self, arena_id: int, refusal: Optional[str]) -> None:
        for request, kind, key in self._pending.pop(arena_id, []):
            self.reply(request, kind, key, refusal)

    # --- leases ---

    def released(self, serials: Tuple[int, ...]) -> None:
        crash.at(6)
        books, row = self._table, self.row
        with books.lock:
            for serial in serials:
                if not books.release(row, serial):
                    raise ProtocolError(f"release: got serial {serial}, want one of 1 to {row.last}")
        crash.at(7)

    def ticket(self, request: int, serial: int) -> None:
        with self._table.lock:
            ticket = self._table.mint(self.row, serial) if serial in self.row.leases else b""
        if ticket:
            crash.at(10)
            self._peer._send(wire.with_bytes(wire.TICKETED, request, ticket))
            crash.at(11)
        elif ticket is None:
            self._no(request, wire.NO_CREDIT, "you hold as much as you said you would")
        else:
            self._no(request, wire.NO_TICKET, f"serial {serial} is no lease of yours")

    def cancel(self, ticket: bytes) -> None:
        with self._table.lock:
            self._table.cancel(ticket)

    # --- answers ---

    def reply(self, request: int, kind: int, key: Union[str, bytes], refusal: Optional[str] = None) -> None:
        """Answers a GET of a name or a CLAIM of a ticket, now or when it is known whether the other end maps the arena."""
        peer, books, row = self._peer, self._table, self.row
        with peer._out_lock, books.lock:
            if peer._said_end:
                return  # nothing is offered behind END, which is the answer
            what = self._find(kind, key)
            if what is None:
                code, text = (wire.NO_NAME, f"no tensor is published as {key!r}") if kind == wire.GET else (wire.NO_TICKET, "the ticket is not known")
                return self._no_locked(request, code, text)
            if isinstance(what, Inline):
                return peer._send_locked(_inline_packet(request, what))
            a = what.block.arena
            if not a.peers.get(row.number):
                if refusal is None:
                    self._pending.setdefault(a.id, []).append((request, kind, key))
                    return self._tell(a)
                small = inline(what)
                if small is None:
                    return self._no_locked(request, wire.NO_MEMORY, f"the arena was refused: {refusal}")
                if kind == wire.CLAIM:
                    books.cancel(_as_ticket(key))
                return peer._send_locked(_inline_packet(request, small))
            serial = books.claim(_as_ticket(key), row) if kind == wire.CLAIM else books.lease(row, what)
            if serial is None:
                return self._no_locked(request, wire.NO_CREDIT, "you hold as much as you said you would")
            if kind == wire.CLAIM:
                crash.at(12)
            peer._send_locked(table.offer_packet(request, serial, what))
            crash.at(5)

    def _find(self, kind: int, key: Union[str, bytes]) -> Union[Item, Inline, None]:
        if kind == wire.CLAIM:
            return self._table.ticketed(_as_ticket(key))
        published = self._table.names.get(str(key))
        return None if published is None else published.what

    def drop(self, request: int, name: str) -> None:
        if not self._table.allow_drop:
            self._no(request, wire.NO_PERMISSION, "this owner does not let peers withdraw its names")
        elif not self._table.withdraw(name):
            self._no(request, wire.NO_NAME, f"no tensor is published as {name!r}")
        else:
            self._peer._send(wire.with_bytes(wire.TEXT, request, b""))

    def listed(self, request: int, text: bytes) -> None:
        parts = [text[i : i + wire.MAX_TEXT] for i in range(0, len(text), wire.MAX_TEXT)] or [b""]
        with self._peer._out_lock:
            for i, part in enumerate(parts):
                self._peer._send_locked(wire.with_bytes(wire.TEXT, request, part, more=i + 1 < len(parts)))

    def _no(self, request: int, code: int, text: str) -> None:
        with self._peer._out_lock:
            self._no_locked(request, code, text)

    def _no_locked(self, request: int, code: int, text: str) -> None:
        self._peer._send_locked(wire.no(request, wire.No(code, text)))

    # --- the end ---

    def lose(self, death: Watch) -> None:
        """Puts what the other end holds into quarantine; death is the watch on its process."""
        with self._table.lock:
            lost = self._table.lose(self.row, death)
        if not lost:
            death.close()

    def withdraw(self) -> None:
        """Takes back the offers that were not sent, and the arenas that the other end was not told of."""
        peer, books, row = self._peer, self._table, self.row
        with peer._out_lock, books.lock:
            for serial in peer._unsend_locked(wire.OFFER):
                books.release(row, serial)
            untold = set(peer._unsend_locked(wire.ARENA))
            peer._unsend_locked(wire.RETIRE, untold)
            for a in [a for a in books.arenas.values() if a.id in untold]:
                a.peers.pop(row.number, None)
                books.settle(a)
            self._pending.clear()
            books.wake()

    def over(self) -> None:
        """The other end's end of file. It holds nothing any more, unless it was disconnected: then only its death ends what it holds."""
        row = self.row
        with self._table.lock:
            self._pending.clear()
            death = row.death if row.lost and row.death and row.death.fileno() >= 0 and self._table.holds(row) else None
            if death is None:
                self._table.drop(row)
        if death is not None:
            death.start(self._dead)
        elif row.death is not None:
            row.death.close()

    def forget(self) -> None:
        """In a forked child."""
        if self.row.death is not None:
            self.row.death.forget()

    def _dead(self) -> None:
        with self._table.lock:
            self._table.drop(self.row)


class _Delivery:
    """A tensor on its way to one peer."""

    def __init__(self, lending: Lending, what: Union[Item, Inline]) -> None:
        self.lending = lending
        self._what = what
        self._told = False
        """The peer was asked to map the arena."""

    def step(self) -> bool:
        """Offers, or does what has to come before it. Returns False if the caller must wait."""
        l, what = self.lending, self._what
        if isinstance(what, Item):
            size, a = what.block.bytes, what.block.arena
            most = min(l.row.max_bytes, l._table.peer_bytes)
            if size > most:
                raise CreditError(f"offer: got {size} bytes, want at most {most}: the other end never holds more")
            if not a.peers.get(l.row.number):
                refused = l._refused.get(a.id) if self._told else None
                if refused is None:
                    l._announce(a)
                    self._told = True
                    return False
                small = inline(what)
                if small is None:
                    raise Error(f"offer: the other end did not map the arena, and {size} bytes are too many to send: {refused}")
                self._what = small
        return l._try(self._what)

    def obstacle(self) -> str:
        """Why it could not be offered yet."""
        row = self.lending.row
        if isinstance(self._what, Item) and not self._what.block.arena.peers.get(row.number):
            return "the other end has not mapped the arena yet"
        return f"the other end holds {len(row.leases)} leases of {row.bytes} bytes, or does not read, want one lease less"


def to_all(lendings: Sequence[Lending], prepared: Prepared, wait: bool, timeout: Optional[float]) -> List[Tuple[Lending, Error]]:
    """Offers a tensor on several connections of one owner, on each as soon as that is possible: none waits for another. Returns those that
    did not get it, and why."""
    deadline = None if timeout is None else time.monotonic() + timeout
    deliveries = [_Delivery(l, prepared.what) for l in lendings]
    failed: List[Tuple[Lending, Error]] = []
    books = lendings[0]._table
    polled = False
    while True:
        with books.lock:
            version = books.version
        waiting = []
        for delivery in deliveries:
            try:
                if not delivery.step():
                    waiting.append(delivery)
            except Error as e:
                failed.append((delivery.lending, e.with_traceback(None)))
        deliveries = waiting
        if not deliveries:
            return failed
        if not polled:  # an answer, or what was let go of, may have arrived
            polled = True
            for delivery in deliveries:
                delivery.lending._peer._poll()
            continue
        if not wait:
            return failed + [(delivery.lending, CreditError(f"offer: {delivery.obstacle()}")) for delivery in deliveries]
        for delivery in deliveries:
            delivery.lending._peer._arm()
        if not books.await_change(version, left(deadline)):
            return failed + [(delivery.lending, Timeout(f"offer: {delivery.obstacle()}, and nothing changed in time")) for delivery in deliveries]


def _as_ticket(key: Union[str, bytes]) -> bytes:
    assert isinstance(key, bytes), "BUG: a ticket is bytes"
    return key


def _inline_packet(request: int, what: Inline) -> bytes:
    return wire.offer(request, 0, 0, 0, len(what.data), 0, what.form, what.label, what.data)

