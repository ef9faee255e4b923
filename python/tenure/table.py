"""The owner's books: which connection holds which block, and which tensors are published. One lock guards all of it, and no other process
sees it."""

from __future__ import annotations

import secrets
import threading
import time
from typing import Any, Dict, List, NamedTuple, Optional, Union

from . import arena, crash, wire
from .arena import Arena, Block
from .link import Link


class Item(NamedTuple):
    """A tensor as it is offered: where it lies, and its form and label as they travel."""

    block: Block
    form: bytes
    label: bytes


class Inline(NamedTuple):
    """A small tensor whose bytes travel inside its message."""

    form: bytes
    label: bytes
    data: bytes


class Prepared(NamedTuple):
    """An array that is ready to be offered, and what keeps its bytes meanwhile."""

    what: Union[Item, Inline]
    keep: Any


class Entry(NamedTuple):
    """A lease, or a ticket that was not claimed."""

    item: Item
    since: float


class Row:
    """What one connection holds of this owner."""

    def __init__(self, peer: Link, number: int, max_leases: int, max_bytes: int) -> None:
        self.peer = peer
        self.number = number
        self.max_leases = max_leases
        self.max_bytes = max_bytes
        self.bytes = 0
        self.last = 0
        """The last serial that was given out."""
        self.leases: Dict[int, Entry] = {}
        self.tickets: Dict[bytes, Entry] = {}

    def has_credit(self, size: int) -> bool:
        return len(self.leases) + len(self.tickets) < self.max_leases and self.bytes + size <= self.max_bytes


