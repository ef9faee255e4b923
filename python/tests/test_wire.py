"""Every message there and back, and every malformed field refused."""

from __future__ import annotations

import random
import struct
from typing import Any, Callable, List, Tuple

import pytest

from tenure import dtypes, wire
from tenure.errors import ProtocolError

F32 = dtypes.from_codes(2, 32)
I4 = dtypes.from_codes(0, 4)


def decode(packet: bytes) -> Tuple[wire.Header, Any]:
    view = memoryview(packet)
    head = wire.header(view, len(view))
    if head[0] == wire.OFFER:
        return head, wire.offers(head[1], view, len(view))
    if head[0] == wire.RELEASE:
        return head, wire.releases(head[1], view, len(view))
    return head, wire.body(head, view, len(view))


def form(shape: Tuple[int, ...] = (2, 3), strides: Any = None, first: int = 0, of: dtypes.DType = F32, inline: bool = False) -> bytes:
    return wire.form(of, inline, first, shape, wire.rows(shape) if strides is None else strides)


def offer(**change: Any) -> bytes:
    fields = {"request": 0, "serial": 7, "arena_id": 99, "offset": 128, "size": 24, "generation": 3, "of": form(), "label": b"frame", **change}
    return wire.offer(**fields)


HELLO = wire.Hello(bytes(range(16)), bytes(16), 1024, 1 << 40)
ON_DEVICE = wire.Arena(5, 2 << 21, wire.CUDA_ARENA, 2 << 20, bytes(range(16)))
ALLOCATION = wire.Arena(5, 1001, wire.ALLOCATION_ARENA, 0, bytes(range(16)), bytes(range(64)))
EVENT = wire.Event(3, bytes(range(64)))
GOOD: List[Tuple[bytes, Tuple[int, int, int], Any]] = [
    (wire.hello(HELLO), (wire.HELLO, 0, 0), HELLO),
    (wire.arena(ON_DEVICE), (wire.ARENA, 0, 0), ON_DEVICE),
    (wire.arena(ALLOCATION), (wire.ARENA, 0, 0), ALLOCATION),
    (wire.arena(wire.Arena(5, 4096)), (wire.ARENA, 0, 0), wire.Arena(5, 4096)),
    (wire.event(EVENT), (wire.EVENT, 0, 0), EVENT),
    (wire.opened(wire.Opened(3, 1, "no driver")), (wire.OPENED, 0, 0), wire.Opened(3, 1, "no driver")),
    (wire.about(wire.MAPPED, 5), (wire.MAPPED, 0, 0), 5),
    (wire.refused(wire.Refused(5, 24, "no descriptor")), (wire.REFUSED, 0, 0), wire.Refused(5, 24, "no descriptor")),
    (wire.about(wire.RETIRE, 5), (wire.RETIRE, 0, 0), 5),
    (wire.about(wire.UNMAPPED, 5), (wire.UNMAPPED, 0, 0), 5),
    (wire.release([1, 2, 1 << 63]), (wire.RELEASE, 3, 0), (1, 2, 1 << 63)),
    (wire.release_one(9), (wire.RELEASE, 1, 0), (9,)),
    (wire.ticket(4, 17), (wire.TICKET, 0, 4), 17),
    (wire.with_bytes(wire.TICKETED, 4, b"t" * 16), (wire.TICKETED, 0, 4), b"t" * 16),
    (wire.with_bytes(wire.CLAIM, 4, b"t" * 16), (wire.CLAIM, 0, 4), b"t" * 16),
    (wire.with_bytes(wire.CANCEL, 0, b"t" * 16), (wire.CANCEL, 0, 0), b"t" * 16),
    (wire.with_bytes(wire.GET, 4, "größe".encode()), (wire.GET, 0, 4), "größe"),
    (wire.with_bytes(wire.LIST, 4, b""), (wire.LIST, 0, 4), b""),
    (wire.with_bytes(wire.TEXT, 4, b"{}", more=True), (wire.TEXT, 1, 4), b"{}"),
    (wire.with_bytes(wire.DROP, 4, b"w"), (wire.DROP, 0, 4), "w"),
    (wire.no(4, wire.No(3, "no credit")), (wire.NO, 0, 4), wire.No(3, "no credit")),
    (wire.with_bytes(wire.END, 0, b""), (wire.END, 0, 0), b""),
]


@pytest.mark.parametrize("packet,head,body", GOOD, ids=[str(p[0]) for p, *_ in GOOD])
def test_round_trip(packet: bytes, head: Any, body: Any) -> None:
    assert decode(packet) == (head, body)


