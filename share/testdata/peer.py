"""The Python end of the tests with Go: argv[1] names the part that it plays. It reports in lines; input lines are what to do next."""

import os
import sys
import time

import numpy as np

import tenure

TYPES = ["f2", "f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "c8", "c16", "?"]


def say(*words):
    print(*words, flush=True)


def hear():
    return sys.stdin.readline().strip()


def echo():
    """Receives, says what came, offers it back: as it is, and turned around."""
    peer = tenure.parent()
    for got in peer:
        a = got.array
        say(got.label, got.dtype.name, list(a.shape), a.flags.writeable, a.astype("c16").real.sum())
        back = peer.owner.empty(a.shape, a.dtype)
        back[...] = a
        peer.offer(back, label="as it is")
        peer.offer(back.T, label="turned")
        peer.offer(a, label="passed on")  # not this owner's memory: copied
        del a, back
    say("ended")


def raw():
    """Receives what numpy has no types for, and says its bits."""
    for got in tenure.parent():
        say(got.dtype.name, list(got.shape), got.raw.tobytes().hex())


def offer():
    """Offers every type, and waits until nothing is out."""
    peer = tenure.parent()
    for text in TYPES:
        for size in (5, 3000):
            x = peer.owner.empty((size, 2), text)
            x[...] = np.arange(2 * size).reshape(size, 2) % 2
            peer.offer(x, label=text)
            y = peer.owner.empty((2, size), text)
            y[...] = x.T
            peer.offer(y.T[::-1], label="turned")
            del x, y
    say("offered")
    hear()
    say(len(peer.owner.outstanding()), peer.owner.state()["bytes"]["used"])
    hear()


def hold():
    """Receives as many as it is told and keeps them; then does what it is told."""
    peer = tenure.parent()
    held = [peer.receive() for _ in range(int(hear()))]
    say("held")
    while True:
        order = hear()
        if order == "close":
            peer.close()
        elif order == "sum":
            say(*(int(got.array.sum()) for got in held))
        elif order == "release":
            held.pop().close()
        elif order == "wait":
            try:
                peer.receive(20)
                say("received")
            except tenure.Error as e:
                say(type(e).__name__)
        elif order == "ticket":
            say(held[0].ticket())
        elif order.startswith("claim "):
            with peer.claim(order[6:]) as got:
                say(got.label, int(got.array.sum()))
        else:
            return
        say("done")


def lend():
    """An owner: offers as many as it is told, stamped, then waits, answering what it is asked."""
    peer = tenure.parent()
    peer.owner.allow_drop = True
    w = peer.owner.copy(np.full((40, 30), 2.0, "f4"))
    peer.owner.publish("weights", w)
    for i in range(int(hear())):
        x = peer.owner.empty(10000, "i4")
        x[:] = i + 1
        peer.offer(x, label=str(i + 1))
        del x
    say("offered")
    while True:
        order = hear()
        if order == "close":
            peer.close()
        elif order == "out":
            say(len(peer.owner.outstanding()))
        elif order == "names":
            say([n["name"] for n in peer.owner.state()["names"]])
        else:
            return
        say("done")


def named():
    """Attaches to a name: a published tensor, the state, a refused and a granted drop."""
    peer = tenure.attach("interop")
    with peer.get("weights") as got:
        say(got.label, got.dtype.name, list(got.shape), int(got.array.sum()))
        state = peer.state()
        say(sorted(state), [lease["state"] for lease in state["leases"]], state["names"])
    for name in ("nothing", "weights"):
        try:
            peer.get(name) if name == "nothing" else peer.drop(name)
            say("granted")
        except tenure.RefusedError as e:
            say(type(e).__name__, e.code)


def serve():
    """Listens under a name until it is told to end."""
    with tenure.Owner() as own, own.listen("interop") as listener:
        say("listening")
        peers = [listener.accept() for _ in range(int(hear()))]
        x = own.empty((1080, 1920, 3), "u1")
        x[...] = 3
        own.offer(x, peers, label="frame")
        del x
        hear()
        say(len(own.outstanding()))
        hear()


def outlive():
    """Holds what an owner lends that is killed meanwhile, and says what each call raises and what is left of what it holds."""
    peer = tenure.attach("outlived")
    mine = peer.owner.empty(5000)
    arrays = [stamped(peer.receive()) for _ in range(2)]
    say("holds", *(a[0] for a in arrays))
    hear()
    kept = [peer.receive(20) for _ in range(3)]  # they were on their way
    calls = {
        "receive": lambda: peer.receive(20),
        "offer": lambda: peer.offer([1.0]),
        "offer in place": lambda: peer.offer(mine),
        "ticket": lambda: kept[0].ticket(20),
        "claim": lambda: peer.claim(bytes(16), 20),
        "get": lambda: peer.get("weights", 20),
        "state": lambda: peer.state(20),
        "attach": lambda: tenure.attach("outlived"),
    }
    for name, call in calls.items():
        try:
            call()
            say(name, "is done")
        except tenure.Error as e:
            say(name, f"{type(e).__name__}: {e}")
    del calls, call
    arrays += [stamped(got) for got in kept]
    last = arrays[-1][7::3]
    say("holds", *(stamp(a) for a in arrays), *left(peer))
    kept.clear()
    arrays.clear()
    say("holds", stamp(last), *left(peer))
    del last
    deadline = time.monotonic() + 20
    while not peer.closed and time.monotonic() < deadline:
        time.sleep(0.001)
    sockets = sum("socket:" in os.readlink(f"/proc/self/fd/{fd}") for fd in os.listdir("/proc/self/fd") if os.path.exists(f"/proc/self/fd/{fd}"))
    say("holds nothing", "of it in", maps(), f"maps, {sockets} sockets, closed", peer.closed)


def stamped(got):
    if stamp(got.array) != int(got.label) or got.array.flags.writeable:
        say("violation:", got)
    return got.array


def stamp(array):
    """What every element is."""
    return array[0] if (array == array[0]).all() else f"violation: {array}"


def maps():
    """How many arenas of others are mapped."""
    with open("/proc/self/maps") as f:
        return sum("/memfd:tenure" in line and "r--s" in line for line in f)


def left(peer):
    return "of it in", maps(), "map, closed", peer.closed


if __name__ == "__main__":
    globals()[sys.argv[1]]()
