"""A lease goes back exactly when the last array, view or memoryview over it is gone, in any order."""

from __future__ import annotations

import gc
import random
import socket
import threading
from typing import Any, Callable, List

import numpy as np
import pytest
from conftest import Connect, Raw, eventually, joined, maps

import tenure
from tenure import arena as arenas
from tenure import dtypes, wire

pytestmark = pytest.mark.usefixtures("nothing_is_left")

BIG = 5000


def out(owner: tenure.Owner) -> int:
    """Leases that are out."""
    return len(owner.outstanding())


VIEWS: List[Callable[[Any], Any]] = [
    lambda a: a,
    lambda a: a[3:7],
    lambda a: a[::-2],
    lambda a: a.reshape(50, 100).T[5],
    lambda a: a.view("u1")[9:],
    lambda a: a.view(np.recarray),
    lambda a: memoryview(a),
    lambda a: memoryview(a)[5:9],
    lambda a: np.frombuffer(memoryview(a), "u2"),
    lambda a: np.asarray(memoryview(a)[1:]),
    lambda a: np.lib.stride_tricks.as_strided(a, (3,), (8,)),
    lambda a: np.broadcast_to(a, (4, BIG)),
    lambda a: np.nditer(a),
    lambda a: a.flat,
    lambda a: a.ctypes,
    lambda a: np.array(a, copy=False) if int(np.__version__[0]) < 2 else np.array(a, copy=None),
    lambda a: (a[1:], a[2:][3:]),
]


@pytest.mark.parametrize("view", VIEWS)
def test_every_view_keeps_the_lease(connect: Connect, owner: tenure.Owner, view: Callable[[Any], Any]) -> None:
    peer, consumer = connect()
    x = owner.empty(BIG)
    x[:] = 1
    peer.offer(x)
    got = consumer.receive(5)
    kept = view(got.array)
    got.close()
    del got
    gc.collect()
    assert out(owner) == 1
    del kept
    assert out(owner) == 0  # at once: no collection is needed


def test_the_released_block_is_reused_and_the_held_one_is_not(connect: Connect, owner: tenure.Owner) -> None:
    peer, consumer = connect()
    places = set()
    first = None
    for i in range(20):
        x = owner.empty(BIG, "i8")
        x[:] = i
        places.add(x.ctypes.data)
        peer.offer(x)
        del x
        got = consumer.receive(5)
        if i == 0:
            first = got.array[10:20]
        got.close()
        del got
        out(owner)
    assert len(places) == 2 and first is not None and first.tolist() == [0] * 10


def test_random_order(connect: Connect, owner: tenure.Owner) -> None:
    """Stamped blocks, held and dropped at random on both sides: no one ever sees a stamp change."""
    random.seed(7)
    peer, consumer = connect(leases=16)
    held: List[Any] = []
    for i in range(600):
        x = owner.empty(random.choice([5000, 9000, 20000]), "i8")
        x[:] = i
        try:
            peer.offer(x, label=str(i), wait=False)
        except tenure.CreditError:  # or a release is still on its way
            if held:
                held.pop(random.randrange(len(held)))
            continue
        del x
        got = consumer.receive(5)
        held.append((i, random.choice(VIEWS[:3])(got.array)))
        del got
        while len(held) > random.randrange(1, 16):
            held.pop(random.randrange(len(held)))
        assert all((v == n).all() for n, v in held)
    held.clear()
    x = None  # it is there still if the last offer found no credit
    assert out(owner) == 0 and owner.state()["bytes"]["used"] == 0


def test_cycles_are_collected(connect: Connect, owner: tenure.Owner) -> None:
    peer, consumer = connect()
    peer.offer(owner.empty(BIG))

    class Node:
        pass

    node = Node()
    node.me, node.array = node, consumer.receive(5).array  # type: ignore[attr-defined]
    del node
    assert eventually(lambda: gc.collect() is not None and out(owner) == 0)


