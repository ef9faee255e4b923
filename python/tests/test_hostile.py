"""The other end breaks each rule once: its connection is poisoned, and nobody else notices."""

from __future__ import annotations

import os
import random
import resource
import socket
import struct
import threading
import time
from typing import Any, Callable, List, Tuple

import pytest
from conftest import Connect, Raw, eventually, maps
from test_lifetime import offer_maker

import tenure
from tenure import dtypes, memfd, wire

pytestmark = pytest.mark.usefixtures("nothing_is_left")

BIG = 5000


def poisoned(other: Raw, match: str = ".") -> None:
    """The connection says END and why, is shut for writing, and kept until this side hangs up."""
    with pytest.raises(tenure.ProtocolError, match=match):
        other.peer.receive(5)
    while True:
        kind, _ = other.recv()
        if kind in (0, wire.END):
            break
    assert kind == wire.END
    if not other.peer._intake.held:
        assert other.recv()[0] == 0
    assert not other.peer.closed
    with pytest.raises(tenure.ProtocolError):
        other.peer.offer([1])


def lend(other: Raw) -> Tuple[int, int]:
    """Has one tensor of other.owner leased to the hand-driven end: its serial and arena."""
    x = other.owner.empty(BIG)
    t = threading.Thread(target=lambda: other.peer.offer(x))
    t.start()
    kind, arena = other.recv()
    assert kind == wire.ARENA
    other.send(wire.about(wire.MAPPED, arena.id))
    t.join()
    kind, (tensors, _) = other.recv()
    assert kind == wire.OFFER
    return tensors[0][0], arena.id


F = wire.form(dtypes.from_codes(1, 8), False, 0, (64,), (1,))


@pytest.mark.parametrize(
    "what,packets",
    [
        ("kind 77", lambda o: [bytes([77]) + bytes(7)]),
        ("bytes", lambda o: [b""]),
        ("bytes", lambda o: [b"\1"]),
        ("hello: got a second", lambda o: [wire.hello(wire.Hello(bytes(16), bytes(16), 1, 1))]),
        ("0 descriptors", lambda o: [wire.arena(wire.Arena(3, 4096))]),
        ("want one that was announced", lambda o: [wire.about(wire.MAPPED, 3)]),
        ("want one that was announced", lambda o: [wire.refused(wire.Refused(3, 0, "no"))]),
        ("want one that was announced", lambda o: [wire.about(wire.UNMAPPED, 3)]),
        ("want one that is mapped", lambda o: [wire.about(wire.RETIRE, 3)]),
        ("want one that is mapped", lambda o: [wire.offer(0, 1, 3, 0, 64, 1, F, b"")]),
        ("serial 1, want", lambda o: [wire.release([1])]),
        ("serial 0, want", lambda o: [wire.release([0])]),
        ("question 5", lambda o: [wire.with_bytes(wire.TICKETED, 5, bytes(16))]),
        ("question 5", lambda o: [wire.with_bytes(wire.TEXT, 5, b"{}")]),
        ("question 5", lambda o: [wire.no(5, wire.No(1, ""))]),
        ("question 5", lambda o: [wire.offer(5, 0, 0, 0, 64, 0, wire.form(dtypes.from_codes(1, 8), True, 0, (64,), (1,)), b"", bytes(64))]),
    ],
)
def test_one_bad_packet(raw: Callable[..., Raw], what: str, packets: Callable[[Raw], List[bytes]]) -> None:
    other = raw()
    for p in packets(other):
        other.send(p)
    poisoned(other, what)


def test_packets_with_descriptors(raw: Callable[..., Raw]) -> None:
    for packet, files in [(wire.with_bytes(wire.LIST, 1, b""), 1), (wire.arena(wire.Arena(3, 4096)), 2), (wire.arena(wire.Arena(3, 4096)), 4), (b"", 1)]:
        other = raw()
        other.send(packet, *[other.sock.fileno()] * files)
        poisoned(other)
        other.close()


def test_offers_that_break_rules(raw: Callable[..., Raw]) -> None:
    for bad, match in [
        (lambda make: make(2, offset=1 << 20), "within its arena"),
        (lambda make: make(2, offset=(1 << 20) - 64, length=128), "within its arena"),
        (lambda make: make(2, offset=1 << 63, length=1 << 63), "within its arena"),
        (lambda make: make(1), "serial 1 again"),
        (lambda make: wire.offer(0, 3, make.arena.id + 1, 0, 64, 1, F, b""), "want one that is mapped"),
        (lambda make: wire.arena(wire.Arena(make.arena.id, 4096)), "again"),
    ]:
        other = raw()
        make = offer_maker(other)
        other.send(make(1))
        got = other.peer.receive(5)
        if match == "again":
            other.send(bad(make), make.arena.fd)  # type: ignore[attr-defined]
        else:
            other.send(bad(make))
        poisoned(other, match)
        assert got.array.tolist() == [0] * 64  # what was received stays
        got.close()
        other.close()


