"""Real processes: named sockets, children, forks, and deaths."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import os
import signal
import socket
import subprocess
import sys
import textwrap
import threading
import time
import traceback
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, Optional

import numpy as np
import pytest
from conftest import Connect, Raw, eventually, joined
from test_lifetime import offer_maker
from test_names import env

import tenure

pytestmark = pytest.mark.usefixtures("nothing_is_left")

BIG = 5000

Start = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def start() -> Iterator[Start]:
    """Runs a piece of Python in a process of its own; its lines are read from stdout."""
    made: List["subprocess.Popen[str]"] = []

    def run(code: str, **more: str) -> "subprocess.Popen[str]":
        text = "import os, signal, sys, time\nimport numpy as np\nimport tenure\ndef say(*a): print(*a, flush=True)\n" + textwrap.dedent(code)
        made.append(subprocess.Popen([sys.executable, "-c", text], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=env(**more)))
        return made[-1]

    yield run
    for child in made:
        child.kill()
        child.wait()
        for f in (child.stdin, child.stdout):
            if f is not None:
                with contextlib.suppress(BrokenPipeError):  # what it was not alive to read
                    f.close()


def line(child: "subprocess.Popen[str]") -> str:
    assert child.stdout is not None
    return child.stdout.readline().strip()


def tell(child: "subprocess.Popen[str]", text: str = "") -> None:
    assert child.stdin is not None
    child.stdin.write(text + "\n")
    child.stdin.flush()


@pytest.fixture
def dir(tmp_path: Path) -> str:
    return str(tmp_path / "d")


WORKER = """
    for got in tenure.attach("x", os.environ["DIR"]):
        say(got.label, got.array.shape, int(got.array.sum()))
    say("ended")
"""


def test_two_workers(start: Start, owner: tenure.Owner, dir: str) -> None:
    with owner.listen("x", dir) as listener:
        workers = [start(WORKER, DIR=dir) for _ in range(2)]
        peers = [listener.accept(30) for _ in range(2)]
        for i in range(10):
            frame = owner.empty((1080, 192, 3), "u1")
            frame[...] = i
            owner.offer(frame, peers, label=f"frame {i}")
        for peer in peers:
            assert peer.pid in [w.pid for w in workers] and peer.command
            peer.close()
        for w in workers:
            for i in range(10):
                assert line(w) == f"frame {i} (1080, 192, 3) {1080 * 192 * 3 * i}"
            assert line(w) == "ended" and w.wait(30) == 0
        del frame
    eventually(lambda: not owner.outstanding())
    assert owner.state()["bytes"]["used"] == 0


def test_a_child_by_socketpair(owner: tenure.Owner) -> None:
    code = """if True:
        import os, tenure
        p = tenure.parent()
        assert "TENURE_SHARE_FD" not in os.environ
        for got in p:
            p.offer(got.array * 2, label=got.label)
    """
    child, peer = owner.spawn([sys.executable, "-c", code], env=env())
    for i in range(3):
        peer.offer(owner.copy(np.full(BIG, i)), label=str(i))
        with peer.receive(30) as got:
            assert got.label == str(i) and (got.array == 2 * i).all()
        del got
    peer.close()
    assert child.wait(30) == 0
    with pytest.raises(FileNotFoundError):
        owner.spawn(["/nonexistent"])
    with pytest.raises(tenure.GoneError):
        owner.spawn([sys.executable, "-c", "pass"])


def test_a_child_that_speaks_late(owner: tenure.Owner) -> None:
    child, peer = owner.spawn([sys.executable, "-c", "import time; time.sleep(0.3); import tenure; tenure.parent()"], env=env())
    child.wait(30)
    with pytest.raises(tenure.GoneError):
        peer.receive(5)


HOLDER = """
    p = tenure.attach("x", os.environ["DIR"])
    held = [p.receive() for _ in range(int(os.environ["HELD"]))]
    say("held")
    time.sleep(60)
