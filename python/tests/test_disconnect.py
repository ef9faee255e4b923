"""Disconnected peers: what they hold is in quarantine until they release it or are dead, and is bounded."""

from __future__ import annotations

import os
from typing import Any, Callable, Dict

import numpy as np
import pytest
from conftest import Connect, Raw, eventually, joined
from test_hostile import lend
from test_process import Start, dir, line, start, tell  # noqa: F401: fixtures
from test_stopped import BIG

import tenure
from tenure import wire

pytestmark = pytest.mark.usefixtures("nothing_is_left")

MIB = 1 << 20

DESERTER = """
    import socket
    peer = tenure.attach("x", os.environ["DIR"])
    got = peer.receive(30)
    say("has", got.array[0])
    sys.stdin.readline()
    peer._sock.shutdown(socket.SHUT_WR)   # it says that it holds nothing, and reads on
    say("deserted")
    sys.stdin.readline()
    say("has", got.array[0])
    time.sleep(100)
"""


def sizes(owner: tenure.Owner) -> Dict[str, int]:
    """The bytes of the owner's state, after its counts were checked."""
    state = owner.state()
    return dict(state["bytes"])


def silent(owner: tenure.Owner, raw: Callable[..., Raw], shape: int = BIG) -> Raw:
    """A hand-driven end that has mapped an arena, released its tensor and does not answer any more."""
    other = raw(owner)
    serial, _ = lend(other)
    other.send(wire.release_one(serial))
    eventually(lambda: not owner.outstanding())
    return other


def test_quarantine_lasts_until_death(start: Start, owner: tenure.Owner, dir: str) -> None:  # noqa: F811
    with owner.listen("x", dir) as listener:
        child = start(DESERTER, DIR=dir)
        peer = listener.accept(30)
    peer.offer(owner.copy(np.full(100_000, 7, "u1")), timeout=30)
    assert line(child) == "has 7"
    peer.disconnect()
    with pytest.raises(tenure.ClosedError):
        peer.offer(owner.zeros(BIG))
    tell(child)
    assert line(child) == "deserted"
    eventually(lambda: peer._gone)
    for _ in range(50):  # whoever gets the bytes next would write them
        owner.copy(np.full(100_000, 9, "u1"))
    tell(child)
    assert line(child) == "has 7"
    (held,) = owner.outstanding()
    assert held["state"] == "quarantined" and held["pid"] == child.pid
    child.kill()
    eventually(lambda: not owner.outstanding() and sizes(owner)["used"] == 0)
    assert not owner._table.rows and not owner._table.accounts


def test_a_release_ends_quarantine(connect: Connect, owner: tenure.Owner) -> None:
    peer, consumer = connect()
    peer.offer(owner.copy(np.full(BIG, 3)))
    got = consumer.receive(10)
    peer.disconnect()
    peer.disconnect()
    assert [held["state"] for held in owner.outstanding()] == ["quarantined"]
    assert (got.array == 3).all()
    got.release()
    eventually(lambda: not owner.outstanding() and peer.closed)
    assert sizes(owner)["used"] == 0


def test_what_was_not_sent_is_taken_back(raw: Callable[..., Raw], owner: tenure.Owner) -> None:
    other = silent(owner, raw)
    x = owner.zeros(BIG)
    made = 0
    while not other.peer._out:  # until an offer waits for the peer to read
        other.peer._lending._try(owner._prepare(x, b"", False, "offer").what)
        made += 1
    alone = owner.empty(40 * MIB, "u1")  # another arena, of which the peer has not been told
    with pytest.raises(tenure.CreditError):
        other.peer.offer(alone, wait=False)
    assert len(owner._table.arenas) == 2 and all(a.peers for a in owner._table.arenas.values())
    other.peer.disconnect()
    held = owner.outstanding()
    assert len(held) == made - 1 and sizes(owner)["arenas"] > 40 * MIB
    del alone
    owner.collect()
    assert sizes(owner)["arenas"] < 40 * MIB  # nobody has it
    seen = 0
    while True:
        kind, _ = other.recv()
        assert kind in (wire.OFFER, wire.END)
        if kind == wire.END:
            break
        seen += 1
    assert seen == made - 1
    other.send(wire.with_bytes(wire.GET, 7, b"name"))  # a question behind END is not answered by an offer
    owner.publish("name", x)
    other.sock.close()
    eventually(lambda: not owner.outstanding())


