"""Trains and writes the model of this example: a decoder of characters.

    python3 -m pip install torch onnx numpy
    python3 train.py [MINUTES]

It learns the text of this project's own pages (the *.md files of the repository). The file generate.onnx has the form in which decoders are
exported: input_ids and position_ids, and per layer past_key_values.N.key and .value, of which present.N.key and .value are the next ones. The
characters stand in its metadata, in the order of their numbers.
"""

import math
import pathlib
import sys
import time

import numpy as np
import onnx
import torch
from onnx import TensorProto, helper, numpy_helper
from torch import nn
from torch.nn import functional as F

LAYERS, WIDTH, HEADS, GROUPS, POSITIONS, CONTEXT, BATCH = 3, 64, 4, 2, 2048, 128, 16
SIZE = WIDTH // HEADS
here = pathlib.Path(__file__).parent


def corpus():
    pages = sorted(p for p in here.parent.parent.rglob("*.md") if not any(part.startswith(".") for part in p.parts[-3:]))
    text = "\n".join(page.read_text() for page in pages)
    usual = "".join(chr(c) for c in range(32, 127)) + "\n"
    return "".join(c for c in text if c in usual), sorted(usual)


def angles():
    """Cosines and sines of all positions, [POSITIONS, SIZE / 2]."""
    speeds = 1 / 10000 ** (torch.arange(0, SIZE, 2) / SIZE)
    turned = torch.arange(POSITIONS)[:, None] * speeds
    return turned.cos(), turned.sin()


def rotate(x, cos, sin):
    a, b = x.chunk(2, dim=-1)
    return torch.cat([cos * a - sin * b, sin * a + cos * b], dim=-1)


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        inner = GROUPS * SIZE
        self.norm1, self.norm2 = nn.Parameter(torch.ones(WIDTH)), nn.Parameter(torch.ones(WIDTH))
        shapes = {"q": (WIDTH, WIDTH), "k": (WIDTH, inner), "v": (WIDTH, inner), "out": (WIDTH, WIDTH), "up": (WIDTH, 4 * WIDTH), "down": (4 * WIDTH, WIDTH)}
        self.weights = nn.ParameterDict({name: nn.Parameter(torch.randn(shape) * 0.5 / math.sqrt(shape[0])) for name, shape in shapes.items()})

    def forward(self, x, cos, sin):
        w = self.weights
        n = F.rms_norm(x, [WIDTH], self.norm1, 1e-5)
        apart = lambda y, heads: y.unflatten(-1, (heads, SIZE)).transpose(1, 2)
        q, k, v = apart(n @ w["q"], HEADS), apart(n @ w["k"], GROUPS), apart(n @ w["v"], GROUPS)
        q, k = rotate(q, cos, sin), rotate(k, cos, sin)
        k, v = (y.repeat_interleave(HEADS // GROUPS, dim=1) for y in (k, v))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + y.transpose(1, 2).flatten(2) @ w["out"]
        return x + F.gelu(F.rms_norm(x, [WIDTH], self.norm2, 1e-5) @ w["up"]) @ w["down"]


class Decoder(nn.Module):
    def __init__(self, characters):
        super().__init__()
        self.embedding = nn.Parameter(torch.randn(characters, WIDTH) * 0.1)
        self.blocks = nn.ModuleList(Block() for _ in range(LAYERS))
        self.norm = nn.Parameter(torch.ones(WIDTH))
        self.cos, self.sin = angles()

    def forward(self, ids):
        n = ids.shape[1]
        x = self.embedding[ids]
        for block in self.blocks:
            x = block(x, self.cos[:n], self.sin[:n])
        return F.rms_norm(x, [WIDTH], self.norm, 1e-5) @ self.embedding.T * 4


def train(minutes):
    torch.manual_seed(7)
    text, characters = corpus()
    data = torch.tensor([characters.index(c) for c in text])
    model = Decoder(len(characters))
    optimiser = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=0.05)
    start, step = time.time(), 0
    while (done := (time.time() - start) / (60 * minutes)) < 1:
        for group in optimiser.param_groups:
            group["lr"] = 3e-3 * min(1, (step + 1) / 50) * (0.02 + 0.98 * math.cos(done * math.pi / 2))
        at = torch.randint(len(data) - CONTEXT - 1, (BATCH,))
        rows = torch.stack([data[i : i + CONTEXT + 1] for i in at])
        loss = F.cross_entropy(model(rows[:, :-1]).flatten(0, 1), rows[:, 1:].flatten())
        optimiser.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        step += 1
        if step % 50 == 0:
            print(f"{done:.0%}, step {step}: loss {loss.item():.3f}", flush=True)
    return model, characters


def export(model, characters):
    nodes, weights, inputs, outputs = [], [], [], []

    def weight(name, values):
        weights.append(numpy_helper.from_array(values.detach().numpy().astype(np.float32), name))
        return name

    def do(operator, *operands, out=None, **attributes):
        out = out or [f"v{len(nodes)}"]
        nodes.append(helper.make_node(operator, list(operands), out, name=f"{operator}{len(nodes)}", **attributes))
        return out[0]

    inputs += [helper.make_tensor_value_info(name, TensorProto.INT64, ["batch", "sequence"]) for name in ("input_ids", "position_ids")]
    cos, sin = weight("cos", model.cos), weight("sin", model.sin)
    x = do("Gather", weight("embedding", model.embedding), "input_ids")
    outputs.append(helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["batch", "sequence", len(characters)]))
    for i, block in enumerate(model.blocks):
        w = {name: weight(f"{i}.{name}", value) for name, value in block.weights.items()}
        n = do("RMSNormalization", x, weight(f"{i}.norm1", block.norm1), axis=-1, epsilon=1e-5)
        turn = lambda y, heads: do("RotaryEmbedding", y, cos, sin, "position_ids", num_heads=heads)
        q, k, v = turn(do("MatMul", n, w["q"]), HEADS), turn(do("MatMul", n, w["k"]), GROUPS), do("MatMul", n, w["v"])
        caches = [(f"past_key_values.{i}.{part}", f"present.{i}.{part}") for part in ("key", "value")]
        for past, present in caches:
            inputs.append(helper.make_tensor_value_info(past, TensorProto.FLOAT, ["batch", GROUPS, "past_sequence", SIZE]))
            outputs.append(helper.make_tensor_value_info(present, TensorProto.FLOAT, ["batch", GROUPS, "past_sequence + sequence", SIZE]))
        y = do("Attention", q, k, v, "", caches[0][0], caches[1][0], out=[f"attended{i}", caches[0][1], caches[1][1]], is_causal=1, q_num_heads=HEADS, kv_num_heads=GROUPS)
        x = do("Add", x, do("MatMul", y, w["out"]))
        n = do("RMSNormalization", x, weight(f"{i}.norm2", block.norm2), axis=-1, epsilon=1e-5)
        x = do("Add", x, do("MatMul", do("Gelu", do("MatMul", n, w["up"])), w["down"]))
    n = do("RMSNormalization", x, weight("norm", model.norm), axis=-1, epsilon=1e-5)
    do("MatMul", n, weight("head", model.embedding.T * 4), out=["logits"])
    graph = helper.make_graph(nodes, "characters", inputs, outputs, weights)
    file = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 23)], ir_version=10, producer_name="examples/generate")
    helper.set_model_props(file, {"characters": "".join(characters)})
    onnx.checker.check_model(file)
    onnx.save(file, here / "generate.onnx")


if __name__ == "__main__":
    export(*train(float(sys.argv[1]) if len(sys.argv) > 1 else 10))