def test_sizes_of_the_document() -> None:
    assert [len(p) - 8 for p, *_ in GOOD[:4]] == [64, 64, 128, 32]
    assert len(offer()) == 8 + 256
    packet = offer(label=b"l" * 56)
    assert struct.unpack_from("<Q", packet, 8 + 0) == (7,) and packet[8 + 192 : 8 + 248] == b"l" * 56
    assert struct.unpack_from("<BBHBBH", packet, 8 + 36) == (2, 32, 1, 2, 1, 0)
    assert struct.unpack_from("<8q", packet, 8 + 64)[:2] == (2, 3) and struct.unpack_from("<8q", packet, 8 + 128)[:2] == (3, 1)


def test_offer() -> None:
    head, (tensors, data) = decode(offer(request=6))
    assert head == (wire.OFFER, 1, 6) and data == b""
    ((serial, arena, offset, size, of, label, mark),) = tensors
    assert mark is None
    assert (serial, arena, offset, size, label) == (7, 99, 128, 24, "frame")
    assert (of.shape, of.strides, of.first, of.end, of.dtype.name) == ((2, 3), (12, 4), 0, 24, "f32")


def test_offer_of_many() -> None:
    packets = [offer(serial=n, label=str(n).encode()) for n in range(1, 201)]
    joined = struct.pack("<BBHI", wire.OFFER, 0, 200, 0) + b"".join(p[8:] for p in packets)
    _, (tensors, _) = decode(joined)
    assert [t[0] for t in tensors] == list(range(1, 201)) and tensors[199][5] == "200"


def test_inline_offer() -> None:
    _, (tensors, data) = decode(wire.offer(0, 0, 0, 0, 24, 0, form(inline=True), b"", b"x" * 24))
    assert data == b"x" * 24 and tensors[0][0] == 0 and tensors[0][4].inline


@pytest.mark.parametrize(
    "of,size",
    [
        (form((2, 3), (-3, 1), first=12), 24),  # from the last row up
        (form((1000, 3), (0, 1)), 12),  # one row a thousand times
        (form((0, 5)), 0),
        (form(()), 4),
        (form((3,), (2,), first=4), 24),
        (form((7,), of=I4), 4),
        (form((1, 5), (77, 1), of=I4), 3),
        (form((2,) * 8), 1024),
    ],
)
def test_forms_that_fit(of: bytes, size: int) -> None:
    decode(offer(of=of, size=size))


@pytest.mark.parametrize(
    "of,size",
    [
        (form((2, 3)), 23),
        (form((2, 3), (-3, 1)), 24),
        (form((2, 3), (-3, 1), first=11), 24),
        (form((2,), (1 << 62,)), 1 << 60),
        (form((3,), (-(1 << 63),)), 1 << 60),
        (form((1 << 62, 1 << 62)), 1 << 60),
        (form((), first=1), 4),
        (form((0,), first=5), 4),
        (form((9,), of=I4), 4),
        (form((2, 4), (1, 2), of=I4), 8),
        (form(((1 << 63) - 1,)), (1 << 64) - 1),
    ],
)
def test_forms_that_do_not_fit(of: bytes, size: int) -> None:
    with pytest.raises(ProtocolError):
        decode(offer(of=of, size=size))


def patched(packet: bytes, at: int, layout: str, *values: Any) -> bytes:
    b = bytearray(packet)
    struct.pack_into(layout, b, at, *values)
    return bytes(b)


