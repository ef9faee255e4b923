"""Asks a server by KServe's clients for REST and gRPC. The argument is the
server's address."""

import asyncio
import sys

import numpy as np
from kserve import InferenceGRPCClient, InferenceRESTClient, InferInput, InferRequest, RESTConfig


def request(value):
    x = InferInput("x", [2, 4], "FP32")
    x.set_data_from_numpy(value, binary_data=False)
    return InferRequest(model_name="double", request_id="k", infer_inputs=[x])


async def ask():
    value = np.arange(8, dtype=np.float32).reshape(2, 4)
    rest = InferenceRESTClient(RESTConfig(protocol="v2"))
    base = "http://" + sys.argv[1]
    assert await rest.is_server_live(base) and await rest.is_server_ready(base) and await rest.is_model_ready(base, "double")
    answer = await rest.infer(base, request(value), model_name="double")
    assert (answer.outputs[0].as_numpy() == 2 * value).all(), answer
    await rest.close()
    print("REST passed")
    rpc = InferenceGRPCClient(sys.argv[1])
    assert await rpc.is_server_live() and await rpc.is_server_ready() and await rpc.is_model_ready("double")
    answer = await rpc.infer(request(value))
    assert (answer.outputs[0].as_numpy() == 2 * value).all() and answer.id == "k", answer
    await rpc.close()
    print("gRPC passed")


asyncio.run(ask())
