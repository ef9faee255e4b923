"""An owner of shared memory and its connections."""

from __future__ import annotations

import copy
import os
import subprocess
from types import TracebackType
from typing import Any, List, Optional, Sequence, Tuple, Type

from . import wire
from .errors import Error
from .greeting import meet, pair
from .lending import Lending, to_all
from .listener import Listener
from .peer import Peer
from .store import Store


class Owner(Store):
    """Arenas, blocks, leases and published names of one audience: a consumer can read every byte of an arena that it maps.

    limit is the most bytes of arenas. leases and bytes bound what this end holds of each of its peers' tensors at once. peer_leases and
    peer_bytes bound what all connections of one peer process hold of this owner together, whatever the peer announces: leases and tickets
    and their bytes, those of disconnected connections until the process is dead (see Peer.disconnect), and the arenas that it may still have
    mapped then; at most peer_bytes of these arenas, else limit, leave the owner's own limit. allow_drop lets peers withdraw published names.
    All methods may be called by any thread.
    """

    def __init__(
        self,
        limit: int = 1 << 30,
        *,
        leases: int = 1024,
        bytes: int = 1 << 40,
        allow_drop: bool = False,
        peer_leases: Optional[int] = None,
        peer_bytes: Optional[int] = None,
    ) -> None:
        super().__init__(limit, leases, bytes, allow_drop, peer_leases, peer_bytes)
        self._listeners: List[Listener] = []

    def offer(self, array: Any, peers: Sequence[Peer], label: str = "", *, wait: bool = True, timeout: Optional[float] = None, copy: bool = True) -> None:
        """Offers one array to several peers, with at most one copy for all of them; see Peer.offer. Each gets it as soon as it can, whatever
        the others do. Raises the first error of the peers that did not get it; its `failed` has the errors of all of them."""
        for peer in peers:
            if peer.owner is not self:
                raise ValueError("offer: got a peer of another owner, want one of this")
        prepared = self._prepare(array, wire.label(label), copy, "offer")
        if not peers:
            return
        failed = to_all([peer._lending for peer in peers], prepared, wait, timeout)
        if failed:
            raise _joined(failed)

    def listen(self, name: str, dir: Optional[str] = None, *, writable: Optional[str] = None) -> Listener:
        """Opens a named socket that consumers connect to; see Listener."""
        self._check("listen")
        listener = Listener(self, name, dir, writable)
        self._listeners.append(listener)
        return listener

    def spawn(self, args: Sequence[str], *, timeout: float = 60, writable: Optional[str] = None, **options: Any) -> Tuple["subprocess.Popen[Any]", Peer]:
        """Starts a child process that calls `tenure.parent()`, or Parent of package share, and connects to it. options are Popen's."""
        self._check("spawn")
        ours, theirs = pair()
        with theirs:
            env = dict(options.pop("env", None) or os.environ)
            env["TENURE_SHARE_FD"] = str(theirs.fileno())
            fds = [*options.pop("pass_fds", ()), theirs.fileno()]
            try:
                child = subprocess.Popen(args, env=env, pass_fds=fds, **options)
            except BaseException:
                ours.close()
                raise
        try:
            return child, meet(ours, self, timeout, writable)
        except BaseException:
            child.kill()
            child.wait()
            raise

    def close(self) -> None:
        """Ends the listeners and sends END to all peers. Peers keep the tensors that they hold; arrays of this process stay valid while they exist."""
        if not self._forked:
            for listener in self._listeners:
                listener.close()
        super().close()

    def __enter__(self) -> "Owner":
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], value: Optional[BaseException], trace: Optional[TracebackType]) -> None:
        self.close()


def _joined(failed: List[Tuple[Lending, Error]]) -> Error:
    """The first of several errors, which knows all. It is another object, so that none refers to itself and keeps what its traceback leads to."""
    error = copy.copy(failed[0][1])
    error.failed = {lending._peer: e for lending, e in failed}
    return error
