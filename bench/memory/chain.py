"""Runs ten Relu on [1000,1000] in ONNX Runtime and prints what that took, as JSON.

ONNX Runtime tells nobody what its arena took, so the figure is the process's: its high-water mark in the run, less its size before,
when the same session has run on one number. The input is not part of it.
"""
import json

import numpy
import onnxruntime
from onnx import TensorProto, helper

COUNT, SIDE = 10, 1000


def resident(name):
    with open("/proc/self/status") as status:
        for line in status:
            if line.startswith(name + ":"):
                return int(line.split()[1]) << 10
    raise RuntimeError(f"/proc/self/status has no {name}")


def chain():
    names = [f"v{i}" for i in range(COUNT + 1)]
    nodes = [helper.make_node("Relu", [a], [b]) for a, b in zip(names, names[1:])]
    ends = [helper.make_tensor_value_info(n, TensorProto.FLOAT, ["m", "n"]) for n in (names[0], names[-1])]
    graph = helper.make_graph(nodes, "chain", ends[:1], ends[1:])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    return model.SerializeToString(), names[0], names[-1]


def main():
    model, first, last = chain()
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])

    def run(rows, columns):
        x = onnxruntime.OrtValue.ortvalue_from_numpy(numpy.full((rows, columns), -1.0, dtype=numpy.float32))
        before = resident("VmRSS")
        y = session.run_with_ort_values([last], {first: x})[0]
        taken = resident("VmHWM") - before
        if y.numpy().max() != 0:
            raise RuntimeError(f"got {y.numpy().max()}, want 0")
        return taken

    run(1, 1)
    print(json.dumps({"engine": "ONNX Runtime", "version": onnxruntime.__version__, "input": 4 * SIDE * SIDE, "taken": run(SIDE, SIDE)}))


main()
