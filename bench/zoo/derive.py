#!/usr/bin/env python3
"""Makes a quantised model, or one of float16, of a model of the zoo.

  python derive.py qdq|dynamic|int4|f16 FROM INTO

FROM and INTO are folders of the zoo. It needs onnxruntime, onnx and onnx_ir, which ort.py installs.
"""
import json
import os
import shutil
import sys

import numpy
import onnx
from onnxruntime import quantization

KINDS = {"f32": numpy.float32, "i64": numpy.int64}


def described(folder):
    with open(os.path.join(folder, "inputs.json")) as file:
        return json.load(file)


class Reader(quantization.CalibrationDataReader):
    """Four sets of inputs from a seed: floats in the range of the model's own, its own whole numbers."""

    def __init__(self, folder):
        draw, sets = numpy.random.default_rng(1), []
        for k in range(4):
            values = {}
            for i in described(folder):
                x = numpy.fromfile(os.path.join(folder, i["file"]), KINDS[i["type"]]).reshape(i["dims"])
                if i["type"] == "f32" and k > 0:
                    x = draw.uniform(x.min(), x.max(), x.shape).astype(numpy.float32)
                values[i["name"]] = x
            sets.append(values)
        self.sets = iter(sets)

    def get_next(self):
        return next(self.sets, None)


def qdq(origin, model, folder):
    inferred = os.path.join(os.path.dirname(model), "inferred.onnx")
    quantization.quant_pre_process(origin, inferred, skip_symbolic_shape=True)
    quantization.quantize_static(inferred, model, Reader(folder), quant_format=quantization.QuantFormat.QDQ, per_channel=True,
                                 activation_type=quantization.QuantType.QUInt8, weight_type=quantization.QuantType.QInt8)
    os.remove(inferred)


def dynamic(origin, model, _):
    quantization.quantize_dynamic(origin, model, weight_type=quantization.QuantType.QInt8)


def int4(origin, model, _):
    from onnxruntime.quantization.matmul_nbits_quantizer import MatMulNBitsQuantizer

    q = MatMulNBitsQuantizer(onnx.load(origin), block_size=32, is_symmetric=True, accuracy_level=4)
    q.process()
    q.model.save_model_to_file(model, False)


def f16(origin, model, _):
    from onnxruntime.transformers.float16 import convert_float_to_float16

    onnx.save(convert_float_to_float16(onnx.load(origin), keep_io_types=True), model)


def main():
    how, origin, into = sys.argv[1:]
    {"qdq": qdq, "dynamic": dynamic, "int4": int4, "f16": f16}[how](os.path.join(origin, "model.onnx"), os.path.join(into, "model.onnx"), origin)
    for i in described(origin):
        shutil.copy(os.path.join(origin, i["file"]), into)
    shutil.copy(os.path.join(origin, "inputs.json"), into)


if __name__ == "__main__":
    main()