"""


def test_a_killed_consumer_frees_what_it_held(start: Start, owner: tenure.Owner, dir: str) -> None:
    with owner.listen("x", dir) as listener:
        child = start(HOLDER, DIR=dir, HELD="2")
        peer = listener.accept(30)
        for _ in range(3):
            peer.offer(owner.empty(BIG))
        assert line(child) == "held"
        assert len(owner.outstanding()) == 3 and owner.state()["bytes"]["limbo"] == 3 * BIG * 4
        child.kill()
        eventually(lambda: not owner.outstanding())
        assert owner.state()["bytes"]["used"] == 0
        with pytest.raises(tenure.GoneError):
            peer.receive(5)
        with pytest.raises(tenure.GoneError):
            peer.offer([1])


def test_a_stopped_consumer_keeps_its_leases(start: Start, owner: tenure.Owner, dir: str) -> None:
    with owner.listen("x", dir) as listener:
        child = start(HOLDER, DIR=dir, HELD="1")
        peer = listener.accept(30)
        peer.offer(owner.empty(BIG))
        assert line(child) == "held"
        child.send_signal(signal.SIGSTOP)
        time.sleep(0.05)
        assert len(owner.outstanding()) == 1
        with pytest.raises((tenure.Timeout, tenure.CreditError)):
            for _ in range(5000):
                peer.offer(owner.empty(BIG), timeout=0.05)
        child.kill()
        eventually(lambda: not owner.outstanding())


OWNER = """
    own = tenure.Owner()
    p = own.listen("x", os.environ["DIR"]).accept()
    for i in range(int(os.environ["COUNT"])):
        x = own.empty(100_000, "i4"); x[:] = i + 1
        p.offer(x, label=str(i))
        del x
    say("offered")
    sys.stdin.readline()
    os.kill(os.getpid(), signal.SIGKILL)
