"""Trains the digit classifier in digits.onnx and writes the sample images.

    python3 -m pip install numpy scikit-learn onnx pillow
    python3 train.py

Data: the handwritten digits that scikit-learn bundles (1,797 images of 8x8
pixels, from the UCI repository "Optical Recognition of Handwritten Digits",
CC BY 4.0). Images 0..1499 train, the rest test. The network is two 3x3
convolutions with a pool between them and one dense layer, trained by plain
stochastic gradient descent with momentum in numpy; the seed is fixed.
"""

import pathlib

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from PIL import Image
from sklearn.datasets import load_digits

HERE = pathlib.Path(__file__).parent
TRAIN = 1500
EPOCHS, BATCH, RATE, MOMENTUM, DECAY = 40, 50, 0.05, 0.9, 1e-4


def patches(x):
    """Returns every 3x3 neighbourhood of x [n,c,h,w], padded by 1: [n,h,w,c*9]."""
    n, c, h, w = x.shape
    p = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    win = np.lib.stride_tricks.sliding_window_view(p, (3, 3), axis=(2, 3))
    return win.transpose(0, 2, 3, 1, 4, 5).reshape(n, h, w, c * 9)


def unpatch(g, c):
    """The transpose of patches: adds neighbourhoods back into [n,c,h,w]."""
    n, h, w, _ = g.shape
    g = g.reshape(n, h, w, c, 3, 3)
    out = np.zeros((n, c, h + 2, w + 2), g.dtype)
    for i in range(3):
        for j in range(3):
            out[:, :, i : i + h, j : j + w] += g[..., i, j].transpose(0, 3, 1, 2)
    return out[:, :, 1:-1, 1:-1]


class Net:
    def __init__(self, rng):
        he = lambda *s: (rng.standard_normal(s) * np.sqrt(2 / np.prod(s[1:]))).astype(np.float32)
        self.params = {
            "conv1.weight": he(16, 1, 3, 3), "conv1.bias": np.zeros(16, np.float32),
            "conv2.weight": he(32, 16, 3, 3), "conv2.bias": np.zeros(32, np.float32),
            "dense.weight": he(10, 32 * 4 * 4), "dense.bias": np.zeros(10, np.float32),
        }

    def conv(self, name, x):
        w = self.params[name + ".weight"]
        cols = patches(x)
        y = cols @ w.reshape(len(w), -1).T + self.params[name + ".bias"]
        return y.transpose(0, 3, 1, 2), cols

    def forward(self, x):
        z1, cols1 = self.conv("conv1", x)
        a1 = np.maximum(z1, 0)
        n, c, h, w = a1.shape
        tiles = a1.reshape(n, c, h // 2, 2, w // 2, 2).transpose(0, 1, 2, 4, 3, 5).reshape(n, c, h // 2, w // 2, 4)
        where = tiles.argmax(-1)
        pooled = tiles.max(-1)
        z2, cols2 = self.conv("conv2", pooled)
        a2 = np.maximum(z2, 0)
        flat = a2.reshape(n, -1)
        logits = flat @ self.params["dense.weight"].T + self.params["dense.bias"]
        return logits, (z1, cols1, where, pooled, z2, cols2, flat)

    def gradients(self, x, labels):
        logits, (z1, cols1, where, pooled, z2, cols2, flat) = self.forward(x)
        p = np.exp(logits - logits.max(1, keepdims=True))
        p /= p.sum(1, keepdims=True)
        p[np.arange(len(labels)), labels] -= 1
        p /= len(labels)
        g = {"dense.weight": p.T @ flat, "dense.bias": p.sum(0)}

        def conv_back(name, d, cols, channels):
            d = d.transpose(0, 2, 3, 1)
            w = self.params[name + ".weight"]
            g[name + ".weight"] = np.tensordot(d, cols, ((0, 1, 2), (0, 1, 2))).reshape(w.shape)
            g[name + ".bias"] = d.sum((0, 1, 2))
            return unpatch(d @ w.reshape(len(w), -1), channels)

        d2 = (p @ self.params["dense.weight"]).reshape(z2.shape) * (z2 > 0)
        dp = conv_back("conv2", d2, cols2, pooled.shape[1])
        n, c, h, w = z1.shape
        tiles = np.zeros(dp.shape + (4,), np.float32)
        np.put_along_axis(tiles, where[..., None], dp[..., None], -1)
        d1 = tiles.reshape(n, c, h // 2, w // 2, 2, 2).transpose(0, 1, 2, 4, 3, 5).reshape(z1.shape) * (z1 > 0)
        conv_back("conv1", d1, cols1, 1)
        return g


def train(images, labels):
    rng = np.random.default_rng(7)
    net = Net(rng)
    speed = {k: np.zeros_like(v) for k, v in net.params.items()}
    for epoch in range(EPOCHS):
        rate = RATE * 0.5 * (1 + np.cos(np.pi * epoch / EPOCHS))
        order = rng.permutation(len(images))
        for at in range(0, len(order), BATCH):
            pick = order[at : at + BATCH]
            for k, g in net.gradients(images[pick], labels[pick]).items():
                speed[k] = MOMENTUM * speed[k] - rate * (g + DECAY * net.params[k])
                net.params[k] += speed[k].astype(np.float32)
    return net


def export(net, path):
    node = helper.make_node
    conv = dict(kernel_shape=[3, 3], pads=[1, 1, 1, 1])
    graph = helper.make_graph(
        [
            node("Conv", ["image", "conv1.weight", "conv1.bias"], ["c1"], "conv1", **conv),
            node("Relu", ["c1"], ["r1"], "relu1"),
            node("MaxPool", ["r1"], ["p1"], "pool1", kernel_shape=[2, 2], strides=[2, 2]),
            node("Conv", ["p1", "conv2.weight", "conv2.bias"], ["c2"], "conv2", **conv),
            node("Relu", ["c2"], ["r2"], "relu2"),
            node("Flatten", ["r2"], ["flat"], "flatten"),
            node("Gemm", ["flat", "dense.weight", "dense.bias"], ["logits"], "dense", transB=1),
            node("Softmax", ["logits"], ["probabilities"], "softmax"),
        ],
        "digits",
        [helper.make_tensor_value_info("image", TensorProto.FLOAT, ["batch", 1, 8, 8])],
        [helper.make_tensor_value_info("probabilities", TensorProto.FLOAT, ["batch", 10])],
        [numpy_helper.from_array(v, k) for k, v in net.params.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], producer_name="tenure digits", ir_version=8)
    onnx.checker.check_model(model, full_check=True)
    onnx.save(model, path)


def main():
    data = load_digits()
    images = (data.images / 16).astype(np.float32)[:, None]
    net = train(images[:TRAIN], data.target[:TRAIN])
    predicted = net.forward(images[TRAIN:])[0].argmax(1)
    print(f"test accuracy {np.mean(predicted == data.target[TRAIN:]):.3f} on {len(predicted)} images")
    export(net, HERE / "digits.onnx")
    samples = HERE / "samples"
    samples.mkdir(exist_ok=True)
    for digit in range(10):
        # The first test image of each digit, at 16 times its size.
        i = TRAIN + int(np.flatnonzero(data.target[TRAIN:] == digit)[0])
        pixels = np.round(data.images[i] * 255 / 16).astype(np.uint8)
        Image.fromarray(pixels).resize((128, 128), Image.NEAREST).save(samples / f"{digit}.png", optimize=True)


if __name__ == "__main__":
    main()
