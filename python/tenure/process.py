"""The state of one process: its instance number, and the objects that its forked children must not use."""

from __future__ import annotations

import os
import secrets
import weakref
from typing import Protocol

from . import device, memfd, service


class Forgetful(Protocol):
    """Something with descriptors, leases or memory that a forked child must not use."""

    def _forget(self) -> None: ...


_instance = secrets.token_bytes(16)
_all: "weakref.WeakSet[Forgetful]" = weakref.WeakSet()


def instance() -> bytes:
    """A random number of this process."""
    return _instance


def boot() -> bytes:
    """The system's boot id, zeros if it cannot be read."""
    try:
        with open("/proc/sys/kernel/random/boot_id") as f:
            return bytes.fromhex(f.read().strip().replace("-", ""))
    except (OSError, ValueError):
        return bytes(16)


def register(thing: Forgetful) -> None:
    """Has thing told when this process is a forked child."""
    _all.add(thing)


def _in_child() -> None:
    global _instance
    _instance = secrets.token_bytes(16)
    memfd.forget()
    device.forget()
    service.forget()
    for thing in list(_all):
        thing._forget()
    _all.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)
