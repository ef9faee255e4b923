"""The messages of the protocol, field by field as in docs/share.md: bytes to values and back.

Decoding checks every rule that can be checked on a message alone and raises ProtocolError; what depends on the connection (known
arenas, serials, credits) is checked where that is known. Nothing here does input or output.
"""

from __future__ import annotations

import math
import struct
from typing import Dict, List, NamedTuple, Optional, Sequence, Tuple, Union

from . import dtypes
from .errors import ProtocolError

HELLO, ARENA, MAPPED, REFUSED, RETIRE, UNMAPPED, OFFER, RELEASE, TICKET, TICKETED, CLAIM, CANCEL, GET, LIST, TEXT, DROP, NO, END, EVENT, OPENED = range(1, 21)

NO_NAME, NO_TICKET, NO_CREDIT, NO_PERMISSION, NO_MEMORY, NO_SUPPORT = range(1, 7)

VERSION = 2
STATE_VERSION = 1
"""Of the answer to LIST."""
DEVICES = 1
"""An ability: knows arenas of devices, EVENT and OPENED."""
ALLOCATIONS = 2
"""An ability: knows arenas that are memory of other allocators, too."""
CPU, CUDA = 1, 2
"""Devices of tensors, as in DLPack."""
HOST_ARENA, CUDA_ARENA, ALLOCATION_ARENA = 0, 1, 2
PACKET = 65536
INLINE = 65000
REASON = 200
LABEL = 56
MAX_RANK = 8
MAX_OFFERS = 200
MAX_RELEASES = 500
MAX_LEASES = 1 << 20
MAX_TEXT = 60000
MAX_NAME = 255
ALIGN = 64
MAX_U64 = (1 << 64) - 1

_HEADER = struct.Struct("<BBHI")
_HELLO = struct.Struct("<4sHH16s16sIIQQ")
_ARENA = struct.Struct("<QQB7s")
_ON_DEVICE = struct.Struct("<Q16s16s")
_EVENT = struct.Struct("<IB3s64sQ")
_OPENED = struct.Struct("<II")
_U64 = struct.Struct("<Q")
_REFUSED = struct.Struct("<QII")
_CODE = struct.Struct("<I")
_LEAD = struct.Struct("<QQQQI")
_FORM = struct.Struct("<BBHBBHIQQ8q8q")
_MARK = struct.Struct("<II")
_MARK_AT = 20
"""In the form."""
_TENSOR = 256
_FORM_AT, _LABEL_AT = 36, 192
_RELEASE_ONE = struct.Struct("<BBHIQ")

_MAGIC = b"TNUR"
_NO_MARK = bytes(8)


class Hello(NamedTuple):
    """The first message of each end: its identity, and how many leases and bytes of them it is willing to hold."""

    instance: bytes
    boot: bytes
    leases: int
    bytes: int
    version: int = VERSION
    abilities: int = DEVICES | ALLOCATIONS


class Arena(NamedTuple):
    """The announcement of an arena; the descriptor is sent with it, unless it has a handle."""

    id: int
    size: int
    kind: int = HOST_ARENA
    granularity: int = 0
    """Of the device; 0 where the message does not have it, as where the kind is not known."""
    uuid: bytes = b""
    """Of the device."""
    handle: bytes = b""
    """Of an allocation that another allocator of the owner's process made."""


class Event(NamedTuple):
    """An event of the owner's device, which offers name by its slot."""

    slot: int
    handle: bytes


class Opened(NamedTuple):
    """The answer to an event: a reason where it was not opened."""

    slot: int
    code: int
    reason: str


class Mark(NamedTuple):
    """The work that writes a tensor: a record of the event in that slot."""

    slot: int
    record: int


class Refused(NamedTuple):
    """Why an arena was not mapped. errno is 0 where it was no error of the system's."""

    id: int
    errno: int
    reason: str


class No(NamedTuple):
    """Why a question is not answered."""

    code: int
    reason: str


