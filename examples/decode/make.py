"""Makes the model of this example: one step of a decoder with one layer of attention.

    python3 -m pip install onnx numpy
    python3 make.py

Inputs are a token, its position, and the keys and values of the tokens before it, in a cache of any capacity. TensorScatter
writes those of the token into the cache, and Attention reads as many as there are. The weights are drawn from a fixed seed.
"""

import pathlib

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

TOKENS, HEADS, SIZE = 32, 4, 16
WIDTH = HEADS * SIZE

rng = np.random.default_rng(7)


def drawn(name, *dims):
    return numpy_helper.from_array((rng.standard_normal(dims) / np.sqrt(dims[0])).astype(np.float32), name)


node = helper.make_node
cache = [1, HEADS, "capacity", SIZE]
graph = helper.make_graph(
    [
        node("Gather", ["embedding", "token"], ["x"]),
        *(node("MatMul", ["x", f"w{n}"], [f"{n}_row"]) for n in "qkv"),
        *(node("Reshape", [f"{n}_row", "heads"], [n]) for n in "qkv"),
        node("TensorScatter", ["keys", "k", "position"], ["next_keys"], axis=2),
        node("TensorScatter", ["values", "v", "position"], ["next_values"], axis=2),
        node("Add", ["position", "one"], ["length"]),
        node("Attention", ["q", "next_keys", "next_values", "", "", "", "length"], ["a"]),
        node("Reshape", ["a", "row"], ["a_row"]),
        node("MatMul", ["a_row", "out"], ["logits"]),
    ],
    "decode_step",
    [
        helper.make_tensor_value_info("token", TensorProto.INT64, [1]),
        helper.make_tensor_value_info("position", TensorProto.INT64, [1]),
        helper.make_tensor_value_info("keys", TensorProto.FLOAT, cache),
        helper.make_tensor_value_info("values", TensorProto.FLOAT, cache),
    ],
    [
        helper.make_tensor_value_info("logits", TensorProto.FLOAT, [1, TOKENS]),
        helper.make_tensor_value_info("next_keys", TensorProto.FLOAT, cache),
        helper.make_tensor_value_info("next_values", TensorProto.FLOAT, cache),
    ],
    [
        drawn("embedding", TOKENS, WIDTH),
        drawn("wq", WIDTH, WIDTH),
        drawn("wk", WIDTH, WIDTH),
        drawn("wv", WIDTH, WIDTH),
        drawn("out", WIDTH, TOKENS),
        numpy_helper.from_array(np.array([1, HEADS, 1, SIZE], np.int64), "heads"),
        numpy_helper.from_array(np.array([1, WIDTH], np.int64), "row"),
        numpy_helper.from_array(np.array([1], np.int64), "one"),
    ],
)
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 24)], ir_version=10, producer_name="examples/decode")
model.doc_string = "One step of a decoder: a token and a cache in, what follows and the cache out."
helper.set_model_props(model, {"vocabulary": str(TOKENS)})
onnx.checker.check_model(model)
onnx.save(model, pathlib.Path(__file__).parent / "decode.onnx")
