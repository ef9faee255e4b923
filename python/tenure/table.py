"""The owner's books: which connection holds which block, and which tensors are published. One lock guards all of it, and no other process
sees it."""

from __future__ import annotations

import os
import secrets
import threading
import time
from typing import Any, Dict, List, NamedTuple, Optional, Tuple, Union

from . import arena, crash, wire
from .arena import Arena, Block
from .death import Watch
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


class Account:
    """The total that all connections of one peer process hold of this owner: leases and tickets, their bytes, and those of disconnected
    connections among them, which are in quarantine."""

    __slots__ = ("bytes", "lost", "lost_bytes", "refs", "rows")

    def __init__(self) -> None:
        self.rows = 0
        self.refs = 0
        self.bytes = 0
        self.lost = 0
        self.lost_bytes = 0

    def add(self, refs: int, size: int, lost: bool) -> None:
        self.refs += refs
        self.bytes += size
        if lost:
            self.lost += refs
            self.lost_bytes += size


class Row:
    """The leases and tickets of one connection."""

    def __init__(self, peer: Link, account: Account, number: int, max_leases: int, max_bytes: int) -> None:
        self.peer = peer
        self.account = account
        self.lost = False
        """The connection was disconnected: what it holds is in quarantine."""
        self.death: Optional[Watch] = None
        """Of the process of a lost connection, where the kernel tells which one it is."""
        self.number = number
        self.max_leases = max_leases
        self.max_bytes = max_bytes
        self.bytes = 0
        self.last = 0
        """The last serial that was given out."""
        self.leases: Dict[int, Entry] = {}
        self.tickets: Dict[bytes, Entry] = {}


