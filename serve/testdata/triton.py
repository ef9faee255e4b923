"""Asks a server by Triton's client: everything that the client has and the
server says that it has. The argument is the server's address."""

import asyncio
import sys

import numpy as np
import tritonclient.http as http
import tritonclient.http.aio as aio
from tritonclient.utils import InferenceServerException

client = http.InferenceServerClient(sys.argv[1], concurrency=8)


def tensor(name, array, datatype, binary=True):
    t = http.InferInput(name, list(array.shape), datatype)
    t.set_data_from_numpy(array, binary_data=binary)
    return t


def refused(part, call, *args, **kwargs):
    try:
        call(*args, **kwargs)
    except InferenceServerException as e:
        assert part in e.message(), (part, e.message())
        return e
    raise AssertionError(f"want an error with {part!r}")


def health():
    assert client.is_server_live() and client.is_server_ready()
    assert client.is_model_ready("simple") and client.is_model_ready("simple", "2")
    assert not client.is_model_ready("simple", "1") and not client.is_model_ready("none")
    server = client.get_server_metadata()
    assert server["name"] == "triton" and "binary_tensor_data" in server["extensions"], server


def metadata():
    m = client.get_model_metadata("simple")
    assert m["versions"] == ["2"] and m["platform"] == "onnxruntime_onnx", m
    assert m["inputs"][0] == {"name": "INPUT0", "datatype": "INT32", "shape": [-1, 16]}, m
    c = client.get_model_config("batched")
    assert c["max_batch_size"] == 8 and c["input"][0]["dims"] == [4] and "dynamic_batching" in c, c
    refused("Request for unknown model: 'none' is not found", client.get_model_metadata, "none")


def forms():
    a = np.arange(32, dtype=np.int32).reshape(2, 16)
    b = np.ones((2, 16), np.int32)
    for binary in (False, True):
        for outputs in (None, [http.InferRequestedOutput(n, binary_data=not binary) for n in ("OUTPUT1", "OUTPUT0")]):
            for compression in (None, "gzip", "deflate"):
                r = client.infer(
                    "simple",
                    [tensor("INPUT1", b, "INT32", binary), tensor("INPUT0", a, "INT32", not binary)],
                    outputs=outputs,
                    request_id="7",
                    request_compression_algorithm=compression,
                )
                assert r.get_response()["id"] == "7" and r.get_response()["model_version"] == "2"
                assert (r.as_numpy("OUTPUT0") == a + b).all() and (r.as_numpy("OUTPUT1") == a - b).all()
    r = client.async_infer("simple", [tensor("INPUT0", a, "INT32"), tensor("INPUT1", b, "INT32")]).get_result()
    assert (r.as_numpy("OUTPUT0") == a + b).all()
    top = [http.InferRequestedOutput("OUTPUT0", class_count=2)]
    r = client.infer("simple", [tensor("INPUT0", a, "INT32"), tensor("INPUT1", b, "INT32")], outputs=top)
    assert r.as_numpy("OUTPUT0").tolist()[0] == [b"16.000000:15", b"15.000000:14"], r.as_numpy("OUTPUT0")


def types():
    words = np.array(["", "déjà", "x" * 100, b"\xff"], dtype=np.object_)
    r = client.infer("text", [tensor("x", words, "BYTES")])
    assert r.as_numpy("y").tolist() == [b"", "déjà".encode(), b"x" * 100, b"\xff"], r.as_numpy("y")
    r = client.infer("text", [tensor("x", words[:3], "BYTES", False)], outputs=[http.InferRequestedOutput("y", binary_data=False)])
    assert r.as_numpy("y").tolist() == ["", "déjà", "x" * 100], r.as_numpy("y")
    halves = np.array([1.5, -0.25, np.inf], np.float16)
    for binary in (False, True):
        r = client.infer("halves", [tensor("x", halves, "FP16")], outputs=[http.InferRequestedOutput("y", binary_data=binary)])
        assert r.as_numpy("y").tolist() == halves.tolist(), r.as_numpy("y")
    nothing = client.infer("double", [tensor("x", np.zeros((0, 4), np.float32), "FP32")]).as_numpy("y")
    assert nothing.shape == (0, 4), nothing.shape
    special = np.array([[np.nan, np.inf, -np.inf, 1]], np.float32)
    r = client.infer("double", [tensor("x", special, "FP32", True)], outputs=[http.InferRequestedOutput("y", binary_data=False)])
    assert np.array_equal(r.as_numpy("y"), 2 * special, equal_nan=True)
    large = np.random.default_rng(1).random((100_000, 4), np.float32)
    assert (client.infer("double", [tensor("x", large, "FP32")]).as_numpy("y") == 2 * large).all()