def test_more_offers_than_credits(raw: Callable[..., Raw]) -> None:
    own = tenure.Owner(leases=2)
    other = raw(own)
    make = offer_maker(other)
    for serial in (1, 2, 3):
        other.send(make(serial))
    assert other.peer.receive(5).serial == 1
    other.peer.receive(5)
    time.sleep(0.05)
    held = []
    with pytest.raises(tenure.ProtocolError, match="want at most 2"):
        while True:
            for serial in range(4, 8):
                other.send(make(serial))
            held.append(other.peer.receive(5))
    own.close()


def test_poison_keeps_the_row_until_the_hang_up(raw: Callable[..., Raw], connect: Connect, owner: tenure.Owner) -> None:
    """Who broke the rules may still be reading: its lease ends when it is gone."""
    other = raw(owner)
    lend(other)
    peer, consumer = connect()
    other.send(b"nonsense")
    poisoned(other)
    assert [e["state"] for e in owner.outstanding()] == ["held"]
    peer.offer([1, 2])  # the others go on
    assert consumer.receive(5).array.tolist() == [1, 2]
    other.sock.close()
    eventually(lambda: not owner.outstanding())


def test_unmapped_while_leased(raw: Callable[..., Raw]) -> None:
    other = raw()
    _, arena = lend(other)
    other.send(wire.about(wire.UNMAPPED, arena))
    poisoned(other, "unmapped")


def test_two_ends(raw: Callable[..., Raw]) -> None:
    other = raw()
    lend(other)
    other.send(wire.with_bytes(wire.END, 0, b""))
    assert other.recv()[0] == wire.END
    assert other.recv()[0] == 0  # this end holds nothing
    with pytest.raises(tenure.EndedError):
        other.peer.receive(5)
    other.send(wire.with_bytes(wire.END, 0, b""))
    eventually(lambda: other.peer._failure and other.peer._failure[0] is tenure.ProtocolError)


def test_mapped_twice_and_refused_after(raw: Callable[..., Raw]) -> None:
    for packet in (lambda a: wire.about(wire.MAPPED, a), lambda a: wire.refused(wire.Refused(a, 0, "late"))):
        other = raw()
        _, arena = lend(other)
        other.send(packet(arena))
        poisoned(other)
        other.close()


def test_released_twice_is_ignored(raw: Callable[..., Raw]) -> None:
    other = raw()
    serial, _ = lend(other)
    other.send(wire.release([serial, serial]))
    other.send(wire.release_one(serial))
    eventually(lambda: not other.owner.outstanding())
    other.peer.offer([1])
    assert other.recv()[0] == wire.OFFER


def test_a_refused_arena(raw: Callable[..., Raw]) -> None:
    """What is small goes inline, what is large is an error of that offer, and the next one tries again."""
    other = raw()
    own = other.owner
    small, large = own.empty((10, 10), "i4"), own.empty(BIG * 10)
    small[:] = 6
    own.publish("large", large)

    def offer(x: Any) -> "list[BaseException]":
        failed: List[BaseException] = []

        def run() -> None:
            try:
                other.peer.offer(x)
            except tenure.Error as e:
                failed.append(e)

        t = threading.Thread(target=run)
        t.start()
        kind, arena = other.recv()
        assert kind == wire.ARENA
        other.send(wire.refused(wire.Refused(arena.id, 24, "no descriptor left")))
        t.join(10)
        return failed

    assert offer(small.T) == []
    kind, (tensors, data) = other.recv()
    assert kind == wire.OFFER and tensors[0][4].shape == (10, 10) and data == struct.pack("<i", 6) * 100
    (error,) = offer(large)
    assert "no descriptor left" in str(error)
    other.send(wire.with_bytes(wire.GET, 9, b"large"))
    kind, arena = other.recv()
    assert kind == wire.ARENA
    other.send(wire.refused(wire.Refused(arena.id, 24, "again not")))
    kind, no = other.recv()
    assert kind == wire.NO and no.code == wire.NO_MEMORY
    other.send(wire.with_bytes(wire.GET, 10, b"large"))
    kind, arena = other.recv()
    other.send(wire.about(wire.MAPPED, arena.id))
    assert other.recv()[0] == wire.OFFER