"""


def attach(dir: str, owner: Optional[tenure.Owner] = None) -> tenure.Peer:
    def go() -> Optional[tenure.Peer]:
        try:
            return tenure.attach("x", dir, owner=owner)
        except tenure.GoneError:
            return None

    got = eventually(go)
    assert isinstance(got, tenure.Peer)
    return got


def test_a_killed_owner_leaves_bytes_readable(start: Start, dir: str) -> None:
    child = start(OWNER, DIR=dir, COUNT="5")
    peer = attach(dir)
    assert line(child) == "offered"
    first = peer.receive(10)
    tell(child)
    child.wait(30)
    rest = [peer.receive(10) for _ in range(4)]  # they were on their way
    for i, got in enumerate([first, *rest]):
        assert got.label == str(i) and (got.array == i + 1).all()
    with pytest.raises(tenure.GoneError):
        peer.receive(10)
    with pytest.raises(tenure.GoneError):
        first.ticket(5)
    assert (first.array == 1).all()
    child = start(OWNER, DIR=dir, COUNT="1")  # a new start meets nothing stale
    again = attach(dir)
    with again.receive(10) as got:
        assert got.serial == 1 and got.array[0] == 1
    tell(child)
    child.wait(30)
    assert (rest[3].array == 5).all() and not peer.closed
    del rest, first, got
    eventually(lambda: peer.closed)


def test_a_ticket_to_a_third_process(start: Start, owner: tenure.Owner, dir: str) -> None:
    minter = """
        p = tenure.attach("x", os.environ["DIR"])
        got = p.receive()
        say(got.ticket())
        got.close()
        sys.stdin.readline()
    """
    claimer = """
        p = tenure.attach("x", os.environ["DIR"])
        got = p.claim(sys.stdin.readline().strip())
        say(got.label, int(got.array.sum()))
        sys.stdin.readline()
    """
    with owner.listen("x", dir) as listener:
        one = start(minter, DIR=dir)
        peer = listener.accept(30)
        x = owner.empty(BIG, "i8")
        x[:] = 2
        peer.offer(x, label="passed on")
        del x
        ticket = line(one)
        two = start(claimer, DIR=dir)
        listener.accept(30)
        tell(two, ticket)
        assert line(two) == f"passed on {2 * BIG}"
        one.kill()
        (lease,) = eventually(lambda: len(owner.outstanding()) == 1 and owner.outstanding())
        assert lease["pid"] == two.pid and lease["state"] == "held"
        two.kill()
        eventually(lambda: not owner.outstanding())


def test_fork(connect: Connect, owner: tenure.Owner) -> None:
    """A forked child has nothing of its parent's, cannot harm it, and can share on its own."""
    peer, consumer = connect()
    x = owner.empty(BIG)
    x[:] = 7
    peer.offer(x, label="1")
    peer.offer(x, label="2")
    got = consumer.receive(5)
    ticket_number = len(owner.outstanding())
    r, w = os.pipe()
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            os.close(r)
            refused = 0
            for call in (
                consumer.receive,
                lambda: peer.offer([1]),
                lambda: owner.empty(3),
                lambda: consumer.get("x", 1),
                owner.collect,
                lambda: got.ticket(1),
            ):
                try:
                    call()
                except tenure.ClosedError:
                    refused += 1
            got.close()
            consumer.close()
            peer.close()
            owner.close()
            own, other = tenure.Owner(), tenure.Owner()
            a, b = joined(own, other)
            y = own.empty(BIG)
            y[:] = 9
            a.offer(y)
            ok = b.receive(5).array[3] == 9 and a.instance == b.instance != peer.instance
            with open("/proc/self/maps") as f:
                mapped = sum("/memfd:tenure" in entry for entry in f)
            os.write(w, f"{refused} {bool(ok)} {mapped}".encode())
            code = 0
        except BaseException:
            os.write(w, traceback.format_exc().encode())
        finally:
            os._exit(code)
    os.close(w)
    assert os.read(r, 10000) == b"6 True 2"
    os.close(r)
    assert os.waitpid(pid, 0)[1] == 0
    assert len(owner.outstanding()) == ticket_number and (got.array == 7).all()
    assert consumer.receive(5).label == "2"
    got.close()
    del got
    eventually(lambda: not owner.outstanding())


def test_fork_without_exec_keeps_no_connection_open(owner: tenure.Owner) -> None:
    """The end of file comes although a forked child of the dead process lives."""
    code = """if True:
        import os, sys, time, tenure
        p = tenure.parent()
        got = p.receive()
        if os.fork() == 0:
            time.sleep(30)
            os._exit(0)
        p.offer([1])
        time.sleep(30)
    """
    child, peer = owner.spawn([sys.executable, "-c", code], env=env(), start_new_session=True)
    peer.offer(owner.empty(BIG))
    peer.receive(30)
    child.kill()
    child.wait()
    eventually(lambda: not owner.outstanding())
    os.killpg(child.pid, signal.SIGKILL)


def test_multiprocessing_children_may_exit_as_they_like(connect: Connect, owner: tenure.Owner) -> None:
    """A child that runs its finalisers to the end crashes on nothing that it inherited."""
    peer, consumer = connect()
    peer.offer(owner.empty(BIG))
    got = consumer.receive(5)
    view = got.array[5:]
    for _ in range(5):
        pid = os.fork()
        if pid == 0:
            blobs = [bytearray(1 << 20) for _ in range(50)]  # these may lie where the arena was
            del got, view
            for b in blobs:
                b[:] = b"x" * len(b)
            os._exit(0)
        assert os.waitpid(pid, 0)[1] == 0
    del got, view


