"""An owner's memory: arenas, and the blocks in them. Everything here is used under the owner's lock."""

from __future__ import annotations

import bisect
import os
import secrets
import weakref
from typing import Any, Dict, List, Optional, Tuple

import numpy as np

from . import crash, memfd, wire

OWNED, SHARED, LIMBO, FREE = "owned", "shared", "limbo", "free"

_LARGE = 64 << 10


def _up(n: int, step: int) -> int:
    return -(-n // step) * step


class Block:
    """Bytes of one tensor. `capacity` is `bytes` rounded up to what the arena hands out. `refs` counts the leases and tickets on it, `held`
    says whether the owner still has it, and `hold` refers to the array that the owner has."""

    __slots__ = ("arena", "bytes", "generation", "held", "hold", "offset", "refs", "capacity", "state")

    def __init__(self, arena: "Arena", offset: int, size: int, capacity: int, generation: int) -> None:
        self.arena = arena
        self.offset = offset
        self.bytes = size
        self.capacity = capacity
        self.generation = generation
        self.refs = 0
        self.held = True
        self.hold: Optional["weakref.ref[np.ndarray[Any, Any]]"] = None
        self.state = OWNED


class Arena:
    """A sealed memfd that this process alone can write. One that is `alone` is for a single large block at a time."""

    def __init__(self, instance: bytes, number: int, size: int, alone: bool = False) -> None:
        self.id = secrets.randbits(64) or 1
        self.size = size
        self.alone = alone
        self.used = 0
        self.retired = False
        self.blocks: Dict[int, Block] = {}
        self.peers: Dict[int, bool] = {}
        """Connections that were told of it, and whether they have mapped it."""
        self._starts: List[int] = []
        """Offsets of the blocks, in order."""
        self._free: List[Tuple[int, int]] = [(0, size)]
        self._generation = 0
        self.fd = -1
        self.fd = memfd.create(f"tenure:{instance.hex()[:8]}:{number}", size)
        self.view = memfd.populate(self.fd, size)
        self.address: int = np.asarray(self.view).__array_interface__["data"][0]
        memfd.seal(self.fd)
        crash.at(1)

    def alloc(self, size: int) -> Optional[Block]:
        """A block of size bytes, or None where no free bytes are left for it. A large one begins on a page of its own."""
        step = memfd.PAGE if size >= _LARGE else wire.ALIGN
        capacity = _up(max(size, 1), step)
        for i, (start, length) in enumerate(self._free):
            at = _up(start, step)
            if at + capacity > start + length:
                continue
            pieces = [(start, at - start), (at + capacity, start + length - at - capacity)]
            self._free[i : i + 1] = [p for p in pieces if p[1]]
            self._generation += 1
            block = Block(self, at, size, capacity, self._generation & 0xFFFFFFFF)
            self.blocks[at] = block
            bisect.insort(self._starts, at)
            self.used += capacity
            crash.at(3)
            return block
        return None

    def at(self, address: int) -> Optional[Block]:
        """The block at an address of this process, if there is one."""
        i = bisect.bisect(self._starts, address - self.address)
        block = self.blocks[self._starts[i - 1]] if i else None
        return block if block is not None and address - self.address < block.offset + block.bytes else None

    def free(self, block: Block) -> None:
        """Makes the bytes of a block free."""
        block.state = FREE
        del self.blocks[block.offset]
        del self._starts[bisect.bisect_left(self._starts, block.offset)]
        self.used -= block.capacity
        start, length = block.offset, block.capacity
        i = bisect.bisect(self._free, (start, 0))
        if i < len(self._free) and self._free[i][0] == start + length:
            length += self._free.pop(i)[1]
        if i > 0 and sum(self._free[i - 1]) == start:
            i -= 1
            start, before = self._free.pop(i)
            length += before
        self._free.insert(i, (start, length))

    def __del__(self) -> None:
        if self.fd >= 0:
            os.close(self.fd)

    def end(self) -> None:
        """Releases the memory, as far as this process is concerned. No block of it may be left; code that has an array's base keeps the map."""
        self.view.release()
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1

    def forget(self) -> None:
        """In a forked child: the memory is the parent's."""
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1
