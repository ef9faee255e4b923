"""Peers that are stopped: they read nothing and answer nothing. Others must not notice."""

from __future__ import annotations

import gc
import threading
from typing import Any, Callable, List

import pytest
from conftest import Connect, Raw, eventually
from test_hostile import lend, offer_maker

import tenure
from tenure import wire

pytestmark = pytest.mark.usefixtures("nothing_is_left")

BIG = 5000
"""Elements: too many for a message."""


def offering_to(owner: tenure.Owner, x: Any, peers: List[tenure.Peer], **options: Any) -> Callable[[], tenure.Error]:
    """Offers on a thread; what is returned waits for its error."""
    errors: List[tenure.Error] = []

    def offer() -> None:
        try:
            owner.offer(x, peers, **options)
        except tenure.Error as e:
            errors.append(e)

    t = threading.Thread(target=offer)
    t.start()

    def result() -> tenure.Error:
        t.join(20)
        assert not t.is_alive() and len(errors) == 1
        return errors[0]

    return result


def test_one_that_maps_nothing_starves_nobody(connect: Connect, raw: Callable[..., Raw], owner: tenure.Owner) -> None:
    """The first of three peers never says MAPPED."""
    stopped = raw(owner)
    ends = [connect(), connect()]
    x = owner.zeros(BIG)
    result = offering_to(owner, x, [stopped.peer, *(peer for peer, _ in ends)], label="to all")
    for _, consumer in ends:
        with consumer.receive(10) as got:
            assert got.label == "to all"
    assert stopped.recv()[0] == wire.ARENA
    stopped.sock.close()  # its peer stays open: the end of file is what the offer meets
    error = result()
    assert isinstance(error, tenure.GoneError) and list(error.failed) == [stopped.peer] and isinstance(error.failed[stopped.peer], tenure.GoneError)


def test_one_that_is_full_starves_nobody(connect: Connect, raw: Callable[..., Raw], owner: tenure.Owner) -> None:
    stopped = raw(owner, 1)
    serial, _ = lend(stopped)
    peer, consumer = connect()
    x = owner.zeros(BIG)
    peer.offer(x)  # the arena is mapped: the next offer is made at once
    consumer.receive(10).release()
    result = offering_to(owner, x, [stopped.peer, peer], timeout=1)
    consumer.receive(10).release()
    error = result()
    assert isinstance(error, tenure.Timeout) and list(error.failed) == [stopped.peer]
    with pytest.raises(tenure.CreditError, match="1 leases") as caught:
        owner.offer(x, [stopped.peer, peer], wait=False)
    assert list(caught.value.failed) == [stopped.peer]
    consumer.receive(10).release()
    stopped.send(wire.release_one(serial))
    owner.offer(x, [stopped.peer, peer], timeout=10)
    consumer.receive(10).release()
    assert stopped.recv()[0] == wire.OFFER


def test_errors_keep_no_arrays(connect: Connect, raw: Callable[..., Raw], owner: tenure.Owner) -> None:
    """Without a collection of cycles."""
    stopped = raw(owner)
    for offer in (stopped.peer.offer, lambda x, **options: owner.offer(x, [stopped.peer], **options)):
        gc.collect()
        gc.disable()
        try:
            with pytest.raises(tenure.CreditError):
                offer(owner.zeros(BIG), wait=False)
            assert owner.state()["bytes"]["used"] == 0
        finally:
            gc.enable()


def test_an_offer_that_does_not_wait(raw: Callable[..., Raw], owner: tenure.Owner) -> None:
    """Neither for credit nor for an answer about the arena."""
    stopped = raw(owner)
    x = owner.zeros(BIG)
    for _ in range(2):
        with pytest.raises(tenure.CreditError, match="has not mapped the arena yet"):
            stopped.peer.offer(x, wait=False)
    kind, arena = stopped.recv()
    assert kind == wire.ARENA
    stopped.send(wire.about(wire.MAPPED, arena.id))
    stopped.peer.offer(x, wait=False)
    assert stopped.recv()[0] == wire.OFFER  # and no second ARENA before it


def test_a_refused_arena_is_asked_for_again(raw: Callable[..., Raw], owner: tenure.Owner) -> None:
    other = raw(owner)
    x = owner.zeros(BIG)
    for _ in range(2):
        result: List[Any] = []
        t = threading.Thread(target=lambda: result.append(other.peer.offer(x, timeout=10)))
        t.start()
        kind, arena = other.recv()
        assert kind == wire.ARENA
        other.send(wire.refused(wire.Refused(arena.id, 24, "no descriptors")))
        kind, (tensors, data) = other.recv()
        t.join()
        assert kind == wire.OFFER and tensors[0][0] == 0 and len(data) == 4 * BIG  # inline


def test_releases_while_the_owner_is_stopped_go_in_batches(raw: Callable[..., Raw]) -> None:
    n = 4000
    own = tenure.Owner(leases=n)
    stopped = raw(own)
    make = offer_maker(stopped)
    held = []
    for serial in range(1, n + 1):
        stopped.send(make(serial))
        held.append(stopped.peer.receive(10))
    held.clear()  # the socket takes some hundreds of them
    peer = stopped.peer
    eventually(lambda: len(peer._intake._unsent) + 500 * len(peer._out) > 0)
    waiting = len(peer._out)
    assert waiting <= 2
    serials: List[int] = []
    packets = 0
    alone = 0
    while len(serials) < n:
        kind, some = stopped.recv()
        if kind == wire.MAPPED:
            continue
        assert kind == wire.RELEASE
        packets += 1
        alone += len(some) == 1
        serials += some
    assert sorted(serials) == list(range(1, n + 1))
    assert packets - alone <= (n - alone) // 500 + 2
    stopped.send(wire.about(wire.RETIRE, make.arena.id))  # type: ignore[attr-defined]
    assert stopped.recv()[0] == wire.UNMAPPED
    own.close()


def test_the_end_of_an_arena_comes_behind_its_releases(raw: Callable[..., Raw]) -> None:
    n = 1500
    own = tenure.Owner(leases=n)
    stopped = raw(own)
    make = offer_maker(stopped)
    held = []
    for serial in range(1, n + 1):
        stopped.send(make(serial))
        held.append(stopped.peer.receive(10))
    held.clear()
    eventually(lambda: stopped.peer._intake._unsent or stopped.peer._out)
    stopped.send(wire.about(wire.RETIRE, make.arena.id))  # type: ignore[attr-defined]
    seen = 0
    while True:
        kind, some = stopped.recv()
        if kind == wire.UNMAPPED:
            break
        seen += len(some) if kind == wire.RELEASE else 0
    assert seen == n
    own.close()