class Table:
    """Every method but await_change and withdraw is called with `lock` held."""

    def __init__(self, allow_drop: bool = False) -> None:
        self.lock = threading.Lock()
        self.changed = threading.Condition(self.lock)
        self.version = 0
        """Grows when a wait for credit, or for a socket that can be written, may be over."""
        self.rows: Dict[int, Row] = {}
        self.tickets: Dict[bytes, Row] = {}
        self.arenas: Dict[int, Arena] = {}
        self.connections = 0
        self.names: Dict[str, Prepared] = {}
        """The published tensors."""
        self.allow_drop = allow_drop
        """Peers may withdraw names."""

    def wake(self) -> None:
        self.version += 1
        self.changed.notify_all()

    def await_change(self, version: int, timeout: Optional[float]) -> bool:
        """Waits until the version is another; False if it is the same all the time."""
        with self.lock:
            return self.changed.wait_for(lambda: self.version != version, timeout)

    def withdraw(self, name: str) -> bool:
        """Ends a name; peers that have the tensor keep it. False if there is no such name. It takes the lock."""
        with self.lock:
            return self.names.pop(name, None) is not None

    def add(self, peer: Link, max_leases: int, max_bytes: int) -> Row:
        self.connections += 1
        row = self.rows[self.connections] = Row(peer, self.connections, max_leases, max_bytes)
        return row

    def lease(self, row: Row, item: Item) -> Optional[int]:
        """The serial of a new lease, or None without credit."""
        size = item.block.bytes
        if not row.has_credit(size) or row.number not in self.rows:
            return None
        return self._record(row, item)

    def _record(self, row: Row, item: Item) -> int:
        row.last += 1
        row.leases[row.last] = Entry(item, time.monotonic())
        self._refer(row, item.block)
        crash.at(4)
        return row.last

    def release(self, row: Row, serial: int) -> bool:
        """Ends a lease, if it was not over already. False for a serial that was never given out."""
        entry = row.leases.pop(serial, None)
        if entry is not None:
            self._unrefer(row, entry.item.block)
        return 0 < serial <= row.last

    def mint(self, row: Row, serial: int) -> Optional[bytes]:
        """A ticket on a leased tensor, or None without credit. The lease must be there."""
        item = row.leases[serial].item
        if not row.has_credit(item.block.bytes):
            return None
        ticket = secrets.token_bytes(16)
        row.tickets[ticket] = Entry(item, time.monotonic())
        self.tickets[ticket] = row
        self._refer(row, item.block)
        return ticket

    def ticketed(self, ticket: bytes) -> Optional[Item]:
        """What a ticket is good for."""
        row = self.tickets.get(ticket)
        return None if row is None else row.tickets[ticket].item

    def claim(self, ticket: bytes, row: Row) -> Optional[int]:
        """Turns a ticket into a lease of a row in one step, or leaves it as it was and returns None without credit."""
        of = self.tickets[ticket]
        item = of.tickets[ticket].item
        if of is row:  # one for the other: that needs no more credit
            item.block.refs += 1  # so that the block does not end in between
            self.cancel(ticket)
            item.block.refs -= 1
            return self._record(row, item)
        serial = self.lease(row, item)
        if serial is not None:
            self.cancel(ticket)
        return serial

    def cancel(self, ticket: bytes, row: Optional[Row] = None) -> None:
        """Ends a ticket, if there is such a one (of that row)."""
        of = self.tickets.get(ticket)
        if of is not None and (row is None or of is row):
            del self.tickets[ticket]
            self._unrefer(of, of.tickets.pop(ticket).item.block)

    def drop(self, row: Row) -> None:
        """The connection is over: so are its leases and tickets, and it maps no arena any more."""
        if self.rows.pop(row.number, None) is None:
            return
        for entry in row.leases.values():
            self._unrefer(row, entry.item.block)
        row.leases.clear()
        for ticket in list(row.tickets):
            self.cancel(ticket)
        for a in list(self.arenas.values()):
            a.peers.pop(row.number, None)
            self.settle(a)
        self.wake()

    def let_go(self, block: Block) -> None:
        """The owner has no use for a block any more."""
        block.held = False
        if block.refs:
            block.state = arena.LIMBO
            crash.at(14)
        else:
            self._free(block)

    def settle(self, a: Arena) -> None:
        """Ends a retired arena that no peer maps any more."""
        if a.retired and not a.peers and not a.blocks and self.arenas.pop(a.id, None) is not None:
            a.end()

    def _refer(self, row: Row, block: Block) -> None:
        block.refs += 1
        block.state = arena.SHARED if block.held else arena.LIMBO
        row.bytes += block.bytes

    def _unrefer(self, row: Row, block: Block) -> None:
        block.refs -= 1
        row.bytes -= block.bytes
        if not block.refs and not block.held:
            self._free(block)
        self.wake()

    def _free(self, block: Block) -> None:
        block.arena.free(block)
        self.settle(block.arena)

    def check(self) -> None:
        """Holds the counts to what they count."""
        refs: Dict[int, int] = {}
        for row in self.rows.values():
            entries = [*row.leases.values(), *row.tickets.values()]
            size = sum(e.item.block.bytes for e in entries)
            assert row.bytes == size, f"BUG: row {row.number} says {row.bytes} bytes, has {size}"
            for e in entries:
                refs[id(e.item.block)] = refs.get(id(e.item.block), 0) + 1
            for ticket in row.tickets:
                assert self.tickets[ticket] is row, f"BUG: a ticket of row {row.number} is not its"
        assert len(self.tickets) == sum(len(r.tickets) for r in self.rows.values()), "BUG: tickets of no row"
        for a in self.arenas.values():
            assert a.used == sum(b.capacity for b in a.blocks.values()), f"BUG: arena {a.id:x} says {a.used} bytes are used"
            for b in a.blocks.values():
                have = refs.pop(id(b), 0)
                assert b.refs == have, f"BUG: block at {b.offset} says {b.refs} leases, has {have}"
                assert b.held or b.refs, f"BUG: block at {b.offset} is nobody's"
        assert not refs, "BUG: leases of blocks that are free"

    # --- what LIST answers ---

    def leases(self, commands: Dict[int, str]) -> List[Dict[str, Any]]:
        """Leases and tickets, the oldest first."""
        now = time.monotonic()

        def line(row: Row, serial: int, entry: Entry, state: str) -> Dict[str, Any]:
            block = entry.item.block
            pid = row.peer.pid
            return {
                "pid": pid, "command": commands.get(pid, ""), "connection": row.number, "serial": serial, "arena": f"{block.arena.id:016x}",
                "offset": block.offset, "bytes": block.bytes, "label": entry.item.label.decode(), "age_ms": int((now - entry.since) * 1000), "state": state,
            }  # fmt: skip

        lines = [line(r, s, e, "held") for r in self.rows.values() for s, e in r.leases.items()]
        lines += [line(r, 0, e, "ticket") for r in self.rows.values() for e in r.tickets.values()]
        return sorted(lines, key=lambda x: (-x["age_ms"], x["connection"], x["serial"]))

    def blocks(self) -> List[Dict[str, Any]]:
        return [
            {"arena": f"{a.id:016x}", "offset": b.offset, "bytes": b.bytes, "state": b.state, "refs": b.refs}
            for a in self.arenas.values()
            for b in a.blocks.values()
        ]

    def arena_lines(self) -> List[Dict[str, Any]]:
        return [
            {"id": f"{a.id:016x}", "bytes": a.size, "used": a.used, "blocks": len(a.blocks), "peers": len(a.peers), "retired": a.retired}
            for a in self.arenas.values()
        ]


def offer_packet(request: int, serial: int, item: Item) -> bytes:
    """The OFFER of a leased item."""
    b = item.block
    return wire.offer(request, serial, b.arena.id, b.offset, b.bytes, b.generation, item.form, item.label)
