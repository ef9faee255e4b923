"""Asks a server by Triton's client for gRPC: everything that the client has and
the server says that it has. The argument is the server's address."""

import json
import queue
import sys

import grpc as rpc
import numpy as np
import tritonclient.grpc as grpc
from tritonclient.grpc import service_pb2, service_pb2_grpc
from tritonclient.utils import InferenceServerException

client = grpc.InferenceServerClient(sys.argv[1])


def tensor(name, array, datatype):
    t = grpc.InferInput(name, list(array.shape), datatype)
    t.set_data_from_numpy(array)
    return t


def refused(code, part, call, *args, **kwargs):
    try:
        call(*args, **kwargs)
    except InferenceServerException as e:
        assert part in e.message(), (part, e.message())
        assert e.status() == "StatusCode." + code, e.status()
        return
    raise AssertionError(f"want an error with {part!r}")


def health():
    assert client.is_server_live() and client.is_server_ready()
    assert client.is_model_ready("simple") and client.is_model_ready("simple", "2")
    assert not client.is_model_ready("simple", "1") and not client.is_model_ready("none")
    server = client.get_server_metadata()
    assert server.name == "triton" and "binary_tensor_data" in server.extensions, server


def metadata():
    m = client.get_model_metadata("simple")
    assert list(m.versions) == ["2"] and m.platform == "onnxruntime_onnx", m
    i = m.inputs[0]
    assert (i.name, i.datatype, list(i.shape)) == ("INPUT0", "INT32", [-1, 16]), m
    c = client.get_model_config("batched").config
    assert c.max_batch_size == 8 and list(c.input[0].dims) == [4] and c.input[0].data_type == 11, c
    assert c.dynamic_batching.max_queue_delay_microseconds == 1000 and c.parameters["note"].string_value == "x", c
    assert client.get_model_config("batched", as_json=True)["config"]["max_batch_size"] == 8
    refused("NOT_FOUND", "Request for unknown model: 'none' is not found", client.get_model_metadata, "none")


def forms():
    a = np.arange(32, dtype=np.int32).reshape(2, 16)
    b = np.ones((2, 16), np.int32)
    for outputs in (None, [grpc.InferRequestedOutput(n) for n in ("OUTPUT1", "OUTPUT0")]):
        for compression in (None, "gzip", "deflate"):
            r = client.infer(
                "simple",
                [tensor("INPUT1", b, "INT32"), tensor("INPUT0", a, "INT32")],
                outputs=outputs,
                request_id="7",
                compression_algorithm=compression,
                client_timeout=60,
                priority=1,
                timeout=60_000_000,
            )
            answer = r.get_response()
            assert answer.id == "7" and answer.model_version == "2" and answer.model_name == "simple"
            assert [o.name for o in answer.outputs] == (["OUTPUT1", "OUTPUT0"] if outputs else ["OUTPUT0", "OUTPUT1"])
            assert (r.as_numpy("OUTPUT0") == a + b).all() and (r.as_numpy("OUTPUT1") == a - b).all()
    got = queue.Queue()
    client.async_infer("simple", [tensor("INPUT0", a, "INT32"), tensor("INPUT1", b, "INT32")], lambda result, error: got.put((result, error)))
    result, error = got.get(timeout=60)
    assert error is None and (result.as_numpy("OUTPUT0") == a + b).all()
    top = [grpc.InferRequestedOutput("OUTPUT0", class_count=2)]
    r = client.infer("simple", [tensor("INPUT0", a, "INT32"), tensor("INPUT1", b, "INT32")], outputs=top)
    assert r.as_numpy("OUTPUT0").tolist()[0] == [b"16.000000:15", b"15.000000:14"], r.as_numpy("OUTPUT0")


def contents():
    stub = service_pb2_grpc.GRPCInferenceServiceStub(rpc.insecure_channel(sys.argv[1]))
    r = service_pb2.ModelInferRequest(model_name="simple", id="c")
    for name in ("INPUT0", "INPUT1"):
        i = r.inputs.add(name=name, datatype="INT32", shape=[1, 16])
        i.contents.int_contents.extend(range(-8, 8))
    a = stub.ModelInfer(r)
    assert np.frombuffer(a.raw_output_contents[0], np.int32).tolist() == [2 * i for i in range(-8, 8)], a