def errors():
    a = np.zeros((1, 16), np.int32)
    x = tensor("x", np.zeros((9, 4), np.float32), "FP32")
    e = refused("batch-size must be <= 8 for 'batched'", client.infer, "batched", [x])
    assert e.status() == "400", e.status()
    refused("expected 2 inputs but got 1 inputs", client.infer, "simple", [tensor("INPUT0", a, "INT32")])
    refused("data-type is 'FP32'", client.infer, "simple", [tensor("INPUT0", a.astype(np.float32), "FP32"), tensor("INPUT1", a, "INT32")])
    refused("unexpected shape for input 'INPUT0'", client.infer, "simple", [tensor("INPUT0", a[:, :8], "INT32"), tensor("INPUT1", a, "INT32")])
    refused("unexpected inference output 'z'", client.infer, "double", [tensor("x", np.zeros((1, 4), np.float32), "FP32")], outputs=[http.InferRequestedOutput("z")])
    e = refused("is not found", client.infer, "none", [x])
    assert e.status() == "404", e.status()


def together():
    sent = []
    for i in range(200):
        x = np.full((1 + i % 3, 4), i, np.float32)
        sent.append((x, client.async_infer("batched", [tensor("x", x, "FP32")])))
    for x, answer in sent:
        assert (answer.get_result().as_numpy("y") == 2 * x).all()
    s = client.get_inference_statistics("batched")["model_stats"][0]
    rows = sum(1 + i % 3 for i in range(200))
    assert s["inference_count"] == rows and s["inference_stats"]["success"]["count"] == 200, s
    assert sum(b["batch_size"] * b["compute_infer"]["count"] for b in s["batch_stats"]) >= rows, s


def asynchronous():
    async def ask():
        other = aio.InferenceServerClient(sys.argv[1])
        try:
            x = np.arange(8, dtype=np.float32).reshape(2, 4)
            answers = await asyncio.gather(*(other.infer("batched", [tensor("x", x + i, "FP32")]) for i in range(20)))
            assert all((a.as_numpy("y") == 2 * (x + i)).all() for i, a in enumerate(answers))
            assert await other.is_server_ready()
        finally:
            await other.close()

    asyncio.run(ask())


def control():
    names = {(m["name"], m.get("version"), m.get("state")) for m in client.get_model_repository_index()}
    assert ("simple", "2", "READY") in names, names
    client.load_model("simple", config='{"version_policy": {"all": {}}}')
    assert client.is_model_ready("simple", "1")
    client.unload_model("simple")
    assert not client.is_model_ready("simple")
    client.load_model("simple")
    assert client.is_model_ready("simple") and not client.is_model_ready("simple", "1")
    refused("load failed for model 'none'", client.load_model, "none")
    refused("is not found", client.unload_model, "none")


def settings():
    assert client.get_trace_settings()["trace_level"] == ["OFF"]
    assert client.update_trace_settings("simple", {"trace_level": ["OFF"], "trace_rate": None})["trace_rate"] == "1000"
    refused("requests are not traced", client.update_trace_settings, None, {"trace_level": ["TIMESTAMPS"]})
    assert client.get_log_settings()["log_error"] is True
    assert client.update_log_settings({"log_error": False})["log_error"] is False
    assert client.update_log_settings({"log_error": True, "log_verbose_level": 0})["log_error"] is True
    refused("log_verbose_level", client.update_log_settings, {"log_verbose_level": 3})
    refused("want one of", client.update_log_settings, {"log_nothing": 3})


for part in (health, metadata, forms, types, errors, together, asynchronous, control, settings):
    part()
    print(part.__name__, "passed")