def test_a_forked_child_unmaps_nothing(raw: Callable[..., Raw]) -> None:
    """Not even arrays that outlived their connection: where they lay may be the child's own memory by now."""
    other = raw()
    other.send(offer_maker(other)(1))
    array = other.peer.receive(5).array
    other.sock.close()
    eventually(lambda: other.peer._gone)
    address = array.ctypes.data
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            libc = ctypes.CDLL(None, use_errno=True)
            libc.mmap.restype = ctypes.c_void_p
            libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
            fixed_anonymous = 0x100000 | 0x20 | 0x02  # MAP_FIXED_NOREPLACE: nothing is there
            if libc.mmap(address, 4096, 3, fixed_anonymous, -1, 0) == address:
                del array
                gc.collect()
                ctypes.c_int.from_address(address).value = 5  # still there
                code = 0
        finally:
            os._exit(code)
    assert os.waitpid(pid, 0)[1] == 0
    del array


# --- killed at every step ---

CONSUMER = """
    p = tenure.attach("x", os.environ["DIR"])
    for i in range(3):
        got = p.receive()
        if os.environ.get("FORWARD"):
            t = got.ticket()
            p.claim(t).close()
        got.close()
        del got
    say("released")
    try: p.receive()
    except tenure.EndedError: pass
    time.sleep(5)
"""


@pytest.mark.parametrize("point", [21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 41, 42, 43, 44, 45])
def test_a_consumer_killed_at(point: int, start: Start, owner: tenure.Owner, dir: str) -> None:
    """Whatever it was doing: nothing stays out, nobody else is affected, the owner's memory comes back."""
    with owner.listen("x", dir) as listener:
        more: Dict[str, str] = {"FORWARD": "1"} if point > 40 else {}
        child = start(CONSUMER, DIR=dir, TENURE_INVARIANTS="1", TENURE_CRASH_AT=str(point), **more)
        bystander, mine = joined(owner, tenure.Owner())

        def serve() -> None:
            try:
                peer = listener.accept(30)
                for i in range(3):
                    peer.offer(owner.empty(BIG), timeout=10)
                eventually(lambda: not owner.outstanding() or child.poll() is not None)
                owner.collect()
            except tenure.Error:
                pass

        t = threading.Thread(target=serve)
        if point > 21:  # before, it says nothing that could be accepted
            t.start()
        assert child.wait(30) == -signal.SIGKILL
        if point > 21:
            t.join(30)
        eventually(lambda: not owner.outstanding())
        bystander.offer([1, 2])
        assert mine.receive(5).array.tolist() == [1, 2]
        owner.collect()
        eventually(lambda: owner.state()["arenas"] == [])
        mine.owner.close()


OWNER_STEPS = """
    own = tenure.Owner()
    listener = own.listen("x", os.environ["DIR"])
    p = listener.accept()
    x = own.empty(100_000, "i4"); x[:] = 5
    p.offer(x, label="stamped")
    del x
    sys.stdin.readline()
    own.outstanding()
    own.collect()
    time.sleep(5)
"""


@pytest.mark.parametrize("point", [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14])
def test_an_owner_killed_at(point: int, start: Start, dir: str) -> None:
    """Its consumers hear of it, and what they hold stays as it was."""
    child = start(OWNER_STEPS, DIR=dir, TENURE_INVARIANTS="1", TENURE_CRASH_AT=str(point))
    peer = attach(dir)
    held: List[Any] = []
    try:
        got = peer.receive(10)
        held.append(got.array[::2])
        if 10 <= point <= 12:
            peer.claim(got.ticket(10), 10)
        if point in (8, 9):
            peer._sock.shutdown(socket.SHUT_RDWR)
        if point in (6, 7, 13):
            del held[:]
        got.close()
        del got
        tell(child)
        while point != 14:
            held.append(peer.receive(10).array)
    except (tenure.GoneError, tenure.ClosedError, BrokenPipeError):
        pass
    assert child.wait(30) == -signal.SIGKILL
    assert all((a == 5).all() for a in held)
    held.clear()
    got = None
    eventually(lambda: peer.closed)