def test_nothing_is_offered_behind_end(raw: Callable[..., Raw], owner: tenure.Owner) -> None:
    other = raw(owner)
    owner.publish("name", owner.zeros(BIG))
    other.peer.close()
    other.send(wire.with_bytes(wire.GET, 7, b"name"))
    assert other.recv()[0] == wire.END
    other.send(wire.with_bytes(wire.END, 0, b""))
    assert other.recv()[0] == 0  # the end of file


def test_disconnecting_makes_room(raw: Callable[..., Raw]) -> None:
    with tenure.Owner(limit=8 * MIB) as owner:
        other = silent(owner, raw)  # an arena of 4 MiB
        with pytest.raises(tenure.LimitError):
            owner.empty(6 * MIB, "u1")
        other.peer.disconnect()
        x = owner.empty(6 * MIB, "u1")
        now = sizes(owner)
        assert now["pinned"] == 4 * MIB and now["arenas"] == x.nbytes
        other.sock.close()
        eventually(lambda: sizes(owner)["pinned"] == 0)


def test_an_unmapped_answer_unpins(raw: Callable[..., Raw]) -> None:
    with tenure.Owner(limit=8 * MIB) as owner:
        other = silent(owner, raw)
        assert owner.collect() == 4 * MIB
        kind, retired = other.recv()
        assert kind == wire.RETIRE and sizes(owner)["arenas"] == 4 * MIB
        other.peer.disconnect()
        now = sizes(owner)
        assert now["pinned"] == 4 * MIB and now["arenas"] == 0
        other.send(wire.about(wire.UNMAPPED, retired))
        eventually(lambda: sizes(owner)["pinned"] == 0)


def test_pinned_arenas_are_bounded(raw: Callable[..., Raw]) -> None:
    """A process that is disconnected again and again gets no more than its own share. Both ends are of one process here."""
    with tenure.Owner(limit=16 * MIB, peer_leases=100, peer_bytes=6 * MIB) as owner:
        silent(owner, raw).peer.disconnect()
        owner.collect()
        assert sizes(owner)["pinned"] == 4 * MIB and sizes(owner)["arenas"] == 0
        second = silent(owner, raw)
        with pytest.raises(tenure.CreditError):  # 2 MiB are left to it
            second.peer.offer(owner.empty(3 * MIB, "u1"), wait=False)
        second.peer.disconnect()
        owner.collect()
        now = sizes(owner)
        assert now["pinned"] == 4 * MIB and now["arenas"] == 4 * MIB
        second.sock.close()
        eventually(lambda: sizes(owner)["arenas"] == 0)


def test_a_limit_for_each_process() -> None:
    with tenure.Owner(peer_leases=3, peer_bytes=MIB) as owner, tenure.Owner() as other:
        (a1, b1), (a2, b2) = joined(owner, other), joined(owner, other)
        x = owner.zeros(BIG)
        for peer in (a1, a2, a1):
            peer.offer(x, timeout=10)
        for peer in (a1, a2):
            with pytest.raises(tenure.CreditError):
                peer.offer(x, wait=False)
        a1.disconnect()
        with pytest.raises(tenure.CreditError):  # with two in quarantine
            a2.offer(x, wait=False)
        for _ in range(2):
            b1.receive(10).release()
        a2.offer(x, timeout=10)
        for _ in range(2):
            b2.receive(10).release()
        with pytest.raises(tenure.CreditError, match=f"at most {MIB}"):
            a2.offer(owner.zeros(MIB // 4 + 1), timeout=10)
        eventually(lambda: not owner.outstanding())
        owner.state()
        for peer in (a1, a2, b1, b2):
            peer.close()


@pytest.mark.parametrize("wrong", [{"peer_leases": 0}, {"peer_bytes": 0}, {"peer_leases": -1}])
def test_limits_that_are_none(wrong: Dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="at least 1 of each"):
        tenure.Owner(**wrong)


def test_a_forked_child_has_no_handle(start: Start, owner: tenure.Owner, dir: str) -> None:  # noqa: F811
    with owner.listen("x", dir) as listener:
        child = start(DESERTER, DIR=dir)
        peer = listener.accept(30)
    peer.offer(owner.copy(np.full(100_000, 7, "u1")), timeout=30)
    assert line(child) == "has 7"
    peer.disconnect()
    pid = os.fork()
    if pid == 0:
        left = [os.readlink(f"/proc/self/fd/{fd}") for fd in os.listdir("/proc/self/fd") if os.path.exists(f"/proc/self/fd/{fd}")]
        os._exit(sum("pidfd" in name for name in left))
    assert os.waitpid(pid, 0)[1] == 0
    assert owner.outstanding()[0]["state"] == "quarantined"
    child.kill()
    eventually(lambda: not owner.outstanding())
