"""Passes tensors to a server in shared memory, by Triton's clients for HTTP and
gRPC. The argument is the server's address."""

import sys

import numpy as np
import tritonclient.grpc
import tritonclient.http
import tritonclient.utils.shared_memory as shm
from tritonclient.utils import InferenceServerException, serialize_byte_tensor


def tensors(kind, client):
    client.unregister_system_shared_memory()
    client.unregister_cuda_shared_memory()
    a = np.arange(32, dtype=np.int32).reshape(2, 16)
    b = np.full((2, 16), 3, np.int32)
    inputs = shm.create_shared_memory_region("in", "/tenure_test_in", 2 * a.nbytes)
    outputs = shm.create_shared_memory_region("out", "/tenure_test_out", 2 * a.nbytes)
    try:
        shm.set_shared_memory_region(inputs, [a, b])
        client.register_system_shared_memory("in", "/tenure_test_in", 2 * a.nbytes)
        client.register_system_shared_memory("out", "/tenure_test_out", 2 * a.nbytes)
        status = client.get_system_shared_memory_status()
        assert len(status if isinstance(status, list) else status.regions) == 2, status
        ins = [kind.InferInput(n, [2, 16], "INT32") for n in ("INPUT0", "INPUT1")]
        outs = [kind.InferRequestedOutput(n) for n in ("OUTPUT0", "OUTPUT1")]
        for i, (x, y) in enumerate(zip(ins, outs)):
            x.set_shared_memory("in", a.nbytes, offset=i * a.nbytes)
            y.set_shared_memory("out", a.nbytes, offset=i * a.nbytes)
        result = client.infer("simple", ins, outputs=outs)
        for i, want in enumerate((a + b, a - b)):
            assert result.get_output(f"OUTPUT{i}") is not None
            assert (shm.get_contents_as_numpy(outputs, np.int32, [2, 16], offset=i * a.nbytes) == want).all()
        # One output in the answer, and one in shared memory.
        mixed = client.infer("simple", ins, outputs=[kind.InferRequestedOutput("OUTPUT1"), outs[0]])
        assert (mixed.as_numpy("OUTPUT1") == a - b).all()
        try:
            client.register_system_shared_memory("in", "/tenure_test_in", 4)
            raise AssertionError("want a refusal")
        except InferenceServerException as e:
            assert "already in manager" in e.message(), e
        client.unregister_system_shared_memory("in")
        try:
            client.infer("simple", ins)
            raise AssertionError("want a refusal")
        except InferenceServerException as e:
            assert "Unable to find" in e.message(), e
    finally:
        client.unregister_system_shared_memory()
        shm.destroy_shared_memory_region(inputs)
        shm.destroy_shared_memory_region(outputs)


def strings(kind, client):
    words = serialize_byte_tensor(np.array([b"one", b"", b"three"], dtype=np.object_))
    region = shm.create_shared_memory_region("words", "/tenure_test_words", 4096)
    try:
        shm.set_shared_memory_region(region, [words])
        client.register_system_shared_memory("words", "/tenure_test_words", 4096)
        x = kind.InferInput("x", [3], "BYTES")
        x.set_shared_memory("words", len(words.item()))
        assert client.infer("text", [x]).as_numpy("y").tolist() == [b"one", b"", b"three"]
        y = kind.InferRequestedOutput("y")
        y.set_shared_memory("words", 2048, offset=2048)
        client.infer("text", [x], outputs=[y])
        assert shm.get_contents_as_numpy(region, np.object_, [3], offset=2048).tolist() == [b"one", b"", b"three"]
    finally:
        client.unregister_system_shared_memory("words")
        shm.destroy_shared_memory_region(region)


for module in (tritonclient.http, tritonclient.grpc):
    client = module.InferenceServerClient(sys.argv[1])
    for part in (tensors, strings):
        part(module, client)
        print(module.__name__, part.__name__, "passed")
