class Tensor:
    """A tensor of the Go program that this interpreter runs in."""

    __slots__ = ("_key", "__weakref__")
    __dlpack_c_exchange_api__ = _exchange_api

    def __init__(self, key):
        self._key = key

    def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None):
        version = -1 if max_version is None else max_version[0] << 32 | max_version[1]
        if stream is None and dl_device is None and copy is None:
            return _export(self._key, version)
        device = 0 if dl_device is None else int(dl_device[0]) << 32 | int(dl_device[1])
        rule = 0 if copy is None else 1 if copy else 2
        return _export(self._key, version, rule | (stream is not None) << 2, device)

    def __dlpack_device__(self):
        return (1, 0)

    def __del__(self):
        _forget(self._key)


def _ask(x, major, minor):
    if tuple(x.__dlpack_device__())[0] not in (1, 3, 11, 20):
        raise BufferError(f"got a tensor on device {x.__dlpack_device__()}, want one in host memory")
    try:
        return x.__dlpack__(max_version=(major, minor))
    except TypeError:
        return x.__dlpack__()


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
