"""Tensors across processes on one machine, as numpy arrays, without copies.

A process that owns tensors builds them in shared memory (`Owner.empty`) and offers them to others (`Peer.offer`). A process that receives
one (`Peer.receive`) reads it in place. The bytes are reused once all its holders have dropped their last array or have died, and never
before. There is no daemon and no named memory; the protocol is that of package share of the Go module github.com/tenure-go/tenure.

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

from .connections import attach, connect, parent
from .dtypes import DType
from .errors import (
    ClosedError,
    CreditError,
    DeviceError,
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
from .greeting import pair
from .listener import Listener
from .names import directory
from .owner import Owner
from .peer import Peer
from .received import Received, Ticket
from .tensor import DeviceTensor

__version__ = "0.1.0"

__all__ = [
    "ClosedError", "CreditError", "DType", "DTypeError", "DeviceError", "DeviceTensor", "EndedError", "Error", "GoneError", "LimitError", "Listener", "NameTakenError", "Owner", "Peer",
    "PlaceError", "ProtocolError", "Received", "RefusedError", "Ticket", "Timeout", "UnknownError", "UnsupportedError", "attach", "connect", "directory",
    "pair", "parent",
]  # fmt: skip