class Form:
    """The element type, shape and place of a tensor in its block; many tensors have the same, so it is decoded once.

    strides are in bytes here, for numpy; those of packed elements are not used.
    """

    __slots__ = ("device", "dtype", "elements", "end", "first", "inline", "packed", "shape", "strides")

    def __init__(self, dtype: dtypes.DType, inline: bool, first: int, shape: Tuple[int, ...], strides: Tuple[int, ...], device: int = CPU) -> None:
        self.device = device
        self.dtype = dtype
        self.inline = inline
        self.first = first
        self.shape = shape
        self.elements = math.prod(shape)
        self.packed = dtype.bits % 8 != 0
        item = dtype.bits // 8
        self.strides = tuple(s * item for s in strides)
        row_major = all(n <= 1 or s == want for n, s, want in zip(shape, strides, rows(shape)))
        if (self.packed or inline) and self.elements and not row_major:
            raise ProtocolError(f"offer: got strides {strides} of shape {shape}, want row-major ones where elements are packed or inline")
        low = first
        if self.elements == 0:
            self.end = first
        elif self.packed:
            self.end = first + dtypes.packed_size(self.elements, dtype.bits)
        else:
            low += sum((n - 1) * s for n, s in zip(shape, self.strides) if s < 0)
            self.end = first + sum((n - 1) * s for n, s in zip(shape, self.strides) if s > 0) + item
        if low < 0:
            raise ProtocolError(f"offer: got elements from byte {low} on, want them within their block")


# Plain tuples: these are made for every packet.
Header = Tuple[int, int, int]
"""Kind, count, request."""
Tensor = Tuple[int, int, int, int, Form, str, Optional[Mark]]
"""Serial, arena, offset, bytes, form, label, and the work that is not complete. An inline one has serial 0, and its bytes lie behind it."""
Body = Union[Hello, Arena, Refused, No, Event, Opened, int, bytes, str]


def rows(shape: Sequence[int]) -> Tuple[int, ...]:
    """Row-major strides in elements."""
    strides, step = [], 1
    for n in reversed(shape):
        strides.append(step)
        step *= n
    return tuple(reversed(strides))


# --- values to bytes ---


def leading(packet: bytes) -> int:
    """The number that a packet's body begins with: the serial of OFFER, the id of ARENA and RETIRE."""
    return int.from_bytes(packet[_HEADER.size : _HEADER.size + 8], "little")


def _clip(text: str, limit: int) -> bytes:
    """UTF-8 of at most limit bytes, cut between characters."""
    return text.encode("utf-8", "replace")[:limit].decode("utf-8", "ignore").encode()


def hello(h: Hello) -> bytes:
    return _HEADER.pack(HELLO, 0, 0, 0) + _HELLO.pack(_MAGIC, h.version, 0, h.instance, h.boot, h.leases, 0, h.bytes, h.abilities)


def arena(a: Arena) -> bytes:
    packet = _HEADER.pack(ARENA, 0, 0, 0) + _ARENA.pack(a.id, a.size, a.kind, bytes(7))
    return packet + (bytes(8) if a.kind == HOST_ARENA else _ON_DEVICE.pack(a.granularity, a.uuid, bytes(16)) + a.handle)


def event(e: Event) -> bytes:
    return _HEADER.pack(EVENT, 0, 0, 0) + _EVENT.pack(e.slot, CUDA_ARENA, bytes(3), e.handle, 0)


def opened(o: Opened) -> bytes:
    return _HEADER.pack(OPENED, 0, 0, 0) + _OPENED.pack(o.slot, o.code) + _clip(o.reason, REASON)


def about(kind: int, arena_id: int) -> bytes:
    """MAPPED, RETIRE or UNMAPPED."""
    return _HEADER.pack(kind, 0, 0, 0) + _U64.pack(arena_id)


def refused(r: Refused) -> bytes:
    return _HEADER.pack(REFUSED, 0, 0, 0) + _REFUSED.pack(r.id, r.errno, 0) + _clip(r.reason, REASON)


def form(dtype: dtypes.DType, inline: bool, first: int, shape: Sequence[int], strides: Sequence[int]) -> bytes:
    """The part of an offered tensor that stays the same from one offer to the next. strides are in elements."""
    pad = (0,) * (MAX_RANK - len(shape))
    return _FORM.pack(dtype.code, dtype.bits, 1, len(shape), 1, 0, int(inline), first, 0, *shape, *pad, *strides, *pad)


