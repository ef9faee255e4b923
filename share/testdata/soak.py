"""Peers in Python that do what they should not: argv[1] names how. They go on until they are killed."""

import os
import random
import secrets
import socket
import sys
import time

import numpy as np

import tenure

NAME = "soak"


def connect():
    while True:
        try:
            return tenure.attach(NAME)
        except (tenure.Error, OSError):
            time.sleep(0.01)


def keep():
    """Holds up to twenty tensors, and forgets to let go of some."""
    while True:
        peer = connect()
        held = []
        try:
            while True:
                held.append(peer.receive(timeout=1))
                if len(held) > 20:
                    held.pop(random.randrange(20))
        except (tenure.Error, OSError):
            pass


def flood():
    """Offers what nobody receives and asks what it does not wait for."""
    small, large = np.zeros(10, "u1"), np.zeros(60000, "u1")
    while True:
        peers = [connect() for _ in range(4)]
        for peer in peers:
            for _ in range(200):
                try:
                    peer.offer(random.choice((small, large)), wait=False)
                except (tenure.Error, OSError):
                    break
            try:
                peer.state(timeout=0.1)
                peer.get("steady", timeout=0.1)
            except (tenure.Error, OSError):
                pass
        for peer in peers:
            peer.close()


def misname():
    """Names what there is not, and says what is no message."""
    path = os.path.join(os.environ["TENURE_SHARE_DIR"], NAME + ".sock")
    while True:
        for name in ("nobody", "soak2"):
            try:
                tenure.attach(name)
            except (tenure.Error, OSError):
                pass
        peer = connect()
        for ask in (
            lambda: peer.get("x" * random.randint(1, 255), timeout=0.2),
            lambda: peer.drop("steady", timeout=0.2),
            lambda: peer.claim(secrets.token_bytes(16), timeout=0.2),
            lambda: peer.cancel(secrets.token_bytes(16)),
            lambda: peer.get("steady", timeout=0.2),
        ):
            try:
                ask()
            except (tenure.Error, OSError):
                pass
        peer.close()
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as s:
            try:
                s.connect(path)
                s.send(secrets.token_bytes(random.randint(1, 200)))
            except OSError:
                pass


{"keep": keep, "flood": flood, "misname": misname}[sys.argv[1]]()
