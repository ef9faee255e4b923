"""numpy's side of the comparison: answers the driver's requests, one JSON per line.

The protocol stands in internal/engine/protocol.go. A request to load has an expression of the operands x, y, z and, where
the result has the same bytes on every run, of out.
"""
import json
import os
import sys
import time

for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = "1"

import numpy as np  # noqa: E402

TYPES = {"f16": "f2", "f32": "f4", "f64": "f8", "i32": "i4", "i64": "i8", "u8": "u1", "bool": "?"}


def put(to, rows, values):
    to[rows] = values
    return to


def order(x, places):
    """Places in descending order of their elements."""
    return np.take_along_axis(places, np.argsort(-np.take_along_axis(x, places, 1), 1), 1)


class Server:
    def load(self, q):
        self.values = {"np": np, "put": put, "order": order}
        for name, i in zip("xyz", q["inputs"]):
            self.values[name] = np.fromfile(i["file"], TYPES[i["type"]]).reshape(i["dims"])
        fresh, into = q["outputs"]
        self.fresh = compile(fresh, "fresh", "eval")
        self.code = self.fresh
        if q.get("into"):
            self.values["out"] = np.array(self.once())
            self.code = compile(into, "into", "eval")
        return {"about": f"numpy {np.__version__}"}

    def once(self):
        return eval(self.code, self.values)

    def run(self, q):
        self.once()
        end = time.perf_counter_ns() + q.get("milliseconds", 0) * 1_000_000
        code, values, clock = self.code, self.values, time.perf_counter_ns
        nanos = []
        while len(nanos) < max(q.get("runs", 1), 1):
            start = clock()
            result = eval(code, values)
            now = clock()
            del result
            nanos.append(now - start)
            if now > end:
                break
        return {"nanos": nanos}

    def outputs(self, q):
        file = os.path.join(q["dir"], "numpy")
        np.ascontiguousarray(eval(self.fresh, self.values)).tofile(file)
        return {"files": [file]}


def serve():
    server = Server()
    for line in sys.stdin:
        q = json.loads(line)
        if q["do"] == "exit":
            return
        try:
            reply = getattr(server, q["do"])(q)
        except Exception as fault:  # whatever numpy throws is the answer
            reply = {"error": f"{type(fault).__name__}: {fault}"}
        print(json.dumps(reply), flush=True)


if __name__ == "__main__":
    serve()
