"""Maps of memory: what keeps them, what they keep, and how few descriptors it takes."""

from __future__ import annotations

import errno
import gc
import os
import subprocess
import sys
import weakref
from typing import Any, Callable, List

import numpy as np
import pytest
from conftest import Connect, eventually, fds, joined, maps
from test_names import env

import tenure
from tenure import memfd

pytestmark = pytest.mark.usefixtures("nothing_is_left")

SIZE = 3 * memfd.PAGE


@pytest.fixture
def fd() -> Any:
    made = memfd.create("tenure:test", SIZE)
    yield made
    os.close(made)


def test_a_map_keeps_no_descriptor(fd: int) -> None:
    before = fds()
    views = [memfd.populate(fd, SIZE), memfd.attach(fd, SIZE), memfd.attach_private(fd, SIZE).view()]
    assert fds() == before and len(maps()) == 3
    views[0][5] = 7
    assert [v[5] for v in views] == [7, 7, 7]
    views[2][5] = 8
    assert [v[5] for v in views] == [7, 7, 8]


WAYS: List[Callable[[memoryview], Any]] = [
    lambda v: v,
    lambda v: v[5:9],
    lambda v: v[5:9].cast("h"),
    lambda v: np.frombuffer(v[64:], "i4"),
    lambda v: np.frombuffer(v[64:], "i4")[::2].reshape(-1, 1).T,
    lambda v: np.asarray(v.obj),
    lambda v: [np.frombuffer(v, "u1")[1:], memoryview(np.frombuffer(v, "u1")[5:])],
]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("attach", [memfd.attach, memfd.populate])
def test_it_is_mapped_while_there_is_a_way_to_it(fd: int, attach: Callable[[int, int], memoryview], way: Callable[[memoryview], Any]) -> None:
    view = attach(fd, SIZE)
    kept = way(view)
    if kept is not view:
        view.release()
    del view
    gc.collect()
    assert len(maps()) == 1
    del kept
    assert maps() == []  # at once: no collection is needed


def test_cycles_that_hold_a_view(fd: int) -> None:
    """A finaliser that runs in a collection still reads what its object holds."""
    seen: List[int] = []

    class Node:
        def __init__(self, held: Any) -> None:
            self.me = self
            self.held = held

        def __del__(self) -> None:
            seen.append(int(self.held[3]))

    view = memfd.attach(fd, SIZE)
    for held in (view, view[1:], np.frombuffer(view, "u1")):
        Node(held)
    del view, held
    gc.collect()
    assert seen == [0, 0, 0] and maps() == []


def test_nobody_makes_it_writable(fd: int) -> None:
    view = memfd.attach(fd, SIZE)
    array: Any = np.frombuffer(view[64:], "u1")
    while array is not None:
        if isinstance(array, np.ndarray):
            with pytest.raises(ValueError):
                array.flags.writeable = True
        else:
            assert array.readonly
        array = array.obj if isinstance(array, memoryview) else array.base
        if isinstance(array, memfd.Memory):
            break
    assert isinstance(array, memfd.Memory)


def test_what_cannot_be_mapped(fd: int) -> None:
    with pytest.raises(OSError) as e:
        memfd.attach(-1, SIZE)
    assert e.value.errno == errno.EBADF
    blind = os.open(f"/proc/self/fd/{fd}", os.O_WRONLY)
    with pytest.raises(PermissionError):
        memfd.attach(blind, SIZE)
    os.close(blind)
    with pytest.raises(OSError) as e:
        memfd.attach_private(fd, SIZE).advise(12345)
    assert e.value.errno == errno.EINVAL
    del e  # its traceback has the memory
    gc.collect()
    assert maps() == []


