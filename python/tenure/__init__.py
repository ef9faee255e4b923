"""Tensors across processes on one machine, as numpy arrays, without copies.

A process that owns tensors builds them in shared memory (`Owner.empty`) and offers them to others (`Peer.offer`); who receives one
(`Peer.receive`) reads it where it lies. The bytes are reused when everybody has let go of them, by dropping the last array or by dying, and
never before. There is no daemon and no named memory; the protocol is that of package share of the Go module github.com/tenure-go/tenure.

    import tenure

    # one process
    owner = tenure.Owner()
    for peer in owner.listen("camera"):
        frame = owner.empty((1080, 1920, 3), "u1")
        frame[...] = 7
        peer.offer(frame, label="frame 1")

    # another
    for received in tenure.attach("camera"):
        print(received.label, received.array.mean())
"""

from .dtypes import DType
from .errors import (
    ClosedError,
    CreditError,
    DTypeError,
    EndedError,
    Error,
    GoneError,
    LimitError,
    NameTakenError,
    PlaceError,
    ProtocolError,
    RefusedError,
    Timeout,
    UnknownError,
    UnsupportedError,
)
from .names import Listener, attach, directory
from .owner import Owner
from .peer import Peer, Ticket, connect, pair, parent
from .received import Received

__version__ = "0.1.0"

__all__ = [
    "ClosedError", "CreditError", "DType", "DTypeError", "EndedError", "Error", "GoneError", "LimitError", "Listener", "NameTakenError", "Owner", "Peer",
    "PlaceError", "ProtocolError", "Received", "RefusedError", "Ticket", "Timeout", "UnknownError", "UnsupportedError", "attach", "connect", "directory",
    "pair", "parent",
]  # fmt: skip
