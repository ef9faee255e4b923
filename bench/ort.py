#!/usr/bin/env python3
"""ONNX Runtime's side of the benchmarks.

  python3 ort.py install [DIR]   makes a virtual environment with onnxruntime, openvino, numpy, onnx (for its light
                                 models) and onnx_ir (for quantising) from the package registry
  DIR/bin/python ort.py serve    answers the driver's requests, one JSON per line

The protocol stands in internal/engine/protocol.go.
"""
import json
import os
import subprocess
import sys
import time


def default_dir():
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return os.path.join(cache, "tenure-bench")


def install(directory):
    subprocess.check_call([sys.executable, "-m", "venv", directory])
    python = os.path.join(directory, "bin", "python")
    subprocess.check_call([python, "-m", "pip", "install", "--quiet", "onnxruntime", "openvino", "numpy", "onnx", "onnx_ir", "sympy"])
    print(python)


def resident(name):
    with open("/proc/self/status") as status:
        for line in status:
            if line.startswith(name + ":"):
                return int(line.split()[1]) << 10
    raise RuntimeError(f"/proc/self/status has no {name}")


KINDS = {"f32": "<f4", "f64": "<f8", "f16": "<f2", "i64": "<i8", "i32": "<i4", "i8": "i1", "u8": "u1", "bool": "?"}


def read(numpy, i):
    """The array of an input: the first numbers of its file."""
    count = 1
    for n in i["dims"]:
        count *= n
    return numpy.fromfile(i["file"], KINDS[i["type"]], count=count).reshape(i["dims"])


def write(arrays, directory):
    """Writes outputs, and says their types in Tenure's words where it has some."""
    files, words = [], {"?" if k == "?" else k.lstrip("<"): word for word, k in KINDS.items()}
    for i, array in enumerate(arrays):
        files.append(os.path.join(directory, str(i)))
        array.tofile(files[-1])
    return {"files": files, "types": [words.get("?" if a.dtype.kind == "b" else a.dtype.str.lstrip("<|"), str(a.dtype)) for a in arrays]}


class Timed:
    """Times what a subclass does once."""

    def run(self, q):
        self.once()
        end = time.perf_counter_ns() + q.get("milliseconds", 0) * 1_000_000
        nanos = []
        while len(nanos) < max(q.get("runs", 1), 1):
            start = time.perf_counter_ns()
            self.once()
            now = time.perf_counter_ns()
            nanos.append(now - start)
            if now > end:
                break
        return {"nanos": nanos}

    def peak(self, q):
        before, nanos = resident("VmRSS"), []
        with open("/proc/self/clear_refs", "w") as refs:
            refs.write("5")
        for _ in range(q["runs"]):
            start = time.perf_counter_ns()
            self.once()
            nanos.append(time.perf_counter_ns() - start)
        return {"before": before, "after": resident("VmHWM"), "nanos": nanos}


class Server(Timed):
    def __init__(self):
        import numpy
        import onnxruntime

        self.np, self.ort, self.session = numpy, onnxruntime, None

    def load(self, q):
        options = self.ort.SessionOptions()
        options.intra_op_num_threads = q["threads"]
        options.inter_op_num_threads = 1
        options.enable_cpu_mem_arena = q.get("arena", False)
        self.values, self.becomes = {}, {}
        for i in q["inputs"]:
            self.values[i["name"]] = self.value(i)
            if i.get("becomes"):
                self.becomes[i["becomes"]] = i["name"]
        before = resident("VmRSS")
        start = time.perf_counter_ns()
        self.session = self.ort.InferenceSession(q["model"], options, providers=["CPUExecutionProvider"])
        took = time.perf_counter_ns() - start
        self.names = q.get("outputs") or [o.name for o in self.session.get_outputs()]
        self.binding = self.session.io_binding()
        for name, value in self.values.items():
            self.binding.bind_ortvalue_input(name, value)
        self.into = q.get("into", False)
        if self.into:
            self.bind()
            self.session.run_with_iobinding(self.binding)
            for name, value in zip(self.names, self.binding.get_outputs()):
                if name not in self.becomes:
                    self.values[name] = value
                    self.becomes[name] = name
            self.bind()
        arena = "arena on" if options.enable_cpu_mem_arena else "arena off"
        about = f"ONNX Runtime {self.ort.__version__}, inter-op threads 1, default graph optimisation, {arena}"
        return {"about": about, "nanos": [took], "before": before, "after": resident("VmRSS")}

    def value(self, i):
        return self.ort.OrtValue.ortvalue_from_numpy(read(self.np, i))

    def bind(self):
        self.binding.clear_binding_outputs()
        for name in self.names:
            if name in self.becomes:
                self.binding.bind_ortvalue_output(name, self.values[self.becomes[name]])
            else:
                self.binding.bind_output(name)

    def once(self):
        # Binding again makes the runtime allocate each run's outputs, as it must for a caller who keeps them.
        if not self.into:
            self.bind()
        self.session.run_with_iobinding(self.binding)

    def of(self, inputs):
        """Makes what runs the model once with these inputs and lets its outputs be allocated. It returns the binding, which has them."""
        binding = self.session.io_binding()
        for name, value in inputs.items():
            binding.bind_ortvalue_input(name, value)

        def run():
            binding.clear_binding_outputs()
            for name in self.names:
                binding.bind_output(name)
            self.session.run_with_iobinding(binding)
            return binding

        return run

    def first(self, q):
        run = self.of({i["name"]: self.value(i) for i in q["inputs"]})
        nanos = []
        for _ in range(q.get("runs", 0) + 1):
            self.once()
            start = time.perf_counter_ns()
            run()
            nanos.append(time.perf_counter_ns() - start)
        return {"nanos": nanos}

    def grow(self, q):
        becomes = {i["name"]: i["becomes"] for i in q["sets"][0] if i.get("becomes")}
        states, nanos = {}, []
        for inputs in q["sets"]:
            run = self.of({**states, **{i["name"]: self.value(i) for i in inputs}})
            start = time.perf_counter_ns()
            binding = run()
            nanos.append(time.perf_counter_ns() - start)
            outputs = dict(zip(self.names, binding.get_outputs()))
            states = {name: outputs[output] for name, output in becomes.items()}
        return {"nanos": nanos}

    def outputs(self, q):
        if q.get("inputs"):
            binding = self.of({i["name"]: self.value(i) for i in q["inputs"]})()
        else:
            self.once()
            binding = self.binding
        return write([value.numpy() for value in binding.get_outputs()], q["dir"])


def serve(server):
    for line in sys.stdin:
        q = json.loads(line)
        if q["do"] == "exit":
            return
        try:
            reply = getattr(server, q["do"])(q)
        except Exception as fault:  # whatever the runtime throws is the answer
            reply = {"error": str(fault)}
        print(json.dumps(reply), flush=True)


if __name__ == "__main__":
    if sys.argv[1:2] == ["install"]:
        install(sys.argv[2] if len(sys.argv) > 2 else default_dir())
    elif sys.argv[1:] == ["serve"]:
        serve(Server())
    else:
        sys.exit(__doc__)
