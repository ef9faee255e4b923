"""Received tensors that may be written: nobody else sees it, and nothing of it is seen later."""

from __future__ import annotations

import numpy as np
import pytest
from conftest import Connect, eventually

import tenure

pytestmark = pytest.mark.usefixtures("nothing_is_left")

BIG = 5000


@pytest.mark.parametrize("writable", ["copy", "cow"])
@pytest.mark.parametrize("size", [10, BIG, 100_000])
def test_writing(connect: Connect, owner: tenure.Owner, writable: str, size: int) -> None:
    peer, consumer = connect(writable)
    x = owner.empty(size, "i4")
    x[:] = 3
    peer.offer(x[::-1])
    got = consumer.receive(5)
    got.array[:] = got.array + np.arange(size)
    assert (x == 3).all() and got.array.tolist() == list(range(3, size + 3))
    eventually(lambda: len(owner.outstanding()) == (writable == "cow"))
    got.close()
    del got
    eventually(lambda: not owner.outstanding())


def test_copy_of_one_sent_inline(connect: Connect) -> None:
    for writable in ("copy", "cow"):
        peer, consumer = connect(writable)
        peer.offer([1, 2, 3])
        got = consumer.receive(5)
        got.array[0] = 9
        assert got.array.tolist() == [9, 2, 3]


def test_nothing_stale(connect: Connect, owner: tenure.Owner) -> None:
    """The next tensor in the same pages is as its owner wrote it, not as a consumer left the one before."""
    peer, consumer = connect("cow")
    places = set()
    for i in range(10):
        x = owner.empty(100_000, "i4")
        places.add(x.ctypes.data)
        x[:] = i
        peer.offer(x)
        del x
        with consumer.receive(5) as got:
            assert (got.array == i).all()
            got.array[:] = -1
        del got
        eventually(lambda: owner.state()["bytes"]["used"] == 0)
    assert len(places) == 1


def test_neighbours_in_a_page(connect: Connect, owner: tenure.Owner) -> None:
    """Two tensors in one page, one written while the other comes and goes: both are right, and writes stay."""
    peer, consumer = connect("cow")
    a = owner.empty(100, "i4")
    b = owner.empty(100, "i4")
    assert abs(a.ctypes.data - b.ctypes.data) < 4096
    a[:] = 1
    peer.offer(a)
    first = consumer.receive(5)
    first.array[:] = 10  # the page is private now, b's part of it too
    b[:] = 2
    peer.offer(b)
    second = consumer.receive(5)
    assert (second.array == 2).all()
    second.array[:] = 20
    second.close()
    del second
    assert (first.array == 10).all()
    c = owner.empty(100, "i4")
    c[:] = 3
    peer.offer(c)
    assert (consumer.receive(5).array == 3).all() and (first.array == 10).all()


def test_wrong_option(connect: Connect) -> None:
    a, b = tenure.pair()
    with pytest.raises(ValueError, match="writable"):
        tenure.connect(a, writable="yes")
    b.close()