class Table:
    """Every method but await_change and withdraw is called with `lock` held."""

    def __init__(self, allow_drop: bool = False, limit: int = wire.MAX_U64, peer_leases: Optional[int] = None, peer_bytes: Optional[int] = None) -> None:
        self.peer_leases = wire.MAX_U64 if peer_leases is None else peer_leases
        self.peer_bytes = wire.MAX_U64 if peer_bytes is None else peer_bytes
        """The most that all connections of one peer process hold together."""
        self._most_pinned = limit if peer_bytes is None else peer_bytes
        self.accounts: Dict[Tuple[int, bytes], Account] = {}
        self.pinned: Dict[int, Arena] = {}
        """Arenas that have ended here and that disconnected peers may still have mapped."""
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
        """Whether peers may withdraw names."""

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

    def add(self, peer: Link, instance: bytes, max_leases: int, max_bytes: int) -> Row:
        """The row of a new connection. A peer process is known by its number, or by what it says it is if it has none of its own."""
        self.connections += 1
        account = self.accounts.setdefault((peer.pid, instance if peer.pid in (0, os.getpid()) else b""), Account())
        account.rows += 1
        row = self.rows[self.connections] = Row(peer, account, self.connections, max_leases, max_bytes)
        return row

    def has_credit(self, row: Row, size: int) -> bool:
        """Whether a connection may hold one lease or ticket more."""
        account = row.account
        pinned = self._pinned_by(account) if self.pinned else 0
        return (
            len(row.leases) + len(row.tickets) + account.lost < row.max_leases
            and row.bytes + account.lost_bytes + pinned + size <= row.max_bytes
            and account.refs < self.peer_leases
            and account.bytes + pinned + size <= self.peer_bytes
        )

    def _pinned_by(self, account: Account) -> int:
        """Bytes of the pinned arenas that a process may have mapped."""
        return sum(a.size for a in self.pinned.values() if any(self.rows[n].account is account for n in a.peers))

    def lease(self, row: Row, item: Item) -> Optional[int]:
        """The serial of a new lease, or None without credit."""
        size = item.block.bytes
        if row.number not in self.rows or row.lost or not self.has_credit(row, size):
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
        if not self.has_credit(row, item.block.bytes):
            return None
        ticket = secrets.token_bytes(16)
        row.tickets[ticket] = Entry(item, time.monotonic())
        self.tickets[ticket] = row
        self._refer(row, item.block)
        return ticket

    def ticketed(self, ticket: bytes) -> Optional[Item]:
        """The tensor of a ticket, None if there is no such ticket."""
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

    def lose(self, row: Row, death: Watch) -> bool:
        """Puts what a connection holds into quarantine. False if it is over, or lost already."""
        if row.number not in self.rows or row.lost:
            return False
        row.lost = True
        row.death = death
        row.account.lost += len(row.leases) + len(row.tickets)
        row.account.lost_bytes += row.bytes
        self.settle_all()
        self.wake()
        return True

    def holds(self, row: Row) -> bool:
        """Whether a connection holds a lease or a ticket, or may have an arena mapped."""
        return bool(row.leases or row.tickets) or any(row.number in a.peers for a in self._all_arenas())

    def _all_arenas(self) -> List[Arena]:
        return [*self.arenas.values(), *self.pinned.values()]

    def drop(self, row: Row) -> None:
        """Ends a connection's leases and tickets; it maps no arena any more."""
        if row.number not in self.rows:
            return
        for entry in row.leases.values():
            self._unrefer(row, entry.item.block)
        row.leases.clear()
        for ticket in list(row.tickets):
            self.cancel(ticket)
        for a in self._all_arenas():
            a.peers.pop(row.number, None)
        del self.rows[row.number]
        row.account.rows -= 1
        if row.account.rows == 0:
            self.accounts = {key: account for key, account in self.accounts.items() if account is not row.account}
        self.settle_all()
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
        """Ends a retired arena in which nothing is held and that no peer has mapped, or only disconnected ones whose accounts have room for it."""
        if a.id in self.pinned:
            if not a.peers:
                del self.pinned[a.id]
            return
        if not a.retired or a.blocks or a.id not in self.arenas:
            return
        by = {n: self.rows[n] for n in a.peers}
        if any(not row.lost or self._pinned_by(row.account) + a.size > self._most_pinned for row in by.values()):
            return
        del self.arenas[a.id]
        a.end()
        if by:
            self.pinned[a.id] = a

    def settle_all(self) -> None:
        """Does so with every arena."""
        for a in self._all_arenas():
            self.settle(a)

    def _refer(self, row: Row, block: Block) -> None:
        block.refs += 1
        block.state = arena.SHARED if block.held else arena.LIMBO
        row.bytes += block.bytes
        row.account.add(1, block.bytes, row.lost)

    def _unrefer(self, row: Row, block: Block) -> None:
        block.refs -= 1
        row.bytes -= block.bytes
        row.account.add(-1, -block.bytes, row.lost)
        if not block.refs and not block.held:
            self._free(block)
        self.wake()

    def _free(self, block: Block) -> None:
        block.arena.free(block)
        self.settle(block.arena)

    def check(self) -> None:
        """Holds the counts to what they count."""
        refs: Dict[int, int] = {}
        found: Dict[int, Account] = {}
        for row in self.rows.values():
            entries = [*row.leases.values(), *row.tickets.values()]
            size = sum(e.item.block.bytes for e in entries)
            assert row.bytes == size, f"BUG: row {row.number} says {row.bytes} bytes, has {size}"
            of = found.setdefault(id(row.account), Account())
            of.rows += 1
            of.add(len(entries), size, row.lost)
            for e in entries:
                refs[id(e.item.block)] = refs.get(id(e.item.block), 0) + 1
            for ticket in row.tickets:
                assert self.tickets[ticket] is row, f"BUG: a ticket of row {row.number} is not its"
        for account in self.accounts.values():
            of = found.pop(id(account))
            for field in Account.__slots__:
                have, says = getattr(of, field), getattr(account, field)
                assert have == says, f"BUG: an account says {field} {says}, has {have}"
        assert not found, "BUG: rows without an account"
        assert len(self.tickets) == sum(len(r.tickets) for r in self.rows.values()), "BUG: tickets of no row"
        for a in self.arenas.values():
            assert a.used == sum(b.capacity for b in a.blocks.values()), f"BUG: arena {a.id:x} says {a.used} bytes are used"
            for b in a.blocks.values():
                have = refs.pop(id(b), 0)
                assert b.refs == have, f"BUG: block at {b.offset} says {b.refs} leases, has {have}"
                assert b.held or b.refs, f"BUG: block at {b.offset} has no holder"
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

        lines = [line(r, s, e, "quarantined" if r.lost else "held") for r in self.rows.values() for s, e in r.leases.items()]
        lines += [line(r, 0, e, "quarantined" if r.lost else "ticket") for r in self.rows.values() for e in r.tickets.values()]
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