def label(text: str) -> bytes:
    """A label as it travels; at most 56 bytes of UTF-8 without a zero."""
    data = text.encode("utf-8")
    if len(data) > LABEL or 0 in data:
        raise ValueError(f"label: got {len(data)} bytes of UTF-8 {text[:60]!r}, want at most {LABEL} and no zero")
    return data


def short_label(text: str) -> bytes:
    """As much of a text as fits a label."""
    return _clip(text, LABEL)


def offer(request: int, serial: int, arena_id: int, offset: int, size: int, generation: int, of: bytes, label: bytes, data: bytes = b"") -> bytes:
    """An OFFER of one tensor; data are the bytes of an inline one."""
    return b"".join((_HEADER.pack(OFFER, 0, 1, request), _LEAD.pack(serial, arena_id, offset, size, generation), of, label.ljust(64, b"\0"), data))


def release(serials: Sequence[int]) -> bytes:
    return _HEADER.pack(RELEASE, 0, len(serials), 0) + struct.pack(f"<{len(serials)}Q", *serials)


def release_one(serial: int) -> bytes:
    return _RELEASE_ONE.pack(RELEASE, 0, 1, 0, serial)


def ticket(request: int, serial: int) -> bytes:
    return _HEADER.pack(TICKET, 0, 0, request) + _U64.pack(serial)


def with_bytes(kind: int, request: int, data: bytes, more: bool = False) -> bytes:
    """TICKETED, CLAIM, CANCEL, GET, LIST, TEXT, DROP or END."""
    return _HEADER.pack(kind, 0, int(more), request) + data


def no(request: int, n: No) -> bytes:
    return _HEADER.pack(NO, 0, 0, request) + _CODE.pack(n.code) + _clip(n.reason, REASON)


# --- bytes to values ---


def _want(ok: bool, text: str) -> None:
    if not ok:
        raise ProtocolError(text)


def _utf8(data: bytes, what: str) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as e:
        raise ProtocolError(f"{what}: got bytes that are not UTF-8: {e}") from None


_ASKS = frozenset((TICKET, CLAIM, GET, LIST, DROP))
_ANSWERS = frozenset((TICKETED, TEXT, NO))
_COUNTED = frozenset((OFFER, RELEASE, TEXT))
_SIZES: Dict[int, Tuple[int, int]] = {
    HELLO: (64, 64), ARENA: (32, 128), MAPPED: (8, 8), REFUSED: (16, 16 + REASON), RETIRE: (8, 8), UNMAPPED: (8, 8),
    TICKET: (8, 8), TICKETED: (16, 16), CLAIM: (16, 16), CANCEL: (16, 16), GET: (1, MAX_NAME), LIST: (0, 0),
    TEXT: (0, PACKET - 8), DROP: (1, MAX_NAME), NO: (4, 4 + REASON), END: (0, 0), OFFER: (256, PACKET - 8), RELEASE: (8, 8 * MAX_RELEASES),
    EVENT: (80, 80), OPENED: (8, 8 + REASON),
}  # fmt: skip


def header(packet: memoryview, size: int) -> Header:
    """The head of a packet of size bytes, and whether its size and numbers fit its kind."""
    if not 8 <= size <= PACKET:
        raise ProtocolError(f"message: got {size} bytes, want 8 to {PACKET}")
    kind, zero, count, request = _HEADER.unpack_from(packet)
    if kind == OFFER and not zero and size >= 264:
        return OFFER, count, request
    bounds = _SIZES.get(kind)
    if bounds is None:
        raise ProtocolError(f"message: got kind {kind}, want one of 1 to {OPENED}")
    _want(zero == 0, f"message: got {zero} behind its kind, want 0")
    _want(bounds[0] <= size - 8 <= bounds[1], f"message of kind {kind}: got {size - 8} bytes, want {bounds[0]} to {bounds[1]}")
    if kind in _ASKS or kind in _ANSWERS:
        _want(request != 0, f"message of kind {kind}: got request 0, want a number")
    elif kind != OFFER:
        _want(request == 0, f"message of kind {kind}: got request {request}, want 0")
    if kind not in _COUNTED:
        _want(count == 0, f"message of kind {kind}: got count {count}, want 0")
    return kind, count, request


