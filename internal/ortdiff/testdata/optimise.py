"""Reads a model from standard input and writes what ONNX Runtime's optimiser makes of it to standard output."""
import os
import sys
import tempfile

import onnxruntime

onnxruntime.set_default_logger_severity(4)
options = onnxruntime.SessionOptions()
options.log_severity_level = 4
options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
with tempfile.TemporaryDirectory() as folder:
    options.optimized_model_filepath = os.path.join(folder, "optimised.onnx")
    onnxruntime.InferenceSession(sys.stdin.buffer.read(), options, providers=["CPUExecutionProvider"])
    with open(options.optimized_model_filepath, "rb") as file:
        sys.stdout.buffer.write(file.read())
