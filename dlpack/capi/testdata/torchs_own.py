"""What torch's tests of DLPack ask of a producer, written anew for tensors: torch takes them, and its own are taken back.

torch does not install its tests. Names are those of its test/test_dlpack.py where it has such a test.
"""

import pytest
import torch
from _lent import tensor

TYPES = [
    torch.bool, torch.uint8, torch.uint16, torch.uint32, torch.uint64, torch.int8, torch.int16, torch.int32, torch.int64, torch.float16, torch.bfloat16,
    torch.float32, torch.float64, torch.complex64, torch.complex128, torch.float8_e4m3fn, torch.float8_e4m3fnuz, torch.float8_e5m2, torch.float8_e5m2fnuz,
    torch.float8_e8m0fnu, torch.float4_e2m1fn_x2,
]  # fmt: skip


def bits(x):
    return x.contiguous().view(torch.uint8).tolist()


def make(dtype, *shape):
    size = torch.empty((), dtype=dtype).element_size()
    n = size
    for s in shape:
        n *= s
    return (torch.arange(n, dtype=torch.int64) % (2 if dtype == torch.bool else 100)).to(torch.uint8).view(dtype).reshape(shape)


def name(capsule):
    return repr(capsule).split('"')[1]


class TestTorch:
    @pytest.mark.parametrize("dtype", TYPES)
    def test_dlpack_protocol_conversion(self, dtype):
        x = make(dtype, 5, 6)
        z = torch.from_dlpack(tensor(x))
        assert z.dtype == dtype and z.shape == x.shape and bits(z) == bits(x) and z.data_ptr() == x.data_ptr()

    @pytest.mark.parametrize("dtype", TYPES)
    def test_dlpack_capsule_conversion(self, dtype):
        x = make(dtype, 5)
        for asked in ({}, {"max_version": (1, 0)}):
            z = torch.from_dlpack(tensor(x).__dlpack__(**asked))
            assert z.dtype == dtype and bits(z) == bits(x)

    def test_dlpack_shared_storage(self):
        x = torch.zeros(5)
        z = torch.from_dlpack(tensor(x))
        x[0] = 7
        assert z[0] == 7

    def test_dlpack_shared_storage_is_writable(self):
        x = torch.zeros(5)
        assert not flags(tensor(x)) & 1

    def test_dlpack_non_contiguous(self):
        x = torch.arange(25).reshape(5, 5)
        for y in (x[0], x[:, 0], x[1, :], x[1], torch.diagonal(x), x.T, x[::2, 1:], x[:, :0]):
            z = torch.from_dlpack(tensor(y))
            assert torch.equal(z, y) and (not y.numel() or z.stride() == y.stride() and z.data_ptr() == y.data_ptr())

    def test_dlpack_expanded(self):
        y = torch.arange(3).expand(4, 3)
        z = torch.from_dlpack(tensor(y))
        assert torch.equal(z, y) and z.stride() == (0, 1)

    def test_dlpack_normalize_strides(self):
        x = torch.rand(16)
        y = x[::3][:1]
        assert y.shape == (1,) and y.stride() == (3,)
        z = torch.from_dlpack(tensor(y))
        assert z.shape == (1,) and z.stride() == (1,)

    def test_dlpack_keeps_strides(self):
        """As torch has done since it dropped the normalisation."""
        y = torch.rand(16)[::3][:1]
        assert torch.from_dlpack(tensor(y)).stride() == (3,)

    def test_from_dlpack_scalar(self):
        z = torch.from_dlpack(tensor(torch.tensor(2.5)))
        assert z.shape == () and z == 2.5

    def test_max_version(self):
        t = tensor(torch.zeros(3))
        assert name(t.__dlpack__()) == name(t.__dlpack__(max_version=(0, 8))) == "dltensor"
        for version in ((1, 0), (1, 3), (2, 0)):
            assert name(t.__dlpack__(max_version=version)) == "dltensor_versioned"

    def test_copy(self):
        x = torch.arange(9.0)
        for asked, same in ((None, True), (False, True), (True, False)):
            z = torch.from_dlpack(tensor(x), copy=asked)
            assert torch.equal(z, x) and same == (z.data_ptr() == x.data_ptr())
        z = torch.from_dlpack(tensor(x), copy=True)
        z += 1  # it is the consumer's own
        assert x[0] == 0

    def test_copy_of_unversioned(self):
        x = torch.arange(9.0)
        z = torch.from_dlpack(tensor(x).__dlpack__(copy=False))
        assert z.data_ptr() == x.data_ptr()

    def test_device(self):
        x = torch.arange(9.0)
        assert torch.equal(torch.from_dlpack(tensor(x), device="cpu"), x)
        assert torch.equal(torch.from_dlpack(tensor(x), device=torch.device("cpu"), copy=False), x)
        assert tensor(x).__dlpack_device__() == x.__dlpack_device__() == (1, 0)

    def test_unsupported_device(self):
        with pytest.raises(BufferError):
            tensor(torch.zeros(3)).__dlpack__(max_version=(1, 0), dl_device=(10, 0))

    def test_stream_of_the_processor(self):
        """torch takes -1 for no stream there."""
        tensor(torch.zeros(3)).__dlpack__(max_version=(1, 0), stream=-1)

    def test_dlpack_invalid_cpu_stream(self):
        with pytest.raises(Exception):
            tensor(torch.zeros(3)).__dlpack__(max_version=(1, 0), stream=0)

    def test_dlpack_tensor_on_different_device(self):
        with pytest.raises(BufferError):
            tensor(torch.zeros(3)).__dlpack__(max_version=(1, 0), dl_device=(1, 1))

    def test_lifetime(self):
        z = torch.from_dlpack(tensor(torch.arange(1000.0)))  # nobody else has the bytes
        y = torch.full((1000,), -1.0)
        assert torch.equal(z, torch.arange(1000.0)) and y[0] == -1

    def test_automatically_select_in_creation(self):
        x = torch.arange(10)
        assert torch.equal(torch.asarray(tensor(x)), x)


def flags(t):
    import ctypes

    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return ctypes.c_uint64.from_address(get(t.__dlpack__(max_version=(1, 0)), b"dltensor_versioned") + 24).value