def test_arenas_that_cannot_be_trusted(raw: Callable[..., Raw], tmp_path: Any) -> None:
    """Not sealed, of another size, of another kind, no memfd: refused, with a reason, and the connection lives."""
    other = raw()

    def sealed(size: int = 8192) -> int:
        fd = memfd.create("t", size)
        os.posix_fallocate(fd, 0, size)
        memfd.seal(fd)
        return fd

    def empty() -> int:
        fd = memfd.create("t", 8192)
        os.pwrite(fd, b"x", 0)
        memfd.seal(fd)
        return fd

    def half_sealed() -> int:
        import fcntl

        fd = memfd.create("t", 8192)
        fcntl.fcntl(fd, 1033, 2 | 4)  # it may still be written by others
        return fd

    def plain() -> int:
        fd = os.open(tmp_path / "f", os.O_RDWR | os.O_CREAT)
        os.ftruncate(fd, 8192)
        return fd

    for make, kind, reason in [
        (lambda: memfd.create("t", 8192), 0, "seals"),
        (half_sealed, 0, "seals"),
        (lambda: sealed(4096), 0, "4096 bytes, want 8192"),
        (lambda: sealed(16384), 0, "16384 bytes, want 8192"),
        (sealed, 3, "kind 3"),
        (empty, 0, "4096 bytes are there, want all 8192"),
        (plain, 0, "seals"),
        (lambda: os.open("/dev/zero", os.O_RDONLY), 0, "want 8192"),
    ]:
        fd = make()
        other.send(wire.arena(wire.Arena(77, 8192, kind)), fd)
        os.close(fd)
        got, refused = other.recv()
        assert got == wire.REFUSED and refused.id == 77 and reason in refused.reason
    fd = sealed()
    other.send(wire.arena(wire.Arena(77, 8192)), fd)
    os.close(fd)
    assert other.recv() == (wire.MAPPED, 77)


def test_no_descriptor_left(raw: Callable[..., Raw]) -> None:
    """EMFILE: the arena is refused with that errno, and taken when descriptors are there again."""
    other = raw()
    other.peer.offer([1])  # everything that is needed once is there
    other.recv()
    fd = memfd.create("t", 8192)
    os.posix_fallocate(fd, 0, 8192)
    memfd.seal(fd)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (64, hard))
    plugs: List[int] = []
    try:
        try:
            while True:
                plugs.append(os.dup(fd))
        except OSError:
            pass
        other.send(wire.arena(wire.Arena(77, 8192)), fd)
        data = other.sock.recv(65536)
        view = memoryview(data)
        refused: Any = wire.body(wire.header(view, len(view)), view, len(view))
        assert refused[:2] == (77, 24)
    finally:
        for plug in plugs:
            os.close(plug)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    other.send(wire.arena(wire.Arena(77, 8192)), fd)
    os.close(fd)
    assert other.recv() == (wire.MAPPED, 77)


def test_questions_without_reading_answers(raw: Callable[..., Raw], connect: Connect, owner: tenure.Owner) -> None:
    """Who asks and asks and reads nothing does not fill this process, and the others are served."""
    other = raw(owner)
    other.sock.settimeout(0.2)
    sent = 0
    try:
        while sent < 200_000:
            other.send(wire.with_bytes(wire.GET, sent + 1, b"nothing"))
            sent += 1
    except socket.timeout:
        pass
    assert sent < 100_000 and len(other.peer._out) < 5000
    peer, consumer = connect()
    peer.offer([5])
    assert consumer.receive(5).array.tolist() == [5]
    other.sock.settimeout(10)
    for _ in range(sent):
        assert other.recv()[0] == wire.NO


def test_inline_flood(raw: Callable[..., Raw]) -> None:
    """Inline tensors need no credit, so what is not fetched is bounded by not reading on."""
    other = raw()
    packet = wire.offer(0, 0, 0, 0, 60000, 0, wire.form(dtypes.from_codes(1, 8), True, 0, (60000,), (1,)), b"", bytes(60000))
    other.sock.settimeout(0.3)
    sent = 0
    try:
        while sent < 5000:
            other.send(packet)
            sent += 1
    except socket.timeout:
        pass
    assert sent < 1000
    for _ in range(sent):
        assert other.peer.receive(5).array.shape == (60000,)


