"""Writes the models of this folder with the onnx package (1.23 was used):

    python3 make.py

They hold the reader to files that another writer made.
"""

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


def lists():
    """Weights in every typed list, a function, a branch, sparse corners."""
    init = [
        helper.make_tensor("floats", TensorProto.FLOAT, [3], [0.5, 1.0, -2.0]),
        helper.make_tensor("doubles", TensorProto.DOUBLE, [2], [0.25, 1e300]),
        helper.make_tensor("halves", TensorProto.FLOAT16, [2], [0.5, -1.0]),
        helper.make_tensor("brains", TensorProto.BFLOAT16, [2], [0.5, -1.0]),
        helper.make_tensor("bytes", TensorProto.INT8, [3], [-128, 0, 127]),
        helper.make_tensor("bools", TensorProto.BOOL, [2], [True, False]),
        helper.make_tensor("longs", TensorProto.INT64, [2], [-1, 2**62]),
        helper.make_tensor("words", TensorProto.UINT32, [2], [0, 2**32 - 1]),
        helper.make_tensor("nibbles", TensorProto.INT4, [3], [-8, 7, 1]),
        numpy_helper.from_array(np.arange(6, dtype=np.float32).reshape(2, 3), "matrix"),
    ]
    half = helper.make_node("Constant", [], ["factor"])
    ref = onnx.AttributeProto(name="value_float", ref_attr_name="by", type=onnx.AttributeProto.FLOAT)
    half.attribute.append(ref)
    scale = helper.make_function(
        "local", "Scale", ["v"], ["scaled"],
        [half, helper.make_node("Mul", ["v", "factor"], ["scaled"])],
        [helper.make_opsetid("", 18)],
        attribute_protos=[helper.make_attribute("by", 2.0)],
    )
    scaled = helper.make_graph(
        [helper.make_node("Scale", ["y"], ["up"], domain="local", by=0.5)],
        "scaled", [], [helper.make_tensor_value_info("up", TensorProto.FLOAT, ["n", 3])])
    same = helper.make_graph(
        [helper.make_node("Identity", ["y"], ["same"])],
        "same", [], [helper.make_tensor_value_info("same", TensorProto.FLOAT, ["n", 3])])
    names = [t.name for t in init if t.name != "matrix"]
    graph = helper.make_graph(
        [
            helper.make_node("MatMul", ["x", "matrix"], ["y"], name="product", doc_string="a note"),
            helper.make_node("If", ["wanted"], ["z"], name="branch", then_branch=scaled, else_branch=same),
            helper.make_node("Scale", ["z"], ["out"], domain="local"),
        ],
        "lists",
        [
            helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 2]),
            helper.make_tensor_value_info("wanted", TensorProto.BOOL, []),
        ],
        [helper.make_tensor_value_info("out", TensorProto.FLOAT, ["n", 3])]
        + [helper.make_empty_tensor_value_info(n) for n in names],
        initializer=init,
    )
    model = helper.make_model(
        graph, producer_name="make.py", functions=[scale], ir_version=10,
        opset_imports=[helper.make_opsetid("", 18), helper.make_opsetid("local", 1)])
    helper.set_model_props(model, {"kind": "fixture"})
    onnx.save(model, "lists.onnx")


def external():
    """Two weights outside the file, at the offsets that the package chooses."""
    a = numpy_helper.from_array(np.arange(8, dtype=np.float32), "a")
    b = numpy_helper.from_array(np.arange(8, dtype=np.int64) * 3, "b")
    graph = helper.make_graph(
        [helper.make_node("Gather", ["a", "i"], ["y"], axis=0)],
        "external",
        [helper.make_tensor_value_info("i", TensorProto.INT64, ["n"])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n"]),
         helper.make_tensor_value_info("b", TensorProto.INT64, [8])],
        initializer=[a, b],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    onnx.save(model, "external.onnx", save_as_external_data=True, location="external.bin", size_threshold=0)


def unsupported():
    """Operators that do not exist."""
    graph = helper.make_graph(
        [helper.make_node("Frobnicate", ["x"], ["a"]),
         helper.make_node("Frobnicate", ["a"], ["b"]),
         helper.make_node("Gadget", ["b"], ["y"], domain="com.vendor")],
        "unsupported",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [2])],
    )
    opsets = [helper.make_opsetid("", 13), helper.make_opsetid("com.vendor", 1)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=8), "unsupported.onnx")


lists()
external()
unsupported()
