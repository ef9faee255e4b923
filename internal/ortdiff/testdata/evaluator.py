"""Runs models with ONNX's reference implementation, by the protocol of reference.py."""
import struct
import sys
import warnings

import numpy
import onnx
from onnx.helper import np_dtype_to_tensor_dtype, tensor_dtype_to_np_dtype
from onnx.reference import ReferenceEvaluator

warnings.simplefilter("ignore")
numpy.seterr(all="ignore")
STRING = 8
PACKED = {21, 22, 23, 25, 26}  # elements of less than a byte


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
        if kind in PACKED:
            return name, None
        if kind == STRING:
            texts = []
            while data:
                (n,) = struct.unpack("<I", data[:4])
                texts.append(data[4 : 4 + n].decode())
                data = data[4 + n :]
            return name, numpy.array(texts, dtype=object).reshape(dims)
        return name, numpy.frombuffer(data, dtype=tensor_dtype_to_np_dtype(kind)).reshape(dims).copy()


def encode(name, value):
    if isinstance(value, list):
        raise TypeError("the output is no tensor")
    value = numpy.asarray(value)
    kind = STRING if value.dtype.kind in "OUT" else np_dtype_to_tensor_dtype(value.dtype)
    if kind in PACKED:
        raise TypeError("an output of packed elements")
    data = value.tobytes()
    if kind == STRING:
        texts = [str(s).encode() for s in value.reshape(-1).tolist()]
        data = b"".join(struct.pack("<I", len(s)) + s for s in texts)
    head = struct.pack("<I", len(name)) + name.encode() + struct.pack("<II", kind, value.ndim)
    return head + struct.pack("<%dQ" % (value.ndim + 1), *value.shape, len(data)) + data


def answer(model, inputs):
    stage = 1
    try:
        if any(v is None for v in inputs.values()):
            raise TypeError("an input of packed elements")
        model = onnx.load_from_string(model)
        names = [o.name for o in model.graph.output]
        session = ReferenceEvaluator(model)
        stage = 2
        outputs = session.run(names, inputs)
        return struct.pack("<II", 0, len(names)) + b"".join(encode(*pair) for pair in zip(names, outputs))
    except Exception as e:  # whatever it says is the answer
        text = (type(e).__name__ + ": " + str(e)).encode()
        return struct.pack("<II", stage, len(text)) + text


def main():
    reader = Reader(sys.stdin.buffer)
    output = sys.stdout.buffer
    sys.stdout = sys.stderr  # what an operator prints is no answer
    while True:
        model = reader.bytes(reader.u32())
        inputs = dict(reader.tensor() for _ in range(reader.u32()))
        output.write(answer(model, inputs))
        output.flush()


main()