def test_the_parser_behind_a_socket(connect: Connect, owner: tenure.Owner) -> None:
    """Random packets, with a fixed seed, into many connections of one owner; another peer of it works all the time."""
    random.seed(4)
    peer, consumer = connect()
    owner.publish("w", [1, 2])
    seeds = [
        wire.with_bytes(wire.GET, 1, b"w"), wire.with_bytes(wire.LIST, 1, b""), wire.release([1]), wire.ticket(1, 1), wire.with_bytes(wire.END, 0, b""),
        wire.with_bytes(wire.CLAIM, 1, bytes(16)), wire.with_bytes(wire.DROP, 1, b"w"), wire.about(wire.RETIRE, 1), wire.arena(wire.Arena(1, 4096)),
        wire.offer(0, 0, 0, 0, 64, 0, wire.form(dtypes.from_codes(1, 8), True, 0, (64,), (1,)), b"", bytes(64)),
    ]  # fmt: skip
    for i in range(60):
        other = Raw(owner)
        for _ in range(20):
            packet = bytearray(random.choice(seeds))
            if random.random() < 0.5:
                packet[random.randrange(len(packet))] = random.randrange(256)
            try:
                other.sock.send(packet)
            except OSError:
                break
        if i % 10 == 0:
            peer.offer([i])
            assert consumer.receive(5).array.tolist() == [i]
            assert consumer.get("w", 5).array.tolist() == [1, 2]
        other.close()
    owner.state()


def test_half_a_handshake(tmp_path: Any) -> None:
    """Who connects and says nothing, or nonsense, holds up nobody."""
    with tenure.Owner() as own, own.listen("x", str(tmp_path / "d")) as listener:
        silent = [socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) for _ in range(5)]
        for s in silent:
            s.connect(listener.path)
        silent[0].send(b"nonsense")
        silent[1].send(wire.hello(wire.Hello(bytes(16), bytes(16), 0, 0)))
        silent[2].close()
        got: List[tenure.Peer] = []
        t = threading.Thread(target=lambda: got.append(listener.accept(10)))
        t.start()
        with tenure.attach("x", str(tmp_path / "d")) as peer:
            t.join(10)
            got[0].offer([1])
            assert peer.receive(5).array.tolist() == [1]
            got[0].close()
            eventually(lambda: peer.closed)
        for s in silent:
            s.close()
    a, b = tenure.pair()
    start = time.monotonic()
    with pytest.raises(tenure.Timeout, match="HELLO"):
        tenure.connect(a, timeout=0.05)
    assert time.monotonic() - start < 4
    b.close()
    a, b = tenure.pair()
    b.send(bytes(8))
    with pytest.raises(tenure.ProtocolError):
        tenure.connect(a)
    b.close()
    a, b = tenure.pair()
    b.close()
    with pytest.raises(tenure.GoneError):
        tenure.connect(a)
    one, two = socket.socketpair()
    with pytest.raises(ValueError, match="SOCK_SEQPACKET"):
        tenure.connect(one)
    two.close()


def test_a_thousand_connections(raw: Callable[..., Raw], connect: Connect, owner: tenure.Owner) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < 2500:
        pytest.skip(f"only {hard} descriptors")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 2500), hard))
    crowd = [Raw(owner) for _ in range(1000)]
    peer, consumer = connect()
    for i in range(20):
        peer.offer([i])
        assert consumer.receive(5).array.tolist() == [i]
    for other in crowd:
        other.sock.close()
    eventually(lambda: len(owner._rows()) == 1)
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_maps_are_read_only(connect: Connect, owner: tenure.Owner) -> None:
    """No consumer has a writable shared map, whatever it asks for."""
    for writable in (None, "copy", "cow"):
        peer, consumer = connect(writable)
        peer.offer(owner.empty(BIG))
        consumer.receive(5)
    with open("/proc/self/maps") as f:
        modes = sorted(line.split()[1] for line in f if "/memfd:tenure" in line)
    assert modes == ["r--s", "r--s", "r--s", "rw-p", "rw-s"] and len(maps()) == 5


def test_questions_wait_for_their_turn(raw: Callable[..., Raw]) -> None:
    """An end that has 64 questions open asks no more until one is answered: the other would take it for a flood."""
    other = raw()
    states: List[Any] = []
    threads = [threading.Thread(target=lambda: states.append(other.peer.state(20))) for _ in range(100)]
    for t in threads:
        t.start()
    open_, most, quiet = [], 0, 0
    other.sock.settimeout(0.3)
    while len(states) < 100 and quiet < 20:
        try:
            data = other.sock.recv(65536)
            assert data[0] == wire.LIST
            open_.append(struct.unpack_from("<I", data, 4)[0])
            most = max(most, len(open_))
            quiet = 0
        except socket.timeout:  # all that may be asked is asked
            quiet += 1
            for request in open_:
                other.send(wire.with_bytes(wire.TEXT, request, b"{}"))
            open_ = []
    for t in threads:
        t.join()
    assert most == 64
    assert len(states) == 100