def body(head: Header, packet: memoryview, size: int) -> Body:
    """The body behind a header that `header` has checked, except those of OFFER and RELEASE."""
    kind, many, _ = head
    if kind == HELLO:
        return _hello(packet)
    if kind == ARENA:
        return _arena(packet, size - 8)
    if kind in (MAPPED, RETIRE, UNMAPPED, TICKET):
        return int(_U64.unpack_from(packet, 8)[0])
    rest = bytes(packet[8:size])
    if kind == REFUSED:
        arena_id, errno, zero = _REFUSED.unpack_from(packet, 8)
        _want(zero == 0, f"refused: got {zero} behind errno, want 0")
        return Refused(arena_id, errno, _utf8(rest[16:], "refused"))
    if kind == EVENT:
        return _event(packet)
    if kind == OPENED:
        slot, code = _OPENED.unpack_from(rest)
        _want(code <= 1, f"opened: got code {code}, want 0 or 1")
        return Opened(slot, code, _utf8(rest[8:], "opened"))
    if kind == NO:
        return No(int(_CODE.unpack_from(rest)[0]), _utf8(rest[4:], "no"))
    if kind in (GET, DROP):
        return _utf8(rest, "name")
    if kind == TEXT:
        _want(many <= 1, f"text: got count {many}, want 0 or 1")
    return rest


def _hello(packet: memoryview) -> Hello:
    magic, version, zero, instance, boot, leases, zero2, size, caps = _HELLO.unpack_from(packet, 8)
    _want(magic == _MAGIC, f"hello: got magic {magic!r}, want {_MAGIC!r}")
    _want(version >= 1, f"hello: got version {version}, want 1 or later")
    _want(zero == 0 and zero2 == 0, f"hello: got {zero} and {zero2} in fields that must be 0")
    _want(1 <= leases <= MAX_LEASES, f"hello: got {leases} leases at most, want 1 to {MAX_LEASES}")
    _want(size >= 1, "hello: got 0 bytes at most, want at least 1")
    # Capabilities of later versions are ignored.
    _want(caps == 0 or version > 1, f"hello: got capabilities {caps:#x}, want 0 in version 1")
    return Hello(instance, boot, leases, size, version, caps)


def _arena(packet: memoryview, length: int) -> Arena:
    arena_id, size, kind, zeros = _ARENA.unpack_from(packet, 8)
    _want(arena_id != 0, "arena: got id 0, want a random one")
    _want(0 < size < 1 << 62 and (size % 4096 == 0 or kind == ALLOCATION_ARENA), f"arena: got {size} bytes, want a multiple of 4096")
    _want(not any(zeros), "arena: got bytes behind its kind, want zeros")
    if kind == HOST_ARENA:
        _want(length == 32 and not any(packet[32:40]), "arena: got bytes behind its kind, want zeros")
        return Arena(arena_id, size, kind)
    if (kind, length) not in ((CUDA_ARENA, 64), (ALLOCATION_ARENA, 128)):
        return Arena(arena_id, size, kind)
    granularity, uuid, zeros = _ON_DEVICE.unpack_from(packet, 32)
    if kind == ALLOCATION_ARENA:
        _want(granularity == 0 and not any(zeros), "arena: got bytes beside the UUID of an allocation, want zeros")
        return Arena(arena_id, size, kind, 0, uuid, bytes(packet[72:136]))
    _want(granularity > 0 and size % granularity == 0, f"arena: got {size} bytes in units of {granularity}, want whole ones")
    _want(not any(zeros), "arena: got bytes behind the UUID, want zeros")
    return Arena(arena_id, size, kind, granularity, uuid)


def _event(packet: memoryview) -> Event:
    slot, kind, zeros, handle, zero = _EVENT.unpack_from(packet, 8)
    _want(slot != 0 and kind == CUDA_ARENA, f"event: got slot {slot} of kind {kind}, want a slot of kind {CUDA_ARENA}")
    _want(not any(zeros) and zero == 0, "event: got bytes behind its kind or its handle, want zeros")
    return Event(slot, handle)


