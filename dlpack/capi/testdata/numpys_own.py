"""Runs numpy's own tests of DLPack with tensors as the producer.

Arrays of these tests are of a class whose __dlpack__ is that of a tensor over the same bytes. run() returns the names of those that fail.
"""

import ctypes
import os
import sys
import tempfile
import types

import numpy
import tenure

_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_pointer.restype, _pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
_rename = ctypes.pythonapi.PyCapsule_SetName
_rename.argtypes = [ctypes.py_object, ctypes.c_char_p]
_USED = b"used_dltensor_versioned"

_api = ctypes.cast(_pointer(tenure.Tensor.__dlpack_c_exchange_api__, b"dlpack_exchange_api"), ctypes.POINTER(ctypes.c_void_p))
_to_object = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.POINTER(ctypes.py_object))(_api[4])


def tensor(array):
    """A tensor over the bytes of an array of numpy or torch."""
    array = array.view(numpy.ndarray) if isinstance(array, numpy.ndarray) else array
    capsule = array.__dlpack__(max_version=(1, 3))
    struct = _pointer(capsule, b"dltensor_versioned")
    _rename(capsule, _USED)
    out = ctypes.py_object()
    _to_object(struct, ctypes.byref(out))
    made = out.value
    ctypes.pythonapi.Py_DecRef(ctypes.py_object(made))  # the reference that came with it: module ctypes has made another
    return made


class Array(numpy.ndarray):
    def __dlpack__(self, **arguments):
        return tensor(self).__dlpack__(**arguments)

    def __dlpack_device__(self):
        return tensor(self).__dlpack_device__()


def _lent(make):
    return lambda *args, **kw: make(*args, **kw).view(Array)


def _numpy():
    """numpy, whose arrays are tensors."""
    shown = types.ModuleType("np")
    shown.__dict__.update(numpy.__dict__)
    for name in ("arange", "zeros", "ones", "array", "asarray", "diagonal"):
        setattr(shown, name, _lent(getattr(numpy, name)))
    shown.ndarray = Array
    return shown


class _Results:
    def __init__(self):
        self.passed, self.failed = [], []

    def pytest_runtest_logreport(self, report):
        if report.when == "call" or report.failed:
            name = report.nodeid.split("::", 1)[1].split("::")[-1]
            (self.failed if report.failed else self.passed).append(name)
            if report.failed and os.environ.get("TENURE_SHOW"):
                print(name, report.longreprtext[-600:], file=sys.stderr)


def run(source=None):
    """(passed, failed) of numpy's file, or of another one's text."""
    import pytest

    if source is None:
        with open(os.path.join(os.path.dirname(numpy.__file__), "_core", "tests", "test_dlpack.py")) as f:
            source = f.read()
    module = types.ModuleType("_lent")
    module.np, module.tensor = _numpy(), tensor
    sys.modules["_lent"] = module
    results = _Results()
    with tempfile.TemporaryDirectory() as at:
        path = os.path.join(at, "test_lent.py")
        with open(path, "w") as f:
            f.write(source.replace("import numpy as np\n", "from _lent import np\n"))
        pytest.main(["-p", "no:cacheprovider", "-p", "no:terminal", "--capture=no", "--rootdir", at, path], plugins=[results])
    for name in ("test_lent", "_lent"):
        sys.modules.pop(name, None)
    for name in ("last_type", "last_value", "last_traceback", "last_exc"):  # the frames of what failed, with their arrays
        sys.__dict__.pop(name, None)
    return results.passed, results.failed
