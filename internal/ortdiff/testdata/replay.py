"""Takes models apart, by the protocol of reference.py: for each node of the graph, the outputs are "N/model", the bytes of a model of node N
alone, and "N/in/NAME" for each of its inputs, with the elements that they have when ONNX Runtime runs the whole model without its optimiser;
"model" is the whole with every tensor of it as an output. Functions are inlined. Nodes that read or make other values than tensors are left out, and constants stay in the models.
"""
import struct
import sys

import numpy
import onnx
import onnx.inliner
import onnxruntime

from reference import Reader, Sessions, as_array, encode


def reads(node):
    """The names that a node and the graphs in it read from outside."""
    names = [n for n in node.input if n]
    for a in node.attribute:
        if a.type == onnx.AttributeProto.GRAPH:
            own = {i.name for i in a.g.input} | {i.name for i in a.g.initializer}
            for inner in a.g.node:
                names += [n for n in reads(inner) if n not in own]
                own.update(inner.output)
            names += [o.name for o in a.g.output if o.name not in own]
    return list(dict.fromkeys(names))


def values_of(model, inputs, sessions):
    """Every tensor of a run, by name."""
    shown = onnx.ModelProto()
    shown.CopyFrom(model)
    known = {o.name for o in shown.graph.output}
    names = [name for node in shown.graph.node for name in node.output if name and name not in known]
    others = others_than_tensors(model)
    shown.graph.output.extend(onnx.ValueInfoProto(name=name) for name in names if name not in others)
    kept = [o for o in shown.graph.output if o.name not in others]
    del shown.graph.output[:]
    shown.graph.output.extend(kept)
    file = shown.SerializeToString()
    session = sessions.of(file)
    names = [o.name for o in kept]
    if any(isinstance(v, numpy.ndarray) for v in inputs.values()):  # strings, of which no OrtValue is made
        outputs = session.run(names, {k: as_array(v) for k, v in inputs.items()})
    else:
        outputs = list(session._sess.run_with_ort_values(inputs, names, None))
    return dict(inputs) | {o.name: v for o, v in zip(kept, outputs)}, file


def others_than_tensors(model):
    lists = ("SequenceConstruct", "SequenceEmpty", "SequenceInsert", "SequenceErase", "SplitToSequence", "SequenceMap", "Optional", "ZipMap")
    found = set()
    for node in model.graph.node:
        if node.op_type in lists or node.op_type == "Identity" and node.input[0] in found:
            found.update(node.output)
        if node.op_type == "OptionalGetElement":
            found.update(node.output)
    return found


def encode_bytes(name, data):
    return encode(name, numpy.frombuffer(data, dtype=numpy.uint8))


def parts(model, inputs, sessions):
    model = onnx.inliner.inline_local_functions(onnx.load_from_string(model))
    constants = {t.name: t for t in model.graph.initializer}
    inputs = {k: v for k, v in inputs.items() if k not in constants}
    values, file = values_of(model, inputs, sessions)
    yield encode_bytes("model", file)
    others = others_than_tensors(model)
    for k, node in enumerate(model.graph.node):
        names = reads(node)
        if others & (set(names) | set(node.output)):
            continue
        graph = onnx.GraphProto(name="part")
        graph.node.add().CopyFrom(node)
        tensors = []
        for name in names:
            if name in constants:
                graph.initializer.add().CopyFrom(constants[name])
                continue
            v = values[name]
            if isinstance(v, numpy.ndarray):
                graph.input.append(onnx.helper.make_tensor_value_info(name, onnx.helper.np_dtype_to_tensor_dtype(v.dtype), v.shape))
            else:
                graph.input.append(onnx.helper.make_tensor_value_info(name, v.element_type(), v.shape()))
            tensors.append(encode("%d/in/%s" % (k, name), v))
        graph.output.extend(onnx.ValueInfoProto(name=name) for name in node.output if name)
        part = onnx.ModelProto(ir_version=model.ir_version, opset_import=model.opset_import, graph=graph)
        yield encode_bytes("%d/model" % k, part.SerializeToString())
        yield from tensors


def answer(model, inputs, sessions):
    try:
        tensors = list(parts(model, inputs, sessions))
        return struct.pack("<II", 0, len(tensors)) + b"".join(tensors)
    except Exception as e:  # whatever it says is the answer
        text = (type(e).__name__ + ": " + str(e)).encode()
        return struct.pack("<II", 1, len(text)) + text


def main():
    onnxruntime.set_default_logger_severity(4)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    reader, sessions = Reader(sys.stdin.buffer), Sessions(options)
    while True:
        model = reader.bytes(reader.u32())
        inputs = dict(reader.tensor() for _ in range(reader.u32()))
        sys.stdout.buffer.write(answer(model, inputs, sessions))
        sys.stdout.buffer.flush()


main()
