"""Everything that this package raises on purpose."""

from __future__ import annotations

from types import MappingProxyType
from typing import Any, Mapping


class Error(Exception):
    """The base of all errors of this package."""

    failed: "Mapping[Any, Error]" = MappingProxyType({})
    """After an offer to several peers: the error of each Peer that did not get it."""


class ClosedError(Error):
    """The peer, owner, listener or received tensor was closed by this program, or belongs to the process it was forked from."""


class EndedError(Error, EOFError):
    """The other end has said that it offers and takes nothing more, and everything that it had sent is read."""


class GoneError(Error, ConnectionError):
    """The other end died or hung up."""


class ProtocolError(Error):
    """The other end broke the protocol. Its connection is poisoned; no other connection is affected."""


class Timeout(Error, TimeoutError):
    """A time limit passed."""


class CreditError(Error):
    """The other end holds as much as it said it would hold at once."""


class LimitError(Error, MemoryError):
    """An owner's limit, or the memory that the system leaves to this process, is too small for what was asked."""


class DTypeError(Error, TypeError):
    """An element type that numpy, or the protocol, has no name for."""


class DeviceError(Error, RuntimeError):
    """A device, or the library of its driver, cannot be used; the text is one line that says why."""


class NameTakenError(Error):
    """Another process listens under this name."""


class PlaceError(Error, OSError):
    """A name, or the directory of the sockets, is not as it must be."""


class UnsupportedError(Error, NotImplementedError):
    """This system cannot do it: sharing needs Linux."""


class RefusedError(Error):
    """The other end answered no; `code` says why, see the codes of NO in the protocol."""

    def __init__(self, text: str, code: int = 0) -> None:
        super().__init__(text, code)
        self.code = code

    def __str__(self) -> str:
        return str(self.args[0])


class UnknownError(RefusedError, LookupError):
    """The other end knows no such name, ticket or lease."""