def test_more_than_there_is(fd: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A pooled arena is as small as need be where a larger one is not to be had; what is too large is an error."""
    assert 0 < memfd.room() < 1 << 50
    monkeypatch.setattr(memfd, "room", lambda: 1 << 20)
    with tenure.Owner() as owner:
        small = owner.empty(1000, "u1")
        assert [a["bytes"] for a in owner.state()["arenas"]] == [memfd.PAGE]
        with pytest.raises(tenure.LimitError, match="want at most 1048576, which the machine or a memory cgroup has left"):
            owner.empty(2 << 20, "u1")
        small[:] = 1


EXIT = """
import builtins, sys, threading
import numpy as np
import tenure
own, other = tenure.Owner(), tenure.Owner()
a, b = tenure.pair()
t = threading.Thread(target=lambda: setattr(builtins, "consumer", tenure.connect(b, other, writable=WRITABLE)))
t.start()
peer = tenure.connect(a, own)
t.join()
for i in range(4):
    peer.offer(own.empty(50_000))
got = [consumer.receive(5) for _ in range(4)]
mine = own.empty(40 << 20, "u1")
builtins.kept, sys.kept, threading.kept = got[0].array, got[1].array[3:], memoryview(got[2].array)
builtins.mine = mine[7:]
class Last:
    def __init__(self): self.me, self.array = self, got[3].array
    def __del__(self): self.array[5] + self.array[-1]
builtins.last = Last()
"""


@pytest.mark.parametrize("writable", [None, "cow"])
@pytest.mark.parametrize("close", ["", "peer.close(); own.close(); other.close()"])
def test_the_end_of_a_process_that_holds_arrays(writable: Any, close: str) -> None:
    code = EXIT.replace("WRITABLE", repr(writable)) + close
    done = subprocess.run([sys.executable, "-X", "dev", "-c", code], env=env(PYTHONWARNINGS="ignore"), capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_the_memory_of_an_owner_goes_with_its_arrays() -> None:
    owner = tenure.Owner()
    array = owner.empty(5000)
    gone = weakref.ref(owner)
    owner.close()
    del owner
    gc.collect()
    assert gone() is None or len(maps()) == 1
    array[:] = 3
    assert array.sum() == 15000
    del array
    eventually(lambda: gc.collect() is not None and maps() == [])


# --- descriptors ---

HOLDER = """
import os, sys
import tenure
p = tenure.parent(tenure.Owner(leases=1 << 20))
held = [p.receive() for _ in range(int(sys.argv[1]))]
links = [os.readlink(f"/proc/self/fd/{fd}") for fd in os.listdir("/proc/self/fd") if os.path.exists(f"/proc/self/fd/{fd}")]
print(sum("socket:" in link for link in links), sum("/memfd:" in link for link in links), len(open("/proc/self/maps").read().split("/memfd:tenure")) - 1, flush=True)
sys.stdin.readline()
"""


def test_ten_thousand_tensors() -> None:
    """Many tensors are a socket, and in the owner a descriptor for each of a few arenas."""
    before = fds()
    with tenure.Owner() as owner:
        child, peer = owner.spawn([sys.executable, "-c", HOLDER, "10000"], env=env(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for i in range(10_000):
            peer.offer(owner.empty(4096, "u1"))
        assert child.stdout is not None and child.stdin is not None
        assert child.stdout.readline().split() == ["1", "0", "3"]
        mine = fds()
        for known in (*before, "pipe", "pipe"):
            mine.remove(known)
        assert [fd.split(":")[0] for fd in mine] == ["/memfd"] * 3 + ["socket"]
        assert len(owner.outstanding()) == 10_000
        child.communicate("\n", timeout=60)
    del peer


def test_sizes_of_arenas(connect: Connect) -> None:
    """Each pooled arena has three times what there is, within the limit; large blocks have one of their own, which waits for the next."""
    with tenure.Owner(limit=100 << 20) as owner, tenure.Owner() as other:
        peer, consumer = joined(owner, other)
        held = [owner.empty(1 << 20, "u1") for _ in range(17)]
        assert [a["bytes"] >> 20 for a in owner.state()["arenas"]] == [4, 12, 48]
        large = owner.empty(36 << 20, "u1")
        assert [a["bytes"] >> 20 for a in owner.state()["arenas"]] == [4, 12, 48, 36]
        address = large.ctypes.data
        del large
        held.append(owner.empty(1 << 20, "u1"))
        again = owner.empty(34 << 20, "u1")
        assert again.ctypes.data == address and not any(a["retired"] for a in owner.state()["arenas"])
        del again
        peer.offer(held[0])
        consumer.receive(5).close()
    with tenure.Owner(limit=20 << 20) as owner:
        held = [owner.empty(1 << 20, "u1") for _ in range(20)]
        assert [a["bytes"] >> 20 for a in owner.state()["arenas"]] == [4, 12, 4]
        with pytest.raises(tenure.LimitError):
            owner.empty(1)
    del held
