"""An owner's memory: arrays are built in it, published, and prepared for offers; their bytes are free again when they have no holder."""

from __future__ import annotations

import json
import math
import operator
import os
import sys
import threading
import time
import weakref
from collections import deque
from typing import Any, Callable, Deque, Dict, Iterable, List, Optional, Sequence, Tuple, Union

import numpy as np

from . import arena, crash, dlpack, dtypes, foreign, memfd, process, service, wire
from .arena import Arena, Block
from .errors import ClosedError, Error, LimitError
from .link import command
from .received import Array, bytes_of
from .table import Inline, Item, Prepared, Row, Table

_SMALL = 16 << 10
"""Up to so many bytes a copy through the socket costs less than a lease."""
_FIRST, _MOST = 4 << 20, 256 << 20
"""Sizes of the first pooled arena and of the largest. Each has three times what there is: an arena is a descriptor, and a quarter of the
memory is in use at worst."""
_ALONE = 32 << 20
"""From here on a block has an arena of its own."""
_HUGE = 2 << 20
_UNMAP_TIMEOUT = 1.0
"""Seconds that an allocation waits for peers to unmap retired arenas before it fails."""


class Hold(weakref.ref[Array]):
    """Watches the array that every view of a block leads to: when it is gone the owner has no use for the block any more."""

    __slots__ = ("address", "block", "key", "made")

    address: int
    block: Block
    key: int
    made: Optional["weakref.ref[Array]"]
    """The array that empty returned: it becomes read-only too when a view of it is offered."""

    def __new__(cls, base: Array, dropped: Callable[["Hold"], None], *_: Any) -> "Hold":
        return super().__new__(cls, base, dropped)

    def __init__(self, base: Array, dropped: Callable[["Hold"], None], block: Block) -> None:
        super().__init__(base, dropped)  # type: ignore[call-arg]
        self.block = block
        self.made = None
        self.key = id(base)
        self.address = base.__array_interface__["data"][0]


