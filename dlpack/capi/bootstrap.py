import operator as _operator


class Tensor:
    """A tensor of the Go program that this interpreter runs in."""

    __slots__ = ("_key", "_place", "__weakref__")
    __dlpack_c_exchange_api__ = _exchange_api

    def __init__(self, key, kind, number):
        self._key = key
        self._place = kind, number

    def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None):
        version = -1 if max_version is None else _version(max_version)
        if stream is None and dl_device is None and copy is None:
            return _export(self._key, version)
        if copy is not None and not isinstance(copy, bool):
            raise TypeError(f"dlpack export: got copy {copy!r}, want True, False or None")
        rule = 0 if copy is None else 1 if copy else 2
        device = 0 if dl_device is None else _device(dl_device)
        number = 0 if stream is None else _stream(stream, self._place[0])
        return _export(self._key, version, rule | (stream is not None) << 2 | (dl_device is not None) << 3, device, number)

    def __dlpack_device__(self):
        return self._place

    def __del__(self):
        _forget(self._key)


def _two(pair, what):
    if not isinstance(pair, tuple) or len(pair) != 2:
        raise TypeError(f"dlpack export: got {what} {pair!r}, want a tuple of two integers")
    try:
        return _operator.index(pair[0]), _operator.index(pair[1])
    except TypeError:
        raise TypeError(f"dlpack export: got {what} {pair!r}, want a tuple of two integers") from None


def _version(pair):
    """A version as one number. What is larger than any is as good as the largest."""
    major, minor = _two(pair, "max_version")
    if major < 0 or minor < 0:
        raise ValueError(f"dlpack export: got max_version {pair!r}, want numbers from 0 on")
    return min(major, 0x7FFFFFFF) << 32 | min(minor, 0x7FFFFFFF)


def _device(pair):
    """A device as one number."""
    kind, number = _two(pair, "dl_device")
    if not (-(1 << 31) <= kind < 1 << 31 and -(1 << 31) <= number < 1 << 31):
        raise BufferError(f"dlpack export: got device {pair!r}, want (1, 0), host memory")
    return kind << 32 | number & 0xFFFFFFFF


def _stream(stream, kind):
    """A stream as a number. In host memory there is none, whatever its type."""
    if kind in _host:
        return 0
    try:
        number = _operator.index(stream)
    except TypeError:
        raise TypeError(f"dlpack export: got stream {stream!r}, want an integer or None") from None
    if not -(1 << 63) <= number < 1 << 63:
        raise BufferError(f"dlpack export: got stream {stream!r}, want the address of one")
    return number


_host = 1, 3, 11, 20


class _Away:
    """What an expression yielded whose bytes are on a device."""

    def __init__(self, value, place):
        self.value = value
        self.place = place


def _ask(x, major, minor):
    kind, number = x.__dlpack_device__()
    if kind not in _host:
        return _Away(x, int(kind) << 32 | int(number) & 0xFFFFFFFF)
    try:
        return x.__dlpack__(max_version=(major, minor))
    except TypeError:
        return x.__dlpack__()


def _place(got):
    """The device of what _get returned, 0 if that is not an _Away."""
    return got.place if isinstance(got, _Away) else 0


def _ask_on(away, stream, major, minor):
    try:
        return away.value.__dlpack__(stream=stream, max_version=(major, minor))
    except TypeError:
        return away.value.__dlpack__(stream=stream)


def _run(source, names):
    exec(compile(source, "<go>", "exec"), names)


def _get(source, names, major, minor):
    return _ask(eval(compile(source, "<go>", "eval"), names), major, minor)


def _guard(f, *args):
    """Returns what f does, or the text of what it raised."""
    try:
        return f(*args)
    except BaseException:
        import traceback

        return traceback.format_exc()