def releases(many: int, packet: memoryview, size: int) -> Tuple[int, ...]:
    """The serials of a RELEASE."""
    if not 1 <= many <= MAX_RELEASES or size != 8 + 8 * many:
        raise ProtocolError(f"release: got count {many} in {size} bytes")
    return _U64.unpack_from(packet, 8) if many == 1 else struct.unpack_from(f"<{many}Q", packet, 8)


_forms: Dict[bytes, Form] = {}


def _form(key: bytes) -> Form:
    code, bits, lanes, rank, device, number, flags, first, events, *dims = _FORM.unpack(key)
    _want(lanes == 1 and bits >= 1, f"offer: got type {code}, {bits}, {lanes}, want lanes of 1 and bits of at least 1")
    _want(rank <= MAX_RANK, f"offer: got rank {rank}, want at most {MAX_RANK}")
    _want(device in (CPU, CUDA) and number == 0, f"offer: got device {device}, {number}, want {CPU} or {CUDA}, and 0")
    _want(device == CPU or flags == 0, "offer: got an inline tensor of a device, want one in an arena")
    _want(flags <= 1, f"offer: got flags {flags:#x}, want 0 or 1")
    _want(events == 0, f"offer: got record {events}, want 0 of host memory and of complete work")
    shape, strides = tuple(dims[:rank]), tuple(dims[8 : 8 + rank])
    _want(not any(dims[rank:8]) and not any(dims[8 + rank :]), f"offer: got sizes or strides behind rank {rank}, want zeros")
    _want(all(n >= 0 for n in shape), f"offer: got shape {shape}, want sizes from 0 on")
    known = Form(dtypes.from_codes(code, bits), flags == 1, first, shape, strides, device)
    if len(_forms) >= 1024:
        _forms.clear()
    _forms[key] = known
    return known


def decode_form(key: bytes) -> Form:
    """What `form` encodes."""
    return _forms.get(key) or _form(key)


def offers(count: int, packet: memoryview, size: int) -> Tuple[List[Tensor], bytes]:
    """The tensors of an OFFER, and the bytes of an inline one."""
    if not (1 <= count <= MAX_OFFERS and size >= 8 + _TENSOR * count):
        raise ProtocolError(f"offer: got count {count} in {size} bytes")
    tensors = []
    for at in range(8, 8 + _TENSOR * count, _TENSOR):
        serial, arena_id, offset, length, _ = _LEAD.unpack_from(packet, at)
        key = bytes(packet[at + _FORM_AT : at + _LABEL_AT])
        mark = None
        if key[5] == CUDA and key[_MARK_AT : _MARK_AT + 4] != _NO_MARK[:4]:
            mark = Mark(*_MARK.unpack_from(key, _MARK_AT))
            key = key[:_MARK_AT] + _NO_MARK + key[_MARK_AT + 8 :]  # each record is another one
        of = _forms.get(key) or _form(key)
        text = bytes(packet[at + _LABEL_AT : at + _TENSOR]).rstrip(b"\0")
        if len(text) > LABEL or 0 in text:
            raise ProtocolError(f"offer: got label {text!r}, want at most {LABEL} bytes and zeros behind it")
        if of.end > length:
            raise ProtocolError(f"offer: got elements up to byte {of.end}, want them within their block of {length} bytes")
        if of.inline:
            _want(serial == 0 and arena_id == 0 and offset == 0, "offer: got an inline tensor with a serial, an arena or an offset")
            _want(length <= INLINE and count == 1, f"offer: got an inline tensor of {length} bytes among {count}, want one of at most {INLINE}")
        elif serial == 0 or arena_id == 0 or offset % ALIGN:
            raise ProtocolError(f"offer: got serial {serial}, arena {arena_id:x}, offset {offset}, want numbers and an offset that is a multiple of {ALIGN}")
        tensors.append((serial, arena_id, offset, length, of, _utf8(text, "label"), mark))
    end = 8 + _TENSOR * count
    want = end + (length if of.inline else 0)
    if size != want:
        raise ProtocolError(f"offer: got {size} bytes for {count} tensors, want {want}")
    return tensors, bytes(packet[end:size]) if size > end else b""
