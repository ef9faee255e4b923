"""Two ends of a connection in one process: what is offered arrives, and every question has its answer."""

from __future__ import annotations

import threading
import time
from typing import Any, Callable

import numpy as np
import pytest
from conftest import Connect, Raw, eventually, joined

import tenure
from tenure import dtypes, wire

pytestmark = pytest.mark.usefixtures("nothing_is_left")

BIG = 5000
"""Elements of a tensor that is too large to be sent inline."""

TYPES = ["f2", "f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "c8", "c16", "?"]


@pytest.mark.parametrize("text", TYPES)
@pytest.mark.parametrize("size", [7, BIG * 8])
def test_element_types(connect: Connect, owner: tenure.Owner, text: str, size: int) -> None:
    peer, consumer = connect()
    want = (np.arange(size) % 2).astype(text)
    peer.offer(want, label=text)
    with consumer.receive(5) as got:
        assert got.label == text and got.array.dtype == want.dtype and got.dtype.numpy == want.dtype
        assert got.array.tobytes() == want.tobytes() and not got.array.flags.writeable
        assert got.raw.tobytes() == want.tobytes()
        assert (got.serial != 0) == (want.nbytes > 16384)


@pytest.mark.parametrize(
    "view",
    [
        lambda x: x,
        lambda x: x[1],
        lambda x: x[:, ::2],
        lambda x: x[::-1, ::-3],
        lambda x: x.T,
        lambda x: x[2:, 5],
        lambda x: x[1:1],
        lambda x: x[3, 7, 5, ...],
        lambda x: np.broadcast_to(x[0, 0], (9, 8)),
        lambda x: x.reshape(-1),
        lambda x: x.view("u1"),
        lambda x: x.view("f8")[1],
    ],
)
def test_views_are_offered_where_they_lie(connect: Connect, owner: tenure.Owner, view: Callable[[Any], Any]) -> None:
    peer, consumer = connect()
    x = owner.empty((4, 10, 8), "i4")
    x[...] = np.arange(320).reshape(4, 10, 8)
    want = np.array(view(x))
    peer.offer(view(x), copy=False)
    got = consumer.receive(5)
    assert got.shape == want.shape and np.array_equal(got.array, want)
    assert owner.state()["bytes"]["copied"] == 0
    if want.size:  # of no bytes there is nothing to protect
        with pytest.raises(ValueError):
            x[0] = 1


def test_others_are_copied_once(connect: Connect, owner: tenure.Owner) -> None:
    a, first = connect()
    b, second = connect()
    source = np.arange(BIG, dtype=">f8").reshape(50, 100).T
    with pytest.raises(tenure.Error, match="outside this owner's memory"):
        a.offer(source, copy=False)
    owner.offer(source, [a, b], label="both")
    assert owner.state()["bytes"]["copied"] == BIG * 8
    for consumer in (first, second):
        got = consumer.receive(5)
        assert np.array_equal(got.array, source) and got.label == "both"
        del got
    eventually(lambda: owner.state()["bytes"]["used"] == 0)
    mine = owner.copy(source)
    mine[0, 0] = 5
    a.offer(mine, copy=False)
    assert first.receive(5).array[0, 0] == 5 and source[0, 0] == 0


def test_many_threads(connect: Connect, owner: tenure.Owner) -> None:
    """Offers and receipts from several threads: nothing is lost, nothing comes twice."""
    peer, consumer = connect(leases=7)
    seen = []

    def give(first: int) -> None:
        for i in range(first, first + 200):
            x = owner.empty(BIG, "i8")
            x[:] = i
            peer.offer(x)

    def take() -> None:
        try:
            while True:
                with consumer.receive() as got:
                    assert got.array[0] == got.array[-1]
                    seen.append(int(got.array[0]))
        except tenure.EndedError:
            pass

    givers = [threading.Thread(target=give, args=(n,)) for n in (0, 1000, 2000)]
    takers = [threading.Thread(target=take) for _ in range(3)]
    for t in givers + takers:
        t.start()
    for t in givers:
        t.join()
    peer.close()
    for t in takers:
        t.join()
    assert sorted(seen) == sorted([*range(200), *range(1000, 1200), *range(2000, 2200)])
    eventually(lambda: owner.state()["bytes"]["used"] == 0)


def test_both_ways(connect: Connect, owner: tenure.Owner) -> None:
    peer, worker = connect()

    def work() -> None:
        for got in worker:
            answer = worker.owner.empty(got.shape, "f4")
            np.multiply(got.array, 2, out=answer)
            worker.offer(answer, label=got.label)

    t = threading.Thread(target=work)
    t.start()
    for i in range(50):
        x = owner.empty(BIG)
        x[:] = i
        peer.offer(x, label=f"frame {i}")
        back = peer.receive(5)
        assert back.label == f"frame {i}" and back.array[7] == 2 * i
    back.close()
    peer.close()
    t.join()


def test_credit_by_count(connect: Connect, owner: tenure.Owner) -> None:
    peer, consumer = connect(leases=2)
    x = owner.empty(BIG)
    peer.offer(x, label="1")
    peer.offer(x, label="2")
    with pytest.raises(tenure.CreditError, match="2 leases"):
        peer.offer(x, wait=False)
    with pytest.raises(tenure.Timeout):
        peer.offer(x, timeout=0.05)
    held = [consumer.receive(5), consumer.receive(5)]
    t = threading.Thread(target=lambda: peer.offer(x, label="3"))
    t.start()
    time.sleep(0.02)
    assert t.is_alive()
    held.pop().close()
    t.join(10)
    assert not t.is_alive() and consumer.receive(5).label == "3"
    with pytest.raises(tenure.CreditError):
        for _ in range(3):
            peer.offer(x, wait=False)
    peer.offer(np.arange(3))  # an inline one needs none


def test_credit_by_bytes(connect: Connect, owner: tenure.Owner) -> None:
    peer, consumer = connect(bytes=100_000)
    with pytest.raises(tenure.CreditError, match="want at most 100000"):
        peer.offer(owner.empty(25_001))
    peer.offer(owner.empty(15_000))
    with pytest.raises(tenure.CreditError):
        peer.offer(owner.empty(15_000), wait=False)
    peer.offer(owner.empty(10_000), wait=False)


def test_a_ticket_is_claimed_by_another_peer(connect: Connect, owner: tenure.Owner) -> None:
    peer, first = connect()
    _, second = connect()
    x = owner.empty(BIG)
    x[:] = 3
    peer.offer(x, label="passed on")
    got = first.receive(5)
    ticket = tenure.Ticket(str(got.ticket(5)))
    got.close()
    del x
    eventually(lambda: [e["state"] for e in owner.outstanding()] == ["ticket"])
    again = second.claim(ticket, 5)
    assert again.label == "passed on" and again.array[9] == 3
    assert [(e["state"], e["connection"]) for e in owner.outstanding()] == [("held", 2)]
    with pytest.raises(tenure.UnknownError):
        first.claim(ticket, 5)
    unused = again.ticket(5)
    second.cancel(unused)
    with pytest.raises(tenure.UnknownError):
        first.claim(unused, 5)
    again.close()
    assert eventually(lambda: owner.state()["bytes"]["used"] == 0)


def test_tickets_count_as_credit(connect: Connect, owner: tenure.Owner) -> None:
    peer, first = connect(leases=2)
    _, full = connect(leases=1)
    x = owner.empty(BIG)
    peer.offer(x)
    got = first.receive(5)
    ticket = got.ticket(5)
    with pytest.raises(tenure.CreditError):
        got.ticket(5)
    with pytest.raises(tenure.CreditError):
        peer.offer(x, wait=False)
    mine = first.claim(ticket, 5)  # one for the other
    assert mine.array.shape == (BIG,)
    mine.close()
    ticket = got.ticket(5)
    owner.publish("held", x)
    held = full.get("held", 5)
    with pytest.raises(tenure.CreditError):
        full.claim(ticket, 5)
    held.close()
    assert full.claim(ticket, 5).shape == (BIG,)


def test_tickets_end_with_their_minter(connect: Connect, owner: tenure.Owner) -> None:
    a, b = tenure.pair()
    doomed = Raw(owner)
    _, other = connect()
    x = owner.empty(BIG)
    t = threading.Thread(target=lambda: doomed.peer.offer(x))
    t.start()
    kind, arena = doomed.recv()
    doomed.send(wire.about(wire.MAPPED, arena.id))
    t.join()
    kind, (tensors, _) = doomed.recv()
    doomed.send(wire.ticket(5, tensors[0][0]))
    kind, ticket = doomed.recv()
    assert kind == wire.TICKETED
    doomed.close()
    eventually(lambda: not owner.outstanding())
    with pytest.raises(tenure.UnknownError):
        other.claim(ticket, 5)
    for s in (a, b):
        s.close()


def test_names(connect: Connect, owner: tenure.Owner) -> None:
    _, consumer = connect()
    w = owner.empty((100, 50))
    w[:] = 1.5
    owner.publish("embed.weight", w)
    owner.publish("small", [1, 2, 3])
    with pytest.raises(tenure.Error, match="again"):
        owner.publish("small", [4])
    with pytest.raises(ValueError):
        w[0, 0] = 2
    got = consumer.get("embed.weight", 5)
    assert got.label == "embed.weight" and got.array[3, 4] == 1.5
    assert consumer.get("small", 5).array.tolist() == [1, 2, 3]
    with pytest.raises(tenure.UnknownError, match="'nope'"):
        consumer.get("nope", 5)
    with pytest.raises(tenure.RefusedError) as refused:
        consumer.drop("small", 5)
    assert refused.value.code == wire.NO_PERMISSION
    owner.allow_drop = True
    consumer.drop("small", 5)
    with pytest.raises(tenure.UnknownError):
        consumer.drop("small", 5)
    assert owner.withdraw("embed.weight") and not owner.withdraw("embed.weight")
    del w
    assert got.array[3, 4] == 1.5 and owner.state()["bytes"]["limbo"] == 20000


def test_get_from_many_threads_while_one_receives(connect: Connect, owner: tenure.Owner) -> None:
    peer, consumer = connect()
    for i in range(8):
        owner.publish(str(i), owner.copy(np.full(BIG, i)))
    waiting = threading.Thread(target=lambda: consumer.receive(10))
    waiting.start()
    errors = []

    def ask(i: int) -> None:
        for _ in range(30):
            with consumer.get(str(i), 10) as got:
                if got.array[-1] != i:
                    errors.append(i)

    threads = [threading.Thread(target=ask, args=(i,)) for i in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    peer.offer([1])
    waiting.join()
    assert not errors


def test_state(connect: Connect, owner: tenure.Owner) -> None:
    peer, consumer = connect()
    x = owner.empty((640, 640), "u1")
    owner.publish("weights", np.zeros((100, 100)))
    peer.offer(x, label="frame 17")
    got = consumer.receive(5)
    state = consumer.state(5)
    assert state["version"] == 1 and state["pid"] == owner.state()["pid"] and len(state["instance"]) == 32
    (arena,) = state["arenas"]
    assert arena["bytes"] == 4 << 20 and arena["blocks"] == 2 and arena["peers"] == 1 and arena["retired"] is False
    assert {"arena": arena["id"], "offset": 0, "bytes": 409600, "state": "shared", "refs": 1} in state["blocks"]
    (lease,) = state["leases"]
    age = lease.pop("age_ms")
    assert 0 <= age < 60_000
    expected = {"pid": state["pid"], "command": state["command"], "connection": 1, "serial": got.serial, "arena": arena["id"], "offset": 0,
                "bytes": 409600, "label": "frame 17", "state": "held"}  # fmt: skip
    assert lease == expected
    assert state["names"] == [{"name": "weights", "dtype": "f64", "shape": [100, 100], "bytes": 80000}]
    assert state["bytes"]["limit"] == 1 << 30 and state["bytes"]["copied"] == 80000
    assert peer.state(5)["arenas"] == []  # the other way


def test_a_long_state_comes_in_parts(connect: Connect, owner: tenure.Owner) -> None:
    _, consumer = connect()
    for i in range(1500):
        owner.publish(f"{i:0250}", [i])
    assert [n["name"] for n in consumer.state(10)["names"]] == [f"{i:0250}" for i in range(1500)]


def test_types_that_numpy_lacks(connect: Connect, owner: tenure.Owner) -> None:
    ml = pytest.importorskip("ml_dtypes")
    peer, consumer = connect()
    for text in ("bfloat16", "float8_e4m3fn", "int4", "uint4", "int2", "float6_e2m3fn", "float4_e2m1fn"):
        of = np.dtype(getattr(ml, text))
        want = np.array([0, 1, -1, 1.5, -2, 3, 1] * 5000).astype(of)
        peer.offer(want)
        with consumer.receive(5) as got:
            assert got.array.dtype == of and np.array_equal(got.array.astype("f4"), want.astype("f4")), text


def test_types_without_ml_dtypes(raw: Callable[..., Raw], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(dtypes._known, (4, 16), dtypes._known[4, 16]._replace(numpy=None))
    wire._forms.clear()
    other = raw()
    of = dtypes.from_codes(4, 16)
    data = np.array([0x3F80, 0xC000], "u2").tobytes()
    other.send(wire.offer(0, 0, 0, 0, 4, 0, wire.form(of, True, 0, (2,), (1,)), b"", data))
    odd = dtypes.from_codes(0, 24)
    other.send(wire.offer(0, 0, 0, 0, 6, 0, wire.form(odd, True, 0, (2,), (1,)), b"", bytes(6)))
    got = other.peer.receive(5)
    with pytest.raises(tenure.DTypeError, match="bf16.*install ml_dtypes.*raw"):
        got.array
    assert got.raw.tolist() == [0x3F80, 0xC000] and got.dtype.name == "bf16"
    got = other.peer.receive(5)
    with pytest.raises(tenure.DTypeError, match="dlpack:0:24"):
        got.array
    assert got.raw.tobytes() == bytes(6)
    wire._forms.clear()


def test_limit_and_collect(connect: Connect) -> None:
    with tenure.Owner(limit=8 << 20) as small:
        with tenure.Owner() as other:
            peer, consumer = joined(small, other)
            x = small.empty(6 << 20, "u1")
            with pytest.raises(tenure.LimitError, match="limit of 8388608, of which arenas have 6291456"):
                small.empty(4 << 20, "u1")
            assert isinstance(pytest.raises(MemoryError, small.empty, 1 << 30).value, tenure.LimitError)
            peer.offer(x)
            got = consumer.receive(5)
            del x
            with pytest.raises(tenure.LimitError):
                small.empty(4 << 20, "u1")
            got.close()
            del got
            y = small.empty(8 << 20, "u1")  # the arena before had to go first
            assert small.state()["bytes"]["arenas"] == 8 << 20
            del y
            assert small.collect() == 8 << 20 and small.state()["arenas"] == []


def test_ends(connect: Connect, owner: tenure.Owner) -> None:
    """A closed peer lives on for what is out, in both directions."""
    peer, consumer = connect()
    x = owner.empty(BIG)
    x[:] = 4
    peer.offer(x)
    peer.offer(x)
    held = consumer.receive(5)
    peer.close()
    peer.close()
    with pytest.raises(tenure.ClosedError):
        peer.offer(x)
    last = consumer.receive(5)  # it was on its way
    with pytest.raises(tenure.EndedError):
        consumer.receive(5)
    with pytest.raises(tenure.EndedError):
        consumer.offer([1])
    with pytest.raises(tenure.EndedError):
        consumer.get("x")
    assert len(owner.outstanding()) == 2 and not peer.closed and held.array[0] == 4
    last.close()
    held.close()
    eventually(lambda: peer.closed and consumer.closed)
    assert not owner.outstanding()


def test_offers_behind_the_end_come_back(connect: Connect, owner: tenure.Owner) -> None:
    peer, consumer = connect()
    peer.offer(owner.empty(BIG), label="unread")
    consumer.close()
    eventually(lambda: peer.closed and consumer.closed)
    assert not owner.outstanding()
    with pytest.raises(tenure.ClosedError):
        consumer.receive(1)


def test_closing_wakes_who_waits(connect: Connect, owner: tenure.Owner) -> None:
    peer, consumer = connect()
    raised = []

    def wait() -> None:
        try:
            consumer.receive()
        except tenure.Error as e:
            raised.append(type(e))

    t = threading.Thread(target=wait)
    t.start()
    time.sleep(0.05)
    consumer.close()
    t.join(10)
    assert raised == [tenure.ClosedError]


def test_timeouts(connect: Connect) -> None:
    peer, consumer = connect()
    for seconds in (0, 0.01):
        with pytest.raises(tenure.Timeout, match="receive"):
            consumer.receive(seconds)
    peer.offer([1])
    assert consumer.receive(5).array.tolist() == [1]


def test_bad_arguments(connect: Connect, owner: tenure.Owner) -> None:
    peer, consumer = connect()
    for error, call in [
        (tenure.DTypeError, lambda: peer.offer(np.array(["text"]))),
        (tenure.DTypeError, lambda: owner.empty(3, "datetime64[s]")),
        (ValueError, lambda: peer.offer(np.zeros((1,) * 9))),
        (ValueError, lambda: peer.offer([1], label="l" * 57)),
        (ValueError, lambda: peer.offer([1], label="a\0b")),
        (ValueError, lambda: owner.empty(-1)),
        (ValueError, lambda: owner.publish("", [1])),
        (ValueError, lambda: consumer.get("n" * 256)),
        (ValueError, lambda: tenure.Ticket(b"short")),
        (ValueError, lambda: tenure.Owner(leases=0)),
        (ValueError, lambda: owner.offer([1], [consumer])),
    ]:
        with pytest.raises(error):
            call()


def test_shapes(owner: tenure.Owner) -> None:
    for shape, want in ((3, (3,)), (np.int64(3), (3,)), ((), ()), ([2, np.uint8(3)], (2, 3)), (np.array([4, 5]), (4, 5)), (range(2), (0, 1))):
        assert owner.empty(shape, "u1").shape == want  # type: ignore[arg-type]
    for bad in (2.5, "ab", (2, 2.0), None, np.array(3)):
        with pytest.raises(TypeError, match="empty: got shape .* want an integer or several"):
            owner.empty(bad)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="want sizes from 0 on"):
        owner.empty((2, -1))
    with pytest.raises(tenure.LimitError):
        owner.empty((1 << 40, 1 << 40))


def test_tickets_as_text() -> None:
    assert str(tenure.Ticket(bytes(15) + b"\x2a")) == "0" * 30 + "2a" and tenure.Ticket("0" * 30 + "2a") == bytes(15) + b"\x2a"
    for bad, why in (("0" * 31, "want 32 hexadecimal digits"), ("x" * 32, "want 32 hexadecimal digits"), ("00", "got 1 bytes, want 16"), (b"short", "got 5 bytes, want 16")):
        with pytest.raises(ValueError, match=f"^ticket: .*{why}"):
            tenure.Ticket(bad)


def test_as_an_argument_of_numpy(connect: Connect, owner: tenure.Owner) -> None:
    peer, consumer = connect()
    x = owner.empty(5000, "f4")
    x[:] = 2
    peer.offer(x)
    with consumer.receive(5) as got:
        assert np.shares_memory(np.asarray(got), got.array) and not np.shares_memory(np.array(got), got.array)
        assert np.asarray(got, dtype="f8").dtype == "f8" and np.add(got, 1)[7] == 3
        if int(np.__version__[0]) >= 2:
            assert np.shares_memory(np.array(got, copy=False), got.array)
            with pytest.raises(ValueError):
                np.array(got, dtype="f8", copy=False)


def test_leases_in_the_order_of_their_age(connect: Connect, owner: tenure.Owner) -> None:
    first, one = connect()
    second, two = connect()
    held = []
    for i, (peer, consumer) in enumerate([(second, two), (first, one), (second, two)]):
        peer.offer(owner.empty(5000), label=str(i))
        held.append(consumer.receive(5))
        time.sleep(0.003)  # ages are in milliseconds
    assert [lease["label"] for lease in owner.outstanding()] == ["0", "1", "2"]
    state = owner.state()
    assert state["bytes"]["used"] == 3 * 20_000 == sum(b["bytes"] for b in state["blocks"]) < state["arenas"][0]["used"]


def test_dlpack(connect: Connect, owner: tenure.Owner) -> None:
    if tuple(map(int, np.__version__.split(".")[:2])) < (2, 1):
        pytest.skip("this numpy does not export read-only arrays")
    peer, consumer = connect()
    x = owner.empty(BIG)
    x[:] = 2
    peer.offer(x)
    got = consumer.receive(5)
    other = np.from_dlpack(got.array)
    got.close()
    del got
    assert not other.flags.writeable and other[5] == 2 and len(owner.outstanding()) == 1
    del other
    eventually(lambda: not owner.outstanding())