HEADS = {**{p[0]: p for p, *_ in GOOD}, wire.OFFER: offer()}
REFUSED: List[Tuple[str, Callable[[], bytes]]] = [
    ("no packet", lambda: b""),
    ("half a head", lambda: b"\1\0\0\0"),
    ("kind 0", lambda: bytes(8)),
    ("kind 21", lambda: bytes([21]) + bytes(7)),
    ("kind 255", lambda: bytes([255]) + bytes(7)),
    *((f"byte behind kind {k}", lambda p=p: patched(p, 1, "B", 1)) for k, p in HEADS.items()),
    *((f"kind {k} too short", lambda p=p: p[:-1]) for k, p in HEADS.items() if k not in (wire.REFUSED, wire.GET, wire.DROP, wire.TEXT, wire.NO, wire.OPENED)),
    *((f"kind {k} too long", lambda p=p: p + b"x") for k, p in HEADS.items() if k not in (wire.REFUSED, wire.GET, wire.DROP, wire.TEXT, wire.NO, wire.OPENED)),
    *((f"count of kind {k}", lambda p=p: patched(p, 2, "<H", 9)) for k, p in HEADS.items()),
    *((f"request of kind {k}", lambda p=p: patched(p, 4, "<I", 9)) for k, p in HEADS.items() if decode(p)[0][2] == 0 and k != wire.OFFER),
    *((f"no request of kind {k}", lambda p=p: patched(p, 4, "<I", 0)) for k, p in HEADS.items() if decode(p)[0][2] != 0 and k != wire.OFFER),
    ("hello: magic", lambda: patched(HEADS[wire.HELLO], 8, "4s", b"TNUS")),
    ("hello: version 0", lambda: patched(HEADS[wire.HELLO], 12, "<H", 0)),
    ("hello: zero behind version", lambda: patched(HEADS[wire.HELLO], 14, "<H", 1)),
    ("hello: no leases", lambda: patched(HEADS[wire.HELLO], 48, "<I", 0)),
    ("hello: too many leases", lambda: patched(HEADS[wire.HELLO], 48, "<I", (1 << 20) + 1)),
    ("hello: zero behind leases", lambda: patched(HEADS[wire.HELLO], 52, "<I", 1)),
    ("hello: no bytes", lambda: patched(HEADS[wire.HELLO], 56, "<Q", 0)),
    ("hello: capabilities", lambda: patched(HEADS[wire.HELLO], 12, "<H", 1)),
    ("arena: kind 0 with a device", lambda: patched(wire.arena(ON_DEVICE), 24, "B", 0)),
    ("arena: no granularity", lambda: patched(wire.arena(ON_DEVICE), 32, "<Q", 0)),
    ("arena: half a unit", lambda: patched(wire.arena(ON_DEVICE), 32, "<Q", 3 << 20)),
    ("arena: behind the UUID", lambda: patched(wire.arena(ON_DEVICE), 71, "B", 1)),
    ("arena: granularity of an allocation", lambda: patched(wire.arena(ALLOCATION), 32, "<Q", 1)),
    ("arena: behind the UUID of an allocation", lambda: patched(wire.arena(ALLOCATION), 71, "B", 1)),
    ("arena: behind the handle", lambda: wire.arena(ALLOCATION) + b"x"),
    ("event: no slot", lambda: patched(wire.event(EVENT), 8, "<I", 0)),
    ("event: kind", lambda: patched(wire.event(EVENT), 12, "B", 0)),
    ("event: behind the kind", lambda: patched(wire.event(EVENT), 15, "B", 1)),
    ("event: behind the handle", lambda: patched(wire.event(EVENT), 87, "B", 1)),
    ("opened: code", lambda: patched(HEADS[wire.OPENED], 12, "<I", 2)),
    ("opened: not UTF-8", lambda: HEADS[wire.OPENED][:16] + b"\xff"),
    ("offer: inline on a device", lambda: patched(wire.offer(0, 0, 0, 0, 24, 0, form(inline=True), b"", bytes(24)), 8 + 41, "B", 2)),
    ("offer: record of no event", lambda: patched(patched(offer(), 8 + 41, "B", 2), 8 + 60, "<I", 5)),
    ("arena: id 0", lambda: patched(HEADS[wire.ARENA], 8, "<Q", 0)),
    ("arena: size 0", lambda: patched(HEADS[wire.ARENA], 16, "<Q", 0)),
    ("arena: half a page", lambda: patched(HEADS[wire.ARENA], 16, "<Q", 4095)),
    ("arena: too large", lambda: patched(HEADS[wire.ARENA], 16, "<Q", 1 << 63)),
    ("arena: zeros", lambda: patched(HEADS[wire.ARENA], 39, "B", 1)),
    ("refused: zero", lambda: patched(HEADS[wire.REFUSED], 20, "<I", 1)),
    ("refused: long reason", lambda: HEADS[wire.REFUSED][:24] + b"r" * 201),
    ("refused: not UTF-8", lambda: HEADS[wire.REFUSED][:24] + b"\xff"),
    ("no: long reason", lambda: HEADS[wire.NO][:12] + b"r" * 201),
    ("no: not UTF-8", lambda: HEADS[wire.NO][:12] + b"\xff"),
    ("get: no name", lambda: HEADS[wire.GET][:8]),
    ("get: long name", lambda: HEADS[wire.GET][:8] + b"n" * 256),
    ("get: not UTF-8", lambda: HEADS[wire.GET][:8] + b"\xc3"),
    ("text: count 2", lambda: patched(HEADS[wire.TEXT], 2, "<H", 2)),
    ("release: none", lambda: struct.pack("<BBHI", wire.RELEASE, 0, 0, 0)),
    ("release: 501", lambda: struct.pack("<BBHI", wire.RELEASE, 0, 501, 0) + bytes(8 * 501)),
    ("offer: none", lambda: patched(offer(), 2, "<H", 0)),
    ("offer: 201", lambda: struct.pack("<BBHI", wire.OFFER, 0, 201, 0) + offer()[8:] * 201),
    ("offer: serial 0", lambda: offer(serial=0)),
    ("offer: arena 0", lambda: offer(arena_id=0)),
    ("offer: offset", lambda: offer(offset=65)),
    ("offer: lanes", lambda: patched(offer(), 8 + 38, "<H", 2)),
    ("offer: bits 0", lambda: patched(offer(), 8 + 37, "B", 0)),
    ("offer: rank 9", lambda: patched(offer(), 8 + 40, "B", 9)),
    ("offer: device", lambda: patched(offer(), 8 + 41, "B", 3)),
    ("offer: device number", lambda: patched(offer(), 8 + 42, "<H", 1)),
    ("offer: flags", lambda: patched(offer(), 8 + 44, "<I", 2)),
    ("offer: inline without being alone", lambda: patched(offer(), 8 + 44, "<I", 1)),
    ("offer: events", lambda: patched(offer(), 8 + 56, "<Q", 1)),
    ("offer: negative size", lambda: patched(offer(), 8 + 64, "<q", -1)),
    ("offer: size behind rank", lambda: patched(offer(), 8 + 64 + 16, "<q", 1)),
    ("offer: stride behind rank", lambda: patched(offer(), 8 + 128 + 16, "<q", 1)),
    ("offer: label not UTF-8", lambda: offer(label=b"\xff")),
    ("offer: zero in label", lambda: offer(label=b"a\0b")),
    ("offer: bytes behind label", lambda: patched(offer(), 8 + 255, "B", 1)),
    ("offer: bytes behind label are no label", lambda: patched(offer(), 8 + 248, "B", 1)),
    ("inline: arena", lambda: wire.offer(0, 0, 1, 0, 24, 0, form(inline=True), b"", bytes(24))),
    ("inline: offset", lambda: wire.offer(0, 0, 0, 64, 24, 0, form(inline=True), b"", bytes(24))),
    ("inline: serial", lambda: wire.offer(0, 3, 0, 0, 24, 0, form(inline=True), b"", bytes(24))),
    ("inline: too large", lambda: wire.offer(0, 0, 0, 0, 65001, 0, form((65001,), of=dtypes.from_codes(1, 8), inline=True), b"", bytes(65001))),
    ("inline: too little data", lambda: wire.offer(0, 0, 0, 0, 24, 0, form(inline=True), b"", bytes(23))),
    ("inline: too much data", lambda: wire.offer(0, 0, 0, 0, 24, 0, form(inline=True), b"", bytes(25))),
    ("inline: not row-major", lambda: wire.offer(0, 0, 0, 0, 24, 0, form(strides=(1, 2), inline=True), b"", bytes(24))),
    ("inline: two", lambda: struct.pack("<BBHI", wire.OFFER, 0, 2, 0) + wire.offer(0, 0, 0, 0, 0, 0, form((0,), inline=True), b"")[8:] * 2),
]


