#!/usr/bin/env python3
"""OpenVINO's side of the benchmarks.

  python ov.py serve   answers the driver's requests, one JSON per line

ort.py installs it. The protocol stands in internal/engine/protocol.go.
"""
import os
import sys
import time

import ort


class Server(ort.Timed):
    def __init__(self):
        import numpy
        import openvino

        self.np, self.ov = numpy, openvino

    def load(self, q):
        # The first use of a plugin loads its library, which is not the model's.
        core = self.ov.Core()
        core.get_property("CPU", "FULL_DEVICE_NAME")
        self.values = {i["name"]: self.ov.Tensor(ort.read(self.np, i)) for i in q["inputs"]}
        self.becomes = {i["name"]: i["becomes"] for i in q["inputs"] if i.get("becomes")}
        before = ort.resident("VmRSS")
        start = time.perf_counter_ns()
        model = core.read_model(q["model"])
        # Sizes are known, as they are to Tenure when it makes its plan.
        model.reshape({name: list(value.shape) for name, value in self.values.items()})
        compiled = core.compile_model(model, "CPU", {
            "PERFORMANCE_HINT": "LATENCY", "INFERENCE_PRECISION_HINT": "f32", "INFERENCE_NUM_THREADS": q["threads"], "NUM_STREAMS": 1})
        self.request = compiled.create_infer_request()
        took = time.perf_counter_ns() - start
        self.names = q.get("outputs") or [self.name(o) for o in compiled.outputs]
        for name, value in self.values.items():
            self.request.set_tensor(name, value)
        about = f"OpenVINO {self.ov.__version__.split('-')[0]}, latency, f32"
        return {"about": about, "nanos": [took], "before": before, "after": ort.resident("VmRSS")}

    def name(self, port):
        return next(iter(port.names), port.get_node().get_friendly_name())

    def once(self):
        # A request owns its outputs and writes every run's into the same bytes: that is how it is fastest.
        self.request.infer()
        for name, output in self.becomes.items():
            old, new = self.request.get_tensor(name), self.request.get_tensor(output)
            self.request.set_tensor(name, new)
            self.request.set_tensor(output, old)

    def outputs(self, q):
        self.once()
        arrays = [self.request.get_tensor(self.becomes_input(name)).data for name in self.names]
        return ort.write(arrays, q["dir"])

    def becomes_input(self, output):
        """Where the last value of an output is: once swaps those that become inputs."""
        return next((name for name, o in self.becomes.items() if o == output), output)


if __name__ == "__main__":
    if sys.argv[1:] != ["serve"]:
        sys.exit(__doc__)
    ort.serve(Server())
