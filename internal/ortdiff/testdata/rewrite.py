"""Rewrites models as ONNX Runtime's optimiser and quantiser do, by the protocol of reference.py.

The first input is a string named "how": "basic", "extended" or "all" (a level of the optimiser), "dynamic" (weights of 8 bits), "qdq" or
"qoperator" (weights and activations of 8 bits; also with -channels, -s8 and -u8), "bits2", "bits4", "bits8" and "bnb4" (weights of products in
blocks), "half" (half precision inside), "fused" (the optimiser for language models), or several of these in order, separated by spaces. The
others are inputs of the model, with which activations are measured. The answer is one output of bytes, "model"; to "finite" it is one byte, 1 if
all values of the model are numbers.
"moved" changes constants of floats in their last bits.
"""
import os
import struct
import sys
import tempfile
import warnings

import numpy
import onnxruntime

KINDS = {1: "float32", 2: "uint8", 6: "int32", 7: "int64", 9: "bool", 10: "float16", 11: "float64"}
LEVELS = {
    "basic": onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC,
    "extended": onnxruntime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED,
    "all": onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL,
}


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
        if kind == 8:
            return name, data[4:].decode()
        return name, numpy.frombuffer(data, dtype=KINDS[kind]).reshape(dims).copy()


def saturates():
    """Reports whether ONNX Runtime's products of uint8 and int8 go wrong on this processor.

    Without VNNI it adds pairs of products in 16 bits, which hold two products of weights of 7 bits, but not of 8. Its optimiser makes uint8 of
    int8 activations, so these are concerned, too.
    """
    from onnx import TensorProto, helper

    graph = helper.make_graph(
        [helper.make_node("MatMulInteger", ["a", "b"], ["y"])], "g",
        [helper.make_tensor_value_info("a", TensorProto.UINT8, [1, 2])], [helper.make_tensor_value_info("y", TensorProto.INT32, [1, 1])],
        [helper.make_tensor("b", TensorProto.INT8, [2, 1], [127, 127])])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return session.run(None, {"a": numpy.array([[255, 255]], numpy.uint8)})[0][0, 0] != 2 * 255 * 127


def quantize(step, source, target, inputs):
    from onnxruntime import quantization  # needs the package onnx

    class Once(quantization.CalibrationDataReader):
        def __init__(self):
            self.inputs = [inputs]

        def get_next(self):
            return self.inputs.pop() if self.inputs else None

    unsigned, signed = quantization.QuantType.QUInt8, quantization.QuantType.QInt8
    channels = "channels" in step
    seven_bits = saturates()
    if step.startswith("dynamic"):
        quantization.quantize_dynamic(source, target, weight_type=unsigned if "u8" in step else signed, per_channel=channels,
                                      reduce_range=seven_bits and "u8" not in step)
        return
    form = quantization.QuantFormat.QDQ if step.startswith("qdq") else quantization.QuantFormat.QOperator
    quantization.quantize_static(source, target, Once(), quant_format=form, per_channel=channels,
                                 activation_type=signed if "s8" in step else unsigned, weight_type=signed,
                                 reduce_range=seven_bits)


def move(source, target):
    import onnx

    model = onnx.load(source)
    random = numpy.random.RandomState(1)
    for t in model.graph.initializer:
        if t.data_type not in (1, 10, 11) or len(t.dims) == 0 or any(n.op_type in ("Resize", "Upsample") and t.name in n.input for n in model.graph.node):
            continue
        value = onnx.numpy_helper.to_array(t)
        moved = value * (1 + max(numpy.finfo(value.dtype).eps, 2.0**-23) * random.randn(*value.shape))
        t.CopyFrom(onnx.numpy_helper.from_array(moved.astype(value.dtype), t.name))
    onnx.save(model, target)


def pack(step, source, target):
    import onnx

    model = onnx.load(source)
    if step == "bnb4":
        from onnxruntime.quantization.matmul_bnb4_quantizer import MatMulBnb4Quantizer

        quantizer = MatMulBnb4Quantizer(model, 1, 32)
    else:
        from onnxruntime.quantization import matmul_nbits_quantizer as nbits

        config = nbits.DefaultWeightOnlyQuantConfig(block_size=32, is_symmetric=False, bits=int(step[4:]))
        quantizer = nbits.MatMulNBitsQuantizer(model, algo_config=config)
    quantizer.process()
    quantizer.model.save_model_to_file(target)


def convert(step, source, target):
    from onnxruntime.transformers import float16, optimizer

    if step == "fused":
        optimizer.optimize_model(source, "bert", num_heads=0, hidden_size=0, opt_level=0).save_model_to_file(target)
        return
    import onnx

    onnx.save(float16.convert_float_to_float16(onnx.load(source), keep_io_types=True), target)


def rewrite(step, source, target, inputs):
    if step == "moved":
        move(source, target)
        return
    if step.startswith(("bits", "bnb")):
        pack(step, source, target)
        return
    if step in ("fused", "half"):
        convert(step, source, target)
        return
    if step not in LEVELS:
        quantize(step, source, target, inputs)
        return
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.graph_optimization_level = LEVELS[step]
    options.optimized_model_filepath = target
    onnxruntime.InferenceSession(source, options, providers=["CPUExecutionProvider"])


def finite(model, inputs):
    """Whether all values of a model are numbers."""
    import onnx

    model = onnx.load_from_string(model)
    outputs = {o.name for o in model.graph.output}
    names = [name for node in model.graph.node for name in node.output if name and name not in outputs]
    model.graph.output.extend(onnx.ValueInfoProto(name=name) for name in names)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return all(numpy.isfinite(v).all() for v in session.run(None, inputs) if v.dtype.kind == "f")


def answer(model, inputs):
    try:
        steps = inputs.pop("how").split()
        if steps == ["finite"]:
            return struct.pack("<III", 0, 1, 6) + b"finite" + struct.pack("<IIQB", 2, 0, 1, finite(model, inputs))
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "0.onnx")
            with open(path, "wb") as file:
                file.write(model)
            for i, step in enumerate(steps):
                target = os.path.join(folder, f"{i + 1}.onnx")
                rewrite(step, path, target, inputs)
                path = target
            with open(path, "rb") as file:
                data = file.read()
        head = struct.pack("<II", 0, 1) + struct.pack("<I", 5) + b"model" + struct.pack("<II", 2, 1)
        return head + struct.pack("<QQ", len(data), len(data)) + data
    except Exception as e:  # whatever it says is the answer
        text = (type(e).__name__ + ": " + str(e)).encode()
        return struct.pack("<II", 1, len(text)) + text


def main():
    warnings.simplefilter("ignore")
    onnxruntime.set_default_logger_severity(4)
    reader = Reader(sys.stdin.buffer)
    output = sys.stdout.buffer
    sys.stdout = sys.stderr  # what the quantiser prints is no answer
    while True:
        model = reader.bytes(reader.u32())
        inputs = dict(reader.tensor() for _ in range(reader.u32()))
        output.write(answer(model, inputs))
        output.flush()


main()