@pytest.mark.parametrize("what,make", REFUSED, ids=[what for what, _ in REFUSED])
def test_malformed(what: str, make: Callable[[], bytes]) -> None:
    with pytest.raises(ProtocolError):
        decode(make())


def test_random_packets_are_decoded_or_refused() -> None:
    """Nothing but ProtocolError comes out, whatever goes in."""
    random.seed(20)
    seeds = [p for p, *_ in GOOD] + [offer(), wire.offer(0, 0, 0, 0, 24, 0, form(inline=True), b"", bytes(24))]
    decoded = refused = 0
    for _ in range(30000):
        packet = bytearray(random.choice(seeds)) if random.random() < 0.9 else bytearray(random.randbytes(random.randrange(400)))
        for _ in range(random.randrange(4)):
            if packet:
                at = random.randrange(len(packet))
                packet[at] = random.choice([0, 1, 255, random.randrange(256)])
        if random.random() < 0.2:
            packet = packet[: random.randrange(len(packet) + 1)]
        try:
            decode(bytes(packet))
            decoded += 1
        except ProtocolError:
            refused += 1
    assert decoded > 1000 and refused > 1000


def test_texts_are_cut_between_characters() -> None:
    _, refused = decode(wire.refused(wire.Refused(1, 0, "ä" * 200)))
    assert refused.reason == "ä" * 100
    assert wire.short_label("x" + "€" * 30) == ("x" + "€" * 18).encode()
    with pytest.raises(ValueError, match="at most 56"):
        wire.label("ä" * 29)


def test_offer_on_a_device() -> None:
    packet = patched(patched(offer(), 8 + 41, "B", wire.CUDA), 8 + 56, "<II", 3, 17)
    for record in (17, 18):
        _, (tensors, _) = decode(patched(packet, 8 + 60, "<I", record))
        ((_, _, _, _, of, _, mark),) = tensors
        assert of.device == wire.CUDA and mark == wire.Mark(3, record)
    assert decode(packet)[1][0][0][4] is of  # the record is no part of the form
