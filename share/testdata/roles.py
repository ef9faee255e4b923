"""Owners and consumers that the kill tests start and kill, as roles_linux_test.go has them in Go: the same lines out, the same orders in."""

import os
import random
import sys
import threading
import time

import numpy as np

import tenure
from tenure import crash

_saying = threading.Lock()


def say(text):
    with _saying:
        print(text, flush=True)


def setting(name, otherwise):
    return int(os.environ.get("TENURE_SHARE_" + name, otherwise))


def maps():
    with open("/proc/self/maps") as f:
        return f.read().count("memfd:tenure")


class Stamper:
    """Offers tensors whose every element is the number in their label."""

    def __init__(self, owner):
        self.owner, self.peers, self.seen, self.stamp = owner, [], 0, 0
        self.lock = threading.Lock()

    def accept(self, listener):
        try:
            for peer in listener:
                with self.lock:
                    self.peers.append(peer)
                    self.seen += 1
        except tenure.Error:
            pass  # the listener is closed

    def await_peers(self, n):
        end = time.monotonic() + 2
        while self.seen < n and time.monotonic() < end:
            time.sleep(0.001)

    def rounds(self, n):
        for _ in range(n):
            for _ in range(4):
                self.offer()
            end = time.monotonic() + 0.3
            while self.owner.outstanding() and time.monotonic() < end:
                time.sleep(0.0002)
            self.owner.collect()

    def run_until(self, stop):
        i = 0
        while not stop.is_set():
            self.offer()
            if i % 64 == 0:
                self.owner.collect()
            i += 1

    def offer(self):
        self.stamp += 1
        try:
            x = self.owner.empty(1 + random.randrange(1 << 14), "u4")
        except tenure.LimitError:  # consumers hold it all; some of them may be in the middle of dying
            time.sleep(0.001)
            return
        x[...] = self.stamp
        with self.lock:
            self.peers = [p for p in self.peers if not p.closed]
            to = list(self.peers)
        if to:
            try:
                self.owner.offer(x, to, label=str(self.stamp), timeout=5, copy=False)
            except (tenure.ClosedError, tenure.CreditError, tenure.GoneError, tenure.EndedError):
                pass  # what a peer's death does to an offer


def owner():
    o = tenure.Owner(limit=64 << 20)
    listener = o.listen("kill")
    s = Stamper(o)
    threading.Thread(target=s.accept, args=(listener,), daemon=True).start()
    say("ready")
    for order in sys.stdin:
        order = order.strip()
        if order.startswith("go "):
            s.await_peers(int(order[3:]))
            s.rounds(setting("ROUNDS", 6))
            say("rounds done")
        elif order == "run":
            s.await_peers(1)
            stop = threading.Event()

            def wait():
                sys.stdin.readline()
                stop.set()

            threading.Thread(target=wait, daemon=True).start()
            s.run_until(stop)
            break
        else:
            break
    listener.close()
    peers, s.peers = s.peers, []
    o.close()
    end = time.monotonic() + 5
    while True:
        state = o.state()
        used, leases, arenas = state["bytes"]["used"], len(state["leases"]), len(state["arenas"])
        if not used and not leases and not arenas and not maps() and all(p.closed for p in peers):  # the steps of their ends are behind us
            return
        if time.monotonic() > end:
            say(f"leak: {used} bytes used, {leases} leases, {arenas} arenas, {maps()} maps, {sum(not p.closed for p in peers)} peers")
            return
        time.sleep(0.001)


def check(r, when):
    want = int(r.label)
    a = r.array
    if not (a == want).all():
        say(f"violation: {when}: element {int(np.argmax(a != want))} of {len(a)} is {int(a[a != want][0]):#x}, want {want:#x}")


class Consumer:
    def __init__(self, peer):
        self.peer, self.held, self.forward = peer, [], setting("FORWARD", 0) > 0
        self.claiming = threading.Lock()

    def run(self):
        while True:
            try:
                r = self.peer.receive(timeout=0.002 if self.held else None)
            except tenure.Timeout:
                self.release_all("when nothing comes")
                continue
            except (tenure.EndedError, tenure.GoneError, tenure.ClosedError):
                self.release_all("after the owner's end")
                return
            self.take(r)
            del r

    def take(self, r):
        check(r, "on receipt")
        if self.forward and random.random() < 1 / 3:
            try:
                say(f"ticket {self.peer.ticket(r)}")
            except (tenure.ClosedError, tenure.GoneError, tenure.EndedError, tenure.CreditError):
                pass
        self.held.append(r)
        while len(self.held) > 3 or self.held and random.random() < 0.5:
            one = self.held.pop(random.randrange(len(self.held)))
            check(one, "before its release")
            one.close()

    def release_all(self, when):
        for r in self.held:
            check(r, when)
            r.close()
        self.held = []

    def claim_all(self):
        for line in sys.stdin:
            with self.claiming:
                try:
                    r = self.peer.claim(line.strip())
                    check(r, "claimed")
                    r.close()
                    say("claimed")
                except (tenure.UnknownError, tenure.ClosedError, tenure.GoneError, tenure.EndedError, tenure.CreditError):
                    pass


def consumer():
    try:
        peer = tenure.attach("kill")
    except (tenure.RefusedError, tenure.UnknownError, tenure.ClosedError, tenure.GoneError, tenure.EndedError) as e:
        say(f"too late: {e}")
        return
    say("connected")
    c = Consumer(peer)
    threading.Thread(target=c.claim_all, daemon=True).start()
    c.run()
    peer.close()
    with c.claiming:
        end = time.monotonic() + 5
        while maps():
            if time.monotonic() > end:
                say("leak: arenas are mapped after the end")
                return
            time.sleep(0.001)


try:
    {"owner": owner, "consumer": consumer}[os.environ["TENURE_SHARE_ROLE"]]()
except Exception as e:
    say(f"failed: {type(e).__name__}: {e}")
    raise
say("clean")
sys.stdout.flush()
os._exit(0)