def types():
    words = np.array(["", "déjà", "x" * 100, b"\xff"], dtype=np.object_)
    assert client.infer("text", [tensor("x", words, "BYTES")]).as_numpy("y").tolist() == [b"", "déjà".encode(), b"x" * 100, b"\xff"]
    halves = np.array([1.5, -0.25, np.inf], np.float16)
    assert client.infer("halves", [tensor("x", halves, "FP16")]).as_numpy("y").tolist() == halves.tolist()
    nothing = client.infer("double", [tensor("x", np.zeros((0, 4), np.float32), "FP32")]).as_numpy("y")
    assert nothing.shape == (0, 4), nothing.shape
    large = np.random.default_rng(1).random((1_000_000, 4), np.float32)
    assert (client.infer("double", [tensor("x", large, "FP32")]).as_numpy("y") == 2 * large).all()


def errors():
    a = np.zeros((1, 16), np.int32)
    x = tensor("x", np.zeros((9, 4), np.float32), "FP32")
    refused("INVALID_ARGUMENT", "batch-size must be <= 8 for 'batched'", client.infer, "batched", [x])
    refused("INVALID_ARGUMENT", "expected 2 inputs but got 1 inputs", client.infer, "simple", [tensor("INPUT0", a, "INT32")])
    refused("INVALID_ARGUMENT", "data-type is 'FP32'", client.infer, "simple", [tensor("INPUT0", a.astype(np.float32), "FP32"), tensor("INPUT1", a, "INT32")])
    refused("INVALID_ARGUMENT", "unexpected shape for input 'INPUT0'", client.infer, "simple", [tensor("INPUT0", a[:, :8], "INT32"), tensor("INPUT1", a, "INT32")])
    refused("INVALID_ARGUMENT", "unexpected inference output 'z'", client.infer, "double", [tensor("x", np.zeros((1, 4), np.float32), "FP32")], outputs=[grpc.InferRequestedOutput("z")])
    refused("NOT_FOUND", "is not found", client.infer, "none", [x])
    refused("UNIMPLEMENTED", "keeps no sequences", client.infer, "double", [x], sequence_id=5)


def streams():
    got = queue.Queue()
    client.start_stream(lambda result, error: got.put((result, error)))
    sent = []
    for i in range(100):
        x = np.full((1 + i % 3, 4), i, np.float32)
        sent.append(x)
        client.async_stream_infer("none" if i == 50 else "batched", [tensor("x", x, "FP32")], request_id=str(i))
    for i, x in enumerate(sent):
        result, error = got.get(timeout=60)
        if i == 50:
            assert "unknown model" in error.message(), error
            continue
        assert error is None and result.get_response().id == str(i), (i, error, result)
        assert (result.as_numpy("y") == 2 * x).all()
        assert result.get_response().parameters["triton_final_response"].bool_param
    client.stop_stream()
    s = client.get_inference_statistics("batched").model_stats[0]
    assert s.inference_stats.success.count == 99, s
    assert s.inference_count == sum(len(x) for i, x in enumerate(sent) if i != 50), s


def control():
    names = {(m.name, m.version, m.state) for m in client.get_model_repository_index().models}
    assert ("simple", "2", "READY") in names, names
    client.load_model("simple", config='{"version_policy": {"all": {}}}')
    assert client.is_model_ready("simple", "1")
    client.unload_model("simple")
    assert not client.is_model_ready("simple")
    client.load_model("simple")
    assert client.is_model_ready("simple") and not client.is_model_ready("simple", "1")
    refused("NOT_FOUND", "load failed for model 'none'", client.load_model, "none")
    refused("NOT_FOUND", "is not found", client.unload_model, "none")


def settings():
    assert list(client.get_trace_settings().settings["trace_level"].value) == ["OFF"]
    assert client.update_trace_settings("simple", {"trace_level": ["OFF"], "trace_rate": None}, as_json=True)["settings"]["trace_rate"]["value"] == ["1000"]
    refused("UNIMPLEMENTED", "requests are not traced", client.update_trace_settings, None, {"trace_level": ["TIMESTAMPS"]})
    assert client.get_log_settings().settings["log_error"].bool_param
    assert not client.update_log_settings({"log_error": False}).settings["log_error"].bool_param
    assert client.update_log_settings({"log_error": True, "log_verbose_level": 0}, as_json=True)["settings"]["log_error"]["bool_param"]
    refused("UNIMPLEMENTED", "log_verbose_level", client.update_log_settings, {"log_verbose_level": 3})


for part in (health, metadata, forms, contents, types, errors, streams, control, settings):
    part()
    print(part.__name__, "passed")