class Store:
    """Arenas, blocks, leases and published names of one audience. The part of an Owner without its connections."""

    def __init__(self, limit: int, leases: int, bytes: int, allow_drop: bool, peer_leases: Optional[int], peer_bytes: Optional[int]) -> None:
        memfd.require("Owner")
        if limit < 0 or not 1 <= leases <= wire.MAX_LEASES or not 1 <= bytes <= wire.MAX_U64:
            raise ValueError(f"Owner: got limit {limit}, leases {leases}, bytes {bytes}, want sizes from 0, 1 to {wire.MAX_LEASES}, 1 on")
        if any(most is not None and most < 1 for most in (peer_leases, peer_bytes)):
            raise ValueError(f"Owner: got peer_leases {peer_leases}, peer_bytes {peer_bytes}, want at least 1 of each, or None")
        self.limit = limit
        self.max_leases = leases
        self.max_bytes = bytes
        self._table = Table(allow_drop, limit, peer_leases, peer_bytes)
        self._holds: Dict[int, Hold] = {}
        self._dropped: Deque[Hold] = deque()
        self._copied = 0
        self._numbers = 0
        self._growing = threading.Lock()
        """Held while an arena is made, which takes its time."""
        self._closed = False
        self._forked = False
        process.register(self)

    @property
    def allow_drop(self) -> bool:
        """Whether peers may withdraw published names."""
        return self._table.allow_drop

    @allow_drop.setter
    def allow_drop(self, allowed: bool) -> None:
        self._table.allow_drop = allowed

    # --- arrays ---

    def empty(self, shape: Union[int, Sequence[int]], dtype: Any = np.float32) -> Array:
        """A writable array in shared memory, of whatever content. Write into it, then offer it; when the last view of it is gone its bytes
        are free, as soon as no consumer holds them."""
        of = np.dtype(dtype)
        dtypes.from_numpy(of)
        try:
            sizes = tuple(map(operator.index, shape if isinstance(shape, Iterable) else (shape,)))
        except TypeError:
            raise TypeError(f"empty: got shape {shape!r}, want an integer or several") from None
        if any(n < 0 for n in sizes):
            raise ValueError(f"empty: got shape {sizes}, want sizes from 0 on")
        _, base = self._alloc(math.prod(sizes) * of.itemsize)
        made = dlpack.kind_of(of)(sizes, of, base)
        self._holds[id(base)].made = weakref.ref(made)
        return made

    def zeros(self, shape: Union[int, Sequence[int]], dtype: Any = np.float32) -> Array:
        """As empty, and all zeros."""
        made = self.empty(shape, dtype)
        made.fill(0)
        return made

    def copy(self, source: Any) -> Array:
        """A writable copy of an array of any library in shared memory, which can then be offered to many without another copy. Counted in the
        state."""
        given = foreign.given(source, "copy")
        if given.dtype.numpy is None:
            raise given.dtype.missing()
        made = self.empty(given.shape, given.dtype.numpy)
        if given.packed:
            made[...] = dtypes.unpack(given.array, given.dtype, given.shape)
        else:
            made.view(given.array.dtype.newbyteorder("="))[...] = given.array
        with self._table.lock:
            self._copied += made.nbytes
        return made

    def _alloc(self, size: int) -> Tuple[Block, Array]:
        self._check("empty")
        block = self._place(size)
        base = bytes_of(block.arena.view[block.offset : block.offset + block.bytes])
        hold = Hold(base, self._on_dropped, block)
        self._holds[hold.key] = hold
        block.hold = hold
        return block, base

    def _on_dropped(self, hold: Hold, finalizing: Callable[[], bool] = sys.is_finalizing) -> None:
        """The finaliser of a block's arrays. It may run anywhere, so it takes no lock: the next call into the owner does the rest. At the
        end of the process there is none, and modules are empty."""
        if finalizing():
            return
        if self._holds.get(hold.key) is hold:
            del self._holds[hold.key]
        self._dropped.append(hold)
        if self._closed and not self._forked:
            service.nudge(self)

    def _drain(self) -> None:
        """Under the lock."""
        while self._dropped:
            block = self._dropped.popleft().block
            block.hold = None
            self._table.let_go(block)

    def _place(self, size: int) -> Block:
        """A block, in what is there, in a new arena, or in what comes back."""
        try:
            return self._fit_or_grow(size)
        except LimitError:
            self.collect()
            self._await_unmapped(_UNMAP_TIMEOUT)
            return self._fit_or_grow(size)

    def _await_unmapped(self, seconds: float) -> None:
        """Peers that live answer RETIRE at once, and nothing in these arenas is held."""
        deadline = time.monotonic() + seconds
        for row in self._rows():
            row.peer._arm()
        with self._table.lock:
            while any(a.retired for a in self._table.arenas.values()):
                if not self._table.changed.wait(max(0.0, deadline - time.monotonic())):
                    return

    def _fit_or_grow(self, size: int) -> Block:
        block = self._fit(size)
        if block is not None:
            return block
        with self._growing:
            block = self._fit(size)  # another thread, or a release, may have made it possible
            return self._grow(size) if block is None else block

    def _fit(self, size: int) -> Optional[Block]:
        alone = size >= _ALONE
        with self._table.lock:
            self._drain()
            for a in self._table.arenas.values():
                # One that is much too large waits for a block that needs it.
                if a.retired or a.alone != alone or (alone and a.size > 2 * size):
                    continue
                block = a.alloc(size)
                if block is not None:
                    return block
        return None

    def _grow(self, size: int) -> Block:
        """A block in a new arena."""
        want, least = self._new_sizes(size)
        self._numbers += 1
        try:
            made = self._make(want, size)
        except LimitError:
            if want == least:
                raise
            made = self._make(least, size)
        with self._table.lock:
            if self._closed:
                made.end()
                self._check("empty")
            self._table.arenas[made.id] = made
            block = made.alloc(size)
        assert block is not None, "BUG: a new arena is too small for what it is made for"
        return block

    def _new_sizes(self, size: int) -> Tuple[int, int]:
        """How many bytes an arena for such a block should have, and how many it must."""
        step = _HUGE if size >= _HUGE else memfd.PAGE
        least = max(step, -(-size // step) * step)
        with self._table.lock:
            have = sum(a.size for a in self._table.arenas.values())
            pooled = sum(a.size for a in self._table.arenas.values() if not a.alone and not a.retired)
        left = self.limit - have
        if least > left:
            raise LimitError(f"empty: got {size} bytes, want them within the owner's limit of {self.limit}, of which arenas have {have}")
        if size >= _ALONE:
            return least, least
        return max(least, min(max(3 * pooled, _FIRST), _MOST, left // memfd.PAGE * memfd.PAGE)), least

    def _make(self, arena_bytes: int, size: int) -> Arena:
        try:
            return Arena(process.instance(), self._numbers, arena_bytes, size >= _ALONE)
        except OSError as e:
            raise LimitError(f"empty: no arena of {arena_bytes} bytes can be made: {e}") from None

    # --- offers ---

    def _find(self, array: Array) -> Optional[Hold]:
        """The hold of the block that an array lies in. Other libraries' views of it lead nowhere, so their address is what tells."""
        base: Any = array
        while isinstance(base, (np.ndarray, memoryview)):
            if isinstance(base, memoryview):
                base = base.obj
                continue
            hold = self._holds.get(id(base))
            if hold is not None and hold() is base:
                return hold
            base = base.base
        return None if base is None or isinstance(base, memfd.Memory) else self._find_at(array)

    def _find_at(self, array: Array) -> Optional[Hold]:
        if not array.size:
            return None
        low, high = foreign.bounds(array.shape, array.strides, array.itemsize)
        at = array.__array_interface__["data"][0] + low
        with self._table.lock:
            for a in self._table.arenas.values():
                if a.address <= at < a.address + a.size:
                    block = a.at(at)
                    hold = None if block is None else block.hold
                    if isinstance(hold, Hold) and at + high - low <= hold.address + hold.block.bytes and hold() is not None:
                        return hold
        return None

    def _prepare(self, source: Any, label: bytes, copy: bool, what: str) -> Prepared:
        self._check(what)
        array, of, shape, packed = given = foreign.given(source, what)
        if len(shape) > wire.MAX_RANK:
            raise ValueError(f"{what}: got rank {len(shape)}, want at most {wire.MAX_RANK}")
        hold = None if of.packed != packed or not array.dtype.isnative else self._find(array)
        kept = None if hold is None else hold()
        if hold is not None and kept is not None and array.size and not any(s % array.itemsize for s in array.strides):
            return self._in_place(given, hold, kept, label)
        if not copy and array.size:  # no bytes lie nowhere
            raise Error(f"{what}: got an array outside this owner's memory, want one made by empty or copy")
        if of.packed and not packed:
            array, packed = dtypes.pack(array, of), True
        if array.nbytes <= _SMALL:
            data = array.astype(array.dtype.newbyteorder("="), copy=False).tobytes()
            return Prepared(Inline(wire.form(of, True, 0, shape, wire.rows(shape)), label, data), None)
        block, base = self._alloc(array.nbytes)
        np.ndarray(array.shape, array.dtype.newbyteorder("="), base)[...] = array
        base.flags.writeable = False
        with self._table.lock:
            self._copied += array.nbytes
        return Prepared(Item(block, wire.form(of, False, 0, shape, wire.rows(shape)), label), base)

    def _in_place(self, given: foreign.Given, hold: Hold, kept: Array, label: bytes) -> Prepared:
        array, of, shape, packed = given
        base: Any = array
        while isinstance(base, np.ndarray):  # an offered array is immutable
            base.flags.writeable = False
            base = base.base
        kept.flags.writeable = False
        made = None if hold.made is None else hold.made()
        if made is not None:
            made.flags.writeable = False
        first = array.__array_interface__["data"][0] - hold.address
        strides = wire.rows(shape) if packed else tuple(s // array.itemsize for s in array.strides)
        return Prepared(Item(hold.block, wire.form(of, False, first, shape, strides), label), kept)

    # --- names ---

    def publish(self, name: str, array: Any) -> None:
        """Lets peers get an array by name, until it is withdrawn. It is read-only from now on. A name that is taken is an error."""
        data = name.encode("utf-8")
        if not 1 <= len(data) <= wire.MAX_NAME:
            raise ValueError(f"publish: got a name of {len(data)} bytes, want 1 to {wire.MAX_NAME}")
        prepared = self._prepare(array, wire.short_label(name), True, "publish")
        with self._table.lock:
            if name in self._table.names:
                raise Error(f"publish: got name {name!r} again, want it withdrawn first")
            self._table.names[name] = prepared

    def withdraw(self, name: str) -> bool:
        """Ends a name; peers that have the tensor keep it. False if there is no such name."""
        return self._table.withdraw(name)

    # --- what is out ---

    def collect(self) -> int:
        """Processes every release that has arrived, and returns arenas without blocks to the system, which happens when the peers that map
        them have answered. Returns the bytes of these arenas."""
        self._check("collect")
        for row in self._rows():
            row.peer._poll()
        return self._retire(used=False)

    def _retire(self, used: bool) -> int:
        """Lets no block be made in arenas any more, so that they end with the last one that is in them."""
        over: List[Tuple[Arena, List[Row]]] = []
        with self._table.lock:
            self._drain()
            for a in list(self._table.arenas.values()):
                if not a.retired and (used or not a.blocks):
                    a.retired = True
                    over.append((a, [self._table.rows[n] for n in a.peers if n in self._table.rows]))
                    self._table.settle(a)
        for a, rows in over:
            for row in rows:
                row.peer._send(wire.about(wire.RETIRE, a.id))
                crash.at(13)
        return sum(a.size for a, _ in over)

    def outstanding(self) -> List[Dict[str, Any]]:
        """The leases and tickets that peers hold, as in the state, with every release taken in that has arrived."""
        rows = self._rows()
        for row in rows:
            row.peer._poll()
        commands = {row.peer.pid: command(row.peer.pid) for row in rows}
        with self._table.lock:
            self._drain()
            return self._table.leases(commands)

    def state(self) -> Dict[str, Any]:
        """Everything about this owner, as docs/share.md shows it."""
        commands = {row.peer.pid: command(row.peer.pid) for row in self._rows()}
        with self._table.lock:
            self._drain()
            books = self._table
            if crash.INVARIANTS:
                books.check()
            return {
                "version": wire.STATE_VERSION,
                "pid": os.getpid(),
                "command": command(os.getpid()),
                "instance": process.instance().hex(),
                "arenas": books.arena_lines(),
                "blocks": books.blocks(),
                "leases": books.leases(commands),
                "names": [_named(name, p) for name, p in books.names.items()],
                "bytes": {
                    "limit": self.limit,
                    "arenas": sum(a.size for a in books.arenas.values()),
                    "used": sum(b.bytes for a in books.arenas.values() for b in a.blocks.values()),
                    "limbo": sum(b.bytes for a in books.arenas.values() for b in a.blocks.values() if b.state == arena.LIMBO),
                    "copied": self._copied,
                    "pinned": sum(a.size for a in books.pinned.values()),
                },
            }

    def _state_text(self) -> bytes:
        return json.dumps(self.state()).encode()

    def _rows(self) -> List[Row]:
        with self._table.lock:
            return list(self._table.rows.values())

    # --- the end ---

    def close(self) -> None:
        """Sends END to all peers. Peers keep the tensors that they hold; arrays of this process stay valid while they exist."""
        if self._forked or self._closed:
            return
        if self._table.arenas:
            service.the()  # it frees what the last arrays leave
        self._closed = True
        with self._table.lock:
            self._table.names.clear()
        self._retire(used=True)
        for row in self._rows():
            row.peer.close()

    def fileno(self) -> int:
        """See Served: an owner has no socket."""
        return -1

    def serve(self, events: int, buffer: memoryview) -> None:
        """See Served. A closed owner is called no more, so the service frees what its last arrays leave."""
        with self._table.lock:
            self._drain()

    def reclaim(self) -> bool:
        """See Served."""
        return True

    def _check(self, what: str) -> None:
        if self._forked:
            raise ClosedError(f"{what}: got the owner of the process that this one was forked from, want one of its own")
        if self._closed:
            raise ClosedError(f"{what}: got an owner that is closed")

    def _forget(self) -> None:
        """In a forked child: the memory is the parent's, which alone may write it."""
        self._forked = self._closed = True
        arenas = list(self._table.arenas.values())
        self._holds.clear()
        self._dropped.clear()
        self._table = Table(self.allow_drop)
        for a in arenas:
            a.forget()


def _named(name: str, prepared: Prepared) -> Dict[str, Any]:
    what = prepared.what
    form = wire.decode_form(what.form)
    size = len(what.data) if isinstance(what, Inline) else what.block.bytes
    return {"name": name, "dtype": form.dtype.name, "shape": list(form.shape), "bytes": size}
