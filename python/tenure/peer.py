"""A connection with another process: receive its tensors, offer it ours, ask it for what it has published."""

from __future__ import annotations

import itertools
import json
import socket
import time
from types import TracebackType
from typing import Any, Dict, FrozenSet, Iterator, List, Optional, Sequence, Type, Union, cast

from . import crash, death, process, wire
from .errors import CreditError, EndedError, Error, ProtocolError, RefusedError, UnknownError
from .intake import Intake
from .lending import Lending
from .link import Link, left
from .received import Received, Ticket
from .store import Store

_TEXT_LIMIT = 64 << 20
_QUESTIONS = 64  # more at once the other end would take for a flood
_WITH_OFFER: FrozenSet[int] = frozenset((wire.OFFER,))

Answer = Union[Received, bytes, wire.No]


class _Question:
    """An open question to the other end."""

    __slots__ = ("abandoned", "answer", "kind", "text")

    def __init__(self, kind: int) -> None:
        self.kind = kind
        self.answer: Optional[Answer] = None
        self.text: List[bytes] = []
        self.abandoned = False


class Peer(Link):
    """The other end of a connection. All methods may be called by any thread.

    writable says how received arrays are made: None, read-only over the owner's memory; "copy", a copy each; "cow", over the owner's
    memory, with pages copied by the kernel when they are written. Other processes never see what is written.
    """

    def __init__(self, sock: socket.socket, owner: Store, hello: wire.Hello, writable: Optional[str]) -> None:
        super().__init__(sock)
        self.owner = owner
        """The owner of what this end offers: an Owner."""
        self.writable = writable
        self.instance = hello.instance
        self._intake = Intake(self, hello.instance, owner.max_leases, owner.max_bytes, writable == "cow")
        with owner._table.lock:
            row = owner._table.add(self, hello.instance, hello.leases, hello.bytes)
        self._lending = Lending(self, owner._table, row)
        self.connection = row.number
        self._asked: Dict[int, _Question] = {}
        self._numbers = itertools.count(1)
        process.register(self)
        self._begin()

    # --- receiving ---

    def receive(self, timeout: Optional[float] = None) -> Received:
        """The next tensor that was offered. Raises EndedError after the last one, GoneError if the other end died, Timeout, and DeviceError
        where the other end offers memory of a device that this process does not have."""
        r = self._wait(self._fetch, timeout, "receive")
        crash.at(27)
        return self._made_writable(r)

    def _fetch(self) -> Optional[Received]:
        if self._intake.inbox:
            return self._intake.fetch()
        if self._intake.faults:
            raise self._intake.faults.popleft()
        if self._over or self._heard_end:
            raise self._not_open("receive")
        return None

    def _made_writable(self, r: Received) -> Received:
        if self.writable is not None and not r._held().flags.writeable:
            r._own()
        return r

    def __iter__(self) -> Iterator[Received]:
        """Iterates over the received tensors until the other end ends. Each is closed when the next is requested."""
        while True:
            try:
                r = self.receive()
            except EndedError:
                return
            with r:
                yield r
            del r

    # --- offering ---

    def offer(self, array: Any, label: str = "", *, wait: bool = True, timeout: Optional[float] = None, copy: bool = True) -> None:
        """Offers an array of numpy or of any library that speaks DLPack. One that lies in memory of `Owner.empty`, also a view that another
        library has of it, is offered in place and is immutable from then on; any other is copied into shared memory (or, up to 16 KiB,
        into the message), which copy=False makes an error. Without credit it waits, or raises CreditError."""
        self._check_open("offer")
        self._lending.offer(self.owner._prepare(array, wire.label(label), copy, "offer"), wait, timeout)

    # --- questions ---

    def get(self, name: str, timeout: Optional[float] = None) -> Received:
        """The tensor that the other end has published under a name."""
        answer = self._ask(wire.GET, _name(name), timeout, f"get {name!r}")
        assert isinstance(answer, Received), "BUG: GET was answered otherwise"
        return self._made_writable(answer)

    def ticket(self, received: Received, timeout: Optional[float] = None) -> Ticket:
        """A ticket on a tensor that is held; it counts against what this end said it would hold until it is claimed or cancelled."""
        self._check_open("ticket")
        received._held()
        if received.peer is not self or received.serial not in self._intake.held:
            raise ValueError("ticket: got a tensor without a lease of this peer (small ones have none), want one that was received here")
        answer = self._ask(wire.TICKET, received.serial.to_bytes(8, "little"), timeout, "ticket")
        assert isinstance(answer, bytes), "BUG: TICKET was answered otherwise"
        crash.at(43)
        return Ticket(answer)

    def claim(self, ticket: Union[Ticket, bytes, str], timeout: Optional[float] = None) -> Received:
        """The tensor that a ticket of the same owner stands for. The ticket is used up, unless there is no credit for the tensor."""
        answer = self._ask(wire.CLAIM, Ticket(ticket), timeout, "claim")
        assert isinstance(answer, Received), "BUG: CLAIM was answered otherwise"
        crash.at(45)
        return self._made_writable(answer)

    def cancel(self, ticket: Union[Ticket, bytes, str]) -> None:
        """Ends a ticket that will not be claimed."""
        self._check_open("cancel")
        self._send(wire.with_bytes(wire.CANCEL, 0, Ticket(ticket)))

    def state(self, timeout: Optional[float] = None) -> Dict[str, Any]:
        """The state of the other end's owner: its arenas, tensors and their holders, as in docs/share.md."""
        answer = self._ask(wire.LIST, b"", timeout, "state")
        assert isinstance(answer, bytes), "BUG: LIST was answered otherwise"
        try:
            state = json.loads(answer)
        except ValueError as e:
            raise ProtocolError(f"state: got text that is not JSON: {e}") from None
        if not isinstance(state, dict):
            raise ProtocolError("state: got JSON that is not an object")
        return state

    def drop(self, name: str, timeout: Optional[float] = None) -> None:
        """Asks the other end to withdraw a name; owners refuse it unless they allow it."""
        self._ask(wire.DROP, _name(name), timeout, f"drop {name!r}")

    def _ask(self, kind: int, data: bytes, timeout: Optional[float], what: str) -> Answer:
        self._check_open(what)
        question = _Question(kind)
        deadline = None if timeout is None else time.monotonic() + timeout

        def asked() -> Optional[int]:
            if self._over or self._heard_end:
                raise self._not_open(what)
            if len(self._asked) >= _QUESTIONS:
                return None
            number = next(self._numbers) & 0xFFFFFFFF
            while number == 0 or number in self._asked:
                number = next(self._numbers) & 0xFFFFFFFF
            self._asked[number] = question
            return number

        def answered() -> Optional[Answer]:
            if question.answer is None and (self._over or self._heard_end):
                raise self._not_open(what)
            return question.answer

        number = self._wait(asked, timeout, what)
        self._send(wire.with_bytes(kind, number, data))
        if kind in _SENT:
            crash.at(_SENT[kind])
        try:
            answer = cast(Answer, self._wait(answered, left(deadline), what))
        except BaseException:
            question.abandoned = True  # its answer may still come
            question.answer = None
            raise
        if isinstance(answer, wire.No):
            raise _refusal(answer, what)
        return answer

    # --- what comes ---

    def _take(self, head: wire.Header, packet: memoryview, size: int, fds: Sequence[int], truncated: bool) -> None:
        kind, many, request = head
        if kind == wire.OFFER:
            self._take_offer(request, *wire.offers(many, packet, size))
            return
        if kind == wire.RELEASE:
            self._lending.released(wire.releases(many, packet, size))
            return
        value: Any = wire.body(head, packet, size)
        if kind == wire.ARENA:
            self._intake.arena(value, fds, truncated)
        elif kind == wire.MAPPED:
            self._lending.mapped(value)
        elif kind == wire.REFUSED:
            self._lending.refused(value)
        elif kind == wire.RETIRE:
            self._intake.retire(value)
            self._nudge()
        elif kind == wire.UNMAPPED:
            self._lending.unmapped(value)
        elif kind == wire.TICKET:
            self._lending.ticket(request, value)
        elif kind == wire.CANCEL:
            self._lending.cancel(value)
        elif kind in (wire.GET, wire.CLAIM):
            self._lending.reply(request, kind, value)
        elif kind == wire.DROP:
            self._lending.drop(request, value)
        elif kind == wire.LIST:
            self._lending.listed(request, self.owner._state_text())
        elif kind in (wire.TICKETED, wire.TEXT, wire.NO):
            self._take_answer(kind, many, request, value)
        elif kind == wire.EVENT:
            self._intake.event(value)
        elif kind == wire.OPENED:
            raise ProtocolError(f"opened: got an answer about event {value.slot}, which was not asked")
        elif kind == wire.END:
            self._take_end()
        else:
            raise ProtocolError("hello: got a second one")

    def _take_offer(self, request: int, tensors: List[wire.Tensor], data: bytes) -> None:
        received = self._intake.offer(tensors, data)
        crash.at(26)
        if request:
            if len(received) != 1:
                raise ProtocolError(f"offer: got {len(received)} tensors as an answer, want 1")
            self._answer(request, wire.OFFER, received[0])
        elif not self._said_end:
            with self._lock:
                self._intake.deliver(received)
        # Behind our END they are let go with `received`.

    def _take_answer(self, kind: int, many: int, request: int, value: Any) -> None:
        if kind != wire.TEXT:
            if kind == wire.TICKETED:
                crash.at(42)
            self._answer(request, kind, value)
            return
        question = self._asked.get(request)
        if question is None or question.kind not in _ANSWERS[wire.TEXT]:
            raise ProtocolError(f"text: got an answer to question {request}, want one that was asked for text")
        question.text.append(value)
        if sum(map(len, question.text)) > _TEXT_LIMIT:
            raise ProtocolError(f"text: got more than {_TEXT_LIMIT} bytes")
        if not many:
            self._answer(request, wire.TEXT, b"".join(question.text))

    def _answer(self, number: int, kind: int, answer: Answer) -> None:
        question = self._asked.get(number)
        if question is None or question.kind not in _ANSWERS[kind]:
            raise ProtocolError(f"message of kind {kind}: got an answer to question {number}, want one that was asked for it")
        del self._asked[number]
        if not question.abandoned:
            question.answer = answer

    def _take_end(self) -> None:
        if self._heard_end:
            raise ProtocolError("end: got a second one")
        with self._lock:
            self._heard_end = True
            self._turns.notify_all()
        self._say_end()
        with self.owner._table.lock:
            self.owner._table.wake()
        self._nudge()

    # --- what Link calls ---

    def _holds_nothing(self) -> bool:
        return self._intake.idle()

    def _full(self) -> bool:
        return self._intake.full()

    def _tidy(self) -> None:
        self._intake.tidy()
        with self.owner._table.lock:
            self.owner._table.wake()

    def _hung_up(self) -> None:
        self._lending.over()
        self._intake.end()

    # --- the end ---

    def close(self) -> None:
        """Says that nothing more will be offered or taken. The connection itself lives on for the tensors that are out, in both
        directions; arrays that are held stay valid. Twice is once."""
        if not self._forked and not self._over:
            self._finish()

    def disconnect(self) -> None:
        """Ends the connection at once, for a peer that is stopped, does not read or is not to be trusted. Offers that were not sent are taken
        back. Tensors that were sent are in quarantine: their bytes are not written until the peer has released them or its process is dead,
        and until then they count against what connections of that process may hold. Arenas in which nothing is held leave the owner's limit,
        although their pages exist until that process has unmapped them (see `peer_bytes` of Owner). Received arrays stay valid.

        If the kernel does not tell which process the peer is (the other end of a socketpair, or a process of another PID namespace), the end
        of the connection counts as its death."""
        if self._forked:
            return
        self._over = True
        self._say_end()  # from here on no offer is made, and no arena announced
        self._lending.withdraw()
        self._lending.lose(death.Watch(death.handle(self._sock, self.pid)))
        self._finish()

    def _finish(self) -> None:
        self._over = True
        self._say_end()
        with self._lock:
            self._intake.inbox.clear()
            self._turns.notify_all()
        with self.owner._table.lock:
            self.owner._table.wake()
        self._nudge()

    @property
    def closed(self) -> bool:
        """Whether nothing is left of the connection."""
        return self._closed

    def __enter__(self) -> "Peer":
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], value: Optional[BaseException], trace: Optional[TracebackType]) -> None:
        self.close()

    def __repr__(self) -> str:
        state = "closed" if self._over or self._closed else self._failure[1] if self._failure else "open"
        return f"<tenure.Peer {self.pid} {self.command!r} {state}>"

    def _forget(self) -> None:
        self._intake.forget()
        self._lending.forget()
        self._forget_link()


_SENT = {wire.TICKET: 41, wire.CLAIM: 44}
_ANSWERS: Dict[int, FrozenSet[int]] = {
    wire.OFFER: frozenset((wire.GET, wire.CLAIM)),
    wire.TICKETED: frozenset((wire.TICKET,)),
    wire.TEXT: frozenset((wire.LIST, wire.DROP)),
    wire.NO: frozenset((wire.GET, wire.CLAIM, wire.TICKET, wire.LIST, wire.DROP)),
}


def _name(name: str) -> bytes:
    data = name.encode("utf-8")
    if not 1 <= len(data) <= wire.MAX_NAME:
        raise ValueError(f"name: got {len(data)} bytes, want 1 to {wire.MAX_NAME}")
    return data


def _refusal(no: wire.No, what: str) -> Error:
    text = f"{what}: {no.reason or f'refused with code {no.code}'}"
    if no.code in (wire.NO_NAME, wire.NO_TICKET):
        return UnknownError(text, no.code)
    return CreditError(text) if no.code == wire.NO_CREDIT else RefusedError(text, no.code)
