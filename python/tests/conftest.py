"""What the tests share: connected peers, a hand-driven other end, and a check that nothing is left behind."""

from __future__ import annotations

import gc
import os
import socket
import sys
import threading
import time
from pathlib import Path
from typing import Any, Callable, Iterator, List, Optional, Tuple

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import tenure  # noqa: E402
from tenure import crash, service, wire  # noqa: E402

crash.INVARIANTS = True


def eventually(what: Callable[[], Any], seconds: float = 20.0) -> Any:
    """What `what` says once that is true; fails if it never is."""
    end = time.monotonic() + seconds
    while True:
        got = what()
        if got:
            return got
        if time.monotonic() > end:
            pytest.fail(f"still {got!r} after {seconds} s")
        time.sleep(0.002)


def fds() -> List[str]:
    """What the descriptors of this process are, without the numbers of anonymous things."""
    found = []
    for fd in os.listdir("/proc/self/fd"):
        try:
            found.append(os.readlink(f"/proc/self/fd/{fd}").split(":[")[0])
        except OSError:
            pass  # the listing's own
    return sorted(found)


def maps() -> List[str]:
    """Maps of arenas in this process."""
    with open("/proc/self/maps") as f:
        return [line.split("/memfd:", 1)[1].strip() for line in f if "/memfd:tenure" in line]


def named() -> List[str]:
    """Named memory of ours; other programs of the machine may have theirs."""
    return sorted(n for n in os.listdir("/dev/shm") if "tenure" in n)


@pytest.fixture(scope="session", autouse=True)
def quick_collections() -> None:
    """Collecting what the tests made must not mean walking through all of pytest each time."""
    gc.collect()
    gc.freeze()


@pytest.fixture
def nothing_is_left() -> Iterator[None]:
    """After each test: descriptors, maps, threads and named memory are what they were before it."""
    service.the()
    gc.collect()
    before = fds(), maps(), threading.active_count(), named()
    yield
    left: List[Any] = []

    def clean() -> bool:
        gc.collect()
        left[:] = [fds(), maps(), threading.active_count(), named()]
        return left == list(before)

    try:
        eventually(clean, 5)
    except BaseException:
        assert left == list(before)


@pytest.fixture
def owner() -> Iterator[tenure.Owner]:
    with tenure.Owner() as made:
        yield made


Connect = Callable[..., Tuple[tenure.Peer, tenure.Peer]]


def joined(ours: tenure.Owner, theirs: tenure.Owner, writable: Optional[str] = None) -> Tuple[tenure.Peer, tenure.Peer]:
    """Both ends of a new connection: that of the first owner, and that of the second."""
    a, b = tenure.pair()
    got: List[tenure.Peer] = []
    t = threading.Thread(target=lambda: got.append(tenure.connect(b, theirs, writable=writable)))
    t.start()
    peer = tenure.connect(a, ours)
    t.join()
    return peer, got[0]


@pytest.fixture
def connect(owner: tenure.Owner) -> Iterator[Connect]:
    """Makes (peer of owner, the consumer's peer); options are those of the consumer's owner."""
    made: List[Any] = []

    def make(writable: Optional[str] = None, **options: Any) -> Tuple[tenure.Peer, tenure.Peer]:
        consumer = tenure.Owner(**options)
        ends = joined(owner, consumer, writable)
        made.extend([consumer, *ends])
        return ends

    yield make
    for thing in made:
        thing.close()


class Raw:
    """The other end, driven by hand."""

    def __init__(self, owner: Optional[tenure.Owner] = None, max_leases: int = 1024, max_size: int = 1 << 40, **options: Any) -> None:
        self.sock, other = tenure.pair()
        self.sock.settimeout(10)
        self.sock.send(wire.hello(wire.Hello(bytes(16), bytes(16), max_leases, max_size)))
        self.own = owner is None
        self.owner = owner if owner is not None else tenure.Owner(**options)
        self.peer = tenure.connect(other, self.owner)
        assert self.recv()[0] == wire.HELLO

    def send(self, packet: bytes, *files: int) -> None:
        if files:
            socket.send_fds(self.sock, [packet], list(files))
        else:
            self.sock.send(packet)

    def recv(self) -> Tuple[int, Any]:
        """Kind and body of the next packet."""
        data, files, _, _ = socket.recv_fds(self.sock, 65536, 4)
        for fd in files:
            os.close(fd)
        if not data:
            return 0, None
        view = memoryview(data)
        head = wire.header(view, len(view))
        if head[0] == wire.OFFER:
            return head[0], wire.offers(head[1], view, len(view))
        if head[0] == wire.RELEASE:
            return head[0], wire.releases(head[1], view, len(view))
        return head[0], wire.body(head, view, len(view))

    def close(self) -> None:
        self.sock.close()
        eventually(lambda: self.peer.closed)
        self.peer.close()
        if self.own:
            self.owner.close()


@pytest.fixture
def raw() -> Iterator[Callable[..., Raw]]:
    made: List[Raw] = []

    def make(*args: Any, **options: Any) -> Raw:
        made.append(Raw(*args, **options))
        return made[-1]

    yield make
    for r in made:
        r.close()
