"""Runs models with ONNX Runtime, without its optimiser unless an argument "optimised" is given. Reads requests on standard input and answers on standard output, numbers little endian.

request: u32 length of the model, the model, u32 number of inputs, inputs
tensor:  u32 length of the name, the name, u32 element type, u32 rank, u64 sizes, u64 length of the data, the data (of strings, each behind
         its length, u32)
answer:  u32 0, u32 number of outputs, outputs; or u32 1 (did not load) or 2 (did not run), u32 length, the error
"""
import ctypes
import struct
import sys

import numpy
import onnxruntime
from onnxruntime.capi import onnxruntime_pybind11_state as binding

CPU = binding.OrtDevice(binding.OrtDevice.cpu(), binding.OrtDevice.default_memory(), 0)


STRING = 8
KINDS = {"float32": 1, "uint8": 2, "int8": 3, "uint16": 4, "int16": 5, "int32": 6, "int64": 7, "object": STRING, "bool": 9, "float16": 10, "float64": 11, "uint32": 12, "uint64": 13}


def pack(texts):
    """Each string stands behind its length."""
    texts = [s.encode() for s in texts.reshape(-1).tolist()]
    return b"".join(struct.pack("<I", len(s)) + s for s in texts)


def strings(data):
    found = []
    while data:
        (n,) = struct.unpack("<I", data[:4])
        found.append(data[4 : 4 + n].decode())
        data = data[4 + n :]
    return found


class Reader:
    def __init__(self, file):
        self.file = file

    def bytes(self, n):
        data = self.file.read(n)
        if len(data) < n:
            sys.exit(0)  # nobody asks any more
        return data

    def u32(self):
        return struct.unpack("<I", self.bytes(4))[0]

    def u64(self):
        return struct.unpack("<Q", self.bytes(8))[0]

    def tensor(self):
        name = self.bytes(self.u32()).decode()
        kind = self.u32()
        dims = [self.u64() for _ in range(self.u32())]
        data = self.bytes(self.u64())
        if kind == STRING:
            return name, numpy.array(strings(data), dtype=object).reshape(dims)
        value = binding.OrtValue.ortvalue_from_shape_and_onnx_type(dims, kind, CPU)
        if data:
            ctypes.memmove(value.data_ptr(), data, len(data))
        return name, value


def listed(name, value):
    """Yields the tensors of a sequence, or of maps of the same keys, under the names that Tenure has for them."""
    if isinstance(value, list) and value and isinstance(value[0], dict):
        keys = list(value[0])
        yield name + ".keys", numpy.array(keys, dtype=object if isinstance(keys[0], str) else numpy.int64)
        yield name + ".values", numpy.array([[row[k] for k in keys] for row in value], dtype=numpy.float32)
    elif isinstance(value, list):
        for i, element in enumerate(value):
            yield "%s[%d]" % (name, i), numpy.asarray(element)
    else:
        yield name, value


def mapped(inputs):
    """Makes maps of pairs of tensors x.keys and x.values."""
    for name in [k[: -len(".keys")] for k in inputs if k.endswith(".keys")]:
        keys, values = (as_array(inputs.pop(name + part)).tolist() for part in (".keys", ".values"))
        inputs[name] = dict(zip(keys, values))
    return inputs


def as_array(value):
    return value.numpy() if hasattr(value, "numpy") else value


def encode(name, value):
    if isinstance(value, numpy.ndarray):
        kind, dims = KINDS[value.dtype.name], value.shape
        head = struct.pack("<I", len(name)) + name.encode() + struct.pack("<II", kind, len(dims))
        data = pack(value) if kind == STRING else value.tobytes()
        return head + struct.pack("<%dQ" % (len(dims) + 1), *dims, len(data)) + data
    if not value.is_tensor():
        raise TypeError("the output is no tensor")
    dims = value.shape()
    head = struct.pack("<I", len(name)) + name.encode() + struct.pack("<II", value.element_type(), len(dims))
    if value.element_type() == STRING:
        return encode(name, value.numpy())
    n = value.tensor_size_in_bytes()
    data = ctypes.string_at(value.data_ptr(), n) if n else b""
    return head + struct.pack("<%dQ" % (len(dims) + 1), *dims, n) + data


class Sessions:
    """Makes sessions. That of the last model stays: a model that is asked for at many sizes is loaded once."""

    def __init__(self, options):
        self.options, self.model, self.session = options, None, None

    def of(self, model):
        if model != self.model:
            self.model = None
            self.session = onnxruntime.InferenceSession(model, self.options, providers=["CPUExecutionProvider"])
            self.model = model
        return self.session


def answer(model, inputs, sessions):
    stage = 1
    try:
        session = sessions.of(model)
        stage = 2
        names = [o.name for o in session.get_outputs()]
        inputs = mapped(inputs)
        lists = any(not o.type.startswith("tensor") for o in session.get_outputs())
        if lists or any(isinstance(v, (numpy.ndarray, dict)) for v in inputs.values()):  # an OrtValue is not made of these
            inputs = {k: as_array(v) for k, v in inputs.items()}
            outputs = session.run(names, inputs)
        else:
            outputs = list(session._sess.run_with_ort_values(inputs, names, None))
        tensors = [encode(*pair) for name, value in zip(names, outputs) for pair in listed(name, value)]
        return struct.pack("<II", 0, len(tensors)) + b"".join(tensors)
    except Exception as e:  # whatever ONNX Runtime says is the answer
        text = str(e).encode()
        return struct.pack("<II", stage, len(text)) + text


def main():
    onnxruntime.set_default_logger_severity(4)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.log_severity_level = 4
    if "optimised" not in sys.argv:
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    reader = Reader(sys.stdin.buffer)
    sessions = Sessions(options)
    while True:
        model = reader.bytes(reader.u32())
        inputs = dict(reader.tensor() for _ in range(reader.u32()))
        sys.stdout.buffer.write(answer(model, inputs, sessions))
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
