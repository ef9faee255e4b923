"""Makes the small models of the root package's tests.

    python3 -m pip install onnx numpy
    python3 testdata/make.py
"""

import pathlib

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

HERE = pathlib.Path(__file__).parent
F32 = TensorProto.FLOAT


def info(name, dims, kind=F32):
    return helper.make_tensor_value_info(name, kind, dims)


def save(name, nodes, inputs, outputs, weights=(), domains=(), opset=18):
    graph = helper.make_graph(nodes, name, inputs, outputs, [numpy_helper.from_array(v, k) for k, v in weights])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)] + [helper.make_opsetid(d, 1) for d in domains], ir_version=8)
    onnx.checker.check_model(model)
    onnx.save(model, HERE / f"{name}.onnx")


node = helper.make_node

# A state that goes in and comes out in the same type, and an answer made from both.
save(
    "state",
    [
        node("Add", ["state", "x"], ["next"], "update"),
        node("Mul", ["next", "x"], ["product"], "product"),
        node("ReduceSum", ["product"], ["y"], "sum", keepdims=0),
    ],
    [info("state", ["n", 64]), info("x", ["n", 64])],
    [info("next", ["n", 64]), info("y", [])],
)

# Outputs that would be an input, a weight, and one value twice.
save(
    "alias",
    [
        node("Identity", ["x"], ["same"], "same"),
        node("Relu", ["x"], ["r"], "relu"),
        node("Identity", ["r"], ["r2"], "again"),
        node("Identity", ["w"], ["weight"], "weight"),
    ],
    [info("x", [8])],
    [info("same", [8]), info("r", [8]), info("r2", [8]), info("weight", [4])],
    [("w", np.arange(4, dtype=np.float32))],
)

# Work enough for a run to be stopped in its middle: one product that takes a while.
save(
    "long",
    [node("MatMul", ["x", "x"], ["y"], "product"), node("Relu", ["y"], ["z"], "relu")],
    [info("x", ["n", "n"])],
    [info("z", ["n", "n"])],
)

# An input whose values decide the size of the output.
save(
    "reshape",
    [node("Reshape", ["x", "sizes"], ["y"], "reshape")],
    [info("x", ["n"]), info("sizes", [2], TensorProto.INT64)],
    [info("y", ["a", "b"])],
)

# Two outputs whose names differ only in characters that file names lack, one that is not finite, one exact integer.
save(
    "names",
    [
        node("Identity", ["x"], ["a/b"], "same"),
        node("Neg", ["x"], ["A:b"], "neg"),
        node("Log", ["x"], ["log"], "log"),
        node("Add", ["i", "i"], ["twice"], "twice"),
    ],
    [info("x", ["n", 3, 2]), info("i", ["m"], TensorProto.INT64)],
    [info("a/b", ["n", 3, 2]), info("A:b", ["n", 3, 2]), info("log", ["n", 3, 2]), info("twice", ["m"], TensorProto.INT64)],
)

# A picture of any size, in colour, comes out negated.
save("negative", [node("Neg", ["image"], ["y"], "neg")], [info("image", [1, 3, "h", "w"])], [info("y", [1, 3, "h", "w"])])

# Operators of a domain that only their owner knows: they are brought with a registry.
save(
    "acme",
    [
        node("Relu", ["x"], ["r"], "relu"),
        node("Scale", ["r"], ["s"], "first", domain="acme", factor=2.0),
        node("Scale", ["s"], ["t"], "second", domain="acme", factor=3.0),
        node("Add", ["t", "x"], ["y"], "add"),
    ],
    [info("x", ["n", 4])],
    [info("y", ["n", 4])],
    domains=["acme"],
)

# Text: words in lower case but for those that say nothing, and which of them are greetings.
save(
    "text",
    [
        node("StringNormalizer", ["words"], ["kept"], "drop", case_change_action="LOWER", stopwords=["the", "to"]),
        node("RegexFullMatch", ["kept"], ["greets"], "greets", pattern="hello|hi"),
        node("StringConcat", ["kept", "mark"], ["shouted"], "shout"),
    ],
    [info("words", ["n"], TensorProto.STRING)],
    [info("shouted", ["m"], TensorProto.STRING), info("greets", ["m"], TensorProto.BOOL)],
    [("mark", np.array(["!"], dtype=object))],
    opset=20,
)