def test_dropped_in_other_threads(connect: Connect, owner: tenure.Owner) -> None:
    peer, consumer = connect(leases=64)
    for i in range(64):
        peer.offer(owner.empty(BIG))
    arrays = [consumer.receive(5).array for _ in range(64)]
    threads = [threading.Thread(target=lambda n=n: arrays.__setitem__(slice(n, n + 8), [None] * 8)) for n in range(0, 64, 8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    eventually(lambda: not owner.outstanding())


def test_a_full_socket_loses_no_release(raw: Callable[..., Raw]) -> None:
    """An owner that reads nothing for a while gets every release in the end."""
    other = raw(leases=20_000)
    block = offer_maker(other)
    held = []
    for serial in range(1, 5001):
        other.send(block(serial))
        held.append(other.peer.receive(5))
    while held:
        held.pop().close()
    got: List[int] = []
    while len(got) < 5000:
        kind, serials = other.recv()
        assert kind == wire.RELEASE
        got.extend(serials)
    assert sorted(got) == list(range(1, 5001))


def offer_maker(other: Raw, size: int = 1 << 20) -> Callable[..., bytes]:
    """Announces an arena; returns what makes an OFFER of its first bytes."""
    a = arenas.Arena(bytes(16), 1, size)
    other.send(wire.arena(wire.Arena(a.id, size)), a.fd)
    assert other.recv() == (wire.MAPPED, a.id)
    of = wire.form(dtypes.from_codes(1, 8), False, 0, (64,), (1,))

    def make(serial: int, offset: int = 0, label: bytes = b"", length: int = 64) -> bytes:
        return wire.offer(0, serial, a.id, offset, length, 1, of, label)

    make.arena = a  # type: ignore[attr-defined]
    a.view.release()
    return make


def test_retire_waits_for_the_last_view(raw: Callable[..., Raw]) -> None:
    other = raw()
    offer = offer_maker(other)
    before = len(maps())
    other.send(offer(1))
    view = other.peer.receive(5).array[3:]
    other.send(wire.about(wire.RETIRE, offer.arena.id))  # type: ignore[attr-defined]
    other.sock.settimeout(0.1)
    with pytest.raises(socket.timeout):
        other.recv()
    other.sock.settimeout(10)
    assert len(maps()) == before and view.tolist() == [0] * 61
    del view
    assert other.recv() == (wire.RELEASE, (1,))
    assert other.recv() == (wire.UNMAPPED, offer.arena.id)  # type: ignore[attr-defined]
    eventually(lambda: len(maps()) == before - 1)


def test_the_base_of_an_array_is_no_way_to_a_crash(connect: Connect, owner: tenure.Owner) -> None:
    """Who digs out what is under an array keeps the map, though not the lease."""
    peer, consumer = connect()
    peer.offer(owner.empty(BIG))
    got = consumer.receive(5)
    base = got.array.base.base
    got.close()
    del got
    eventually(lambda: not owner.outstanding())
    owner.collect()
    peer.close()
    eventually(lambda: consumer.closed)
    assert bytes(base[:8]) is not None


def test_owned_blocks(connect: Connect, owner: tenure.Owner) -> None:
    """The owner's own hold: until the last view of what empty returned is gone."""
    peer, consumer = connect()
    x = owner.empty((10, 500))
    view = memoryview(x[5:])
    del x
    assert [b["state"] for b in owner.state()["blocks"]] == ["owned"]
    y = np.asarray(view)
    peer.offer(y)
    assert [b["state"] for b in owner.state()["blocks"]] == ["shared"] or owner.state()["bytes"]["copied"]
    got = consumer.receive(5)
    del y, view
    states = [b["state"] for b in owner.state()["blocks"]]
    assert states == ["limbo"]
    got.close()
    del got
    assert out(owner) == 0 and owner.state()["blocks"] == []


def test_an_owner_without_references(connect: Connect) -> None:
    """Arrays stay valid when their owner object is gone, and the memory goes with them."""
    x = tenure.Owner().empty(BIG)
    gc.collect()
    x[:] = 3
    assert x.sum() == 3 * BIG


def test_closed_owner(connect: Connect) -> None:
    own, other = tenure.Owner(), tenure.Owner()
    peer, consumer = joined(own, other)
    x = own.empty(BIG)
    x[:] = 8
    peer.offer(x)
    own.close()
    with pytest.raises(tenure.ClosedError):
        own.empty(3)
    got = consumer.receive(5)
    assert got.array[0] == 8 and x[0] == 8
    del x
    got.close()
    del got
    eventually(lambda: peer.closed and consumer.closed)
    other.close()


def test_who_has_ended_may_still_hold(raw: Callable[..., Raw]) -> None:
    """END, the end of file of an owner that holds nothing, then the release of what was still held, and only then ours."""
    other = raw()
    offer = offer_maker(other)
    other.send(offer(1))
    view = other.peer.receive(5).array[3:]
    other.send(wire.with_bytes(wire.END, 0, b""))
    assert other.recv()[0] == wire.END
    other.sock.shutdown(socket.SHUT_WR)
    other.sock.settimeout(0.1)
    with pytest.raises(socket.timeout):
        other.recv()
    other.sock.settimeout(10)
    assert not other.peer.closed and view.tolist() == [0] * 61
    del view
    assert other.recv() == (wire.RELEASE, (1,))
    assert other.recv()[0] == 0
    eventually(lambda: other.peer.closed)
