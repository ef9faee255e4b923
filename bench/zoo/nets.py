"""The networks of the zoo. Each function returns a torch module and its inputs by name."""
import math

import torch
import torch.nn.functional as F
import torchvision
from torch import nn


def fitted(net, x):
    """Sets the statistics of batch normalisation to those of random pictures. Without them, numbers of a deep network
    with drawn weights grow or shrink from layer to layer, in the end to denormal ones."""
    norms = [m for m in net.modules() if isinstance(m, nn.BatchNorm2d)]
    momenta = [m.momentum for m in norms]
    for m in norms:
        m.train()
        m.momentum = 1.0
    with torch.no_grad():
        net(x)
    for m, momentum in zip(norms, momenta):
        m.momentum = momentum
    return net.eval()


def picture(name, size):
    options = {"weights": None}
    if name in ("googlenet", "inception_v3"):
        options.update(aux_logits=False, init_weights=True)
    net = getattr(torchvision.models, name)(**options).eval()
    return fitted(net, torch.rand(2, 3, size, size)), {"image": torch.rand(1, 3, size, size)}


class Out(nn.Module):
    def __init__(self, net):
        super().__init__()
        self.net = net

    def forward(self, image):
        return self.net(image)["out"]


def segments(name, size):
    net = getattr(torchvision.models.segmentation, name)(weights=None, weights_backbone=None, num_classes=21).eval()
    fitted(net, torch.rand(2, 3, size, size))
    return Out(net), {"image": torch.rand(1, 3, size, size)}


class Boxes(nn.Module):
    def __init__(self, net):
        super().__init__()
        self.net = net

    def forward(self, image):
        found = self.net([image])[0]
        return found["boxes"], found["labels"], found["scores"]


def boxes(name, size):
    # Scores of drawn weights are all alike: with a threshold of zero, boxes reach the last step.
    options = {"box_score_thresh": 0.0} if name.startswith("faster") else {"score_thresh": 0.0}
    net = getattr(torchvision.models.detection, name)(weights=None, weights_backbone=None, num_classes=21, **options).eval()
    fitted(net.backbone, torch.rand(2, 3, size, size))
    return Boxes(net), {"image": torch.rand(3, size, size)}


class Bert(nn.Module):
    def __init__(self, layers, width, inner):
        super().__init__()
        self.words, self.places = nn.Embedding(8000, width), nn.Embedding(512, width)
        self.norm = nn.LayerNorm(width, eps=1e-12)
        self.layers = nn.ModuleList(BertLayer(width, inner) for _ in range(layers))

    def forward(self, input_ids, attention_mask):
        x = self.norm(self.words(input_ids) + self.places(torch.arange(input_ids.shape[1])))
        mask = (1.0 - attention_mask[:, None, None, :].float()) * -1e9
        for layer in self.layers:
            x = layer(x, mask)
        return x


class BertLayer(nn.Module):
    def __init__(self, width, inner):
        super().__init__()
        self.heads, self.head = width // 64, 64
        self.q, self.k, self.v, self.o = (nn.Linear(width, width) for _ in range(4))
        self.up, self.down = nn.Linear(width, inner), nn.Linear(inner, width)
        self.norm1, self.norm2 = nn.LayerNorm(width, eps=1e-12), nn.LayerNorm(width, eps=1e-12)

    def split(self, x):
        return x.view(x.shape[0], x.shape[1], self.heads, self.head).transpose(1, 2)

    def forward(self, x, mask):
        q, k, v = self.split(self.q(x)), self.split(self.k(x)), self.split(self.v(x))
        scores = torch.matmul(q, k.transpose(2, 3)) / math.sqrt(self.head) + mask
        y = torch.matmul(scores.softmax(-1), v).transpose(1, 2).reshape(x.shape)
        x = self.norm1(x + self.o(y))
        return self.norm2(x + self.down(F.gelu(self.up(x))))


def bert(length, layers, width, inner):
    mask = torch.ones(1, length, dtype=torch.int64)
    mask[:, length - length // 8:] = 0
    return Bert(layers, width, inner), {"input_ids": torch.randint(0, 8000, (1, length)), "attention_mask": mask}


class RMSNorm(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-5) * self.weight


class DecoderLayer(nn.Module):
    """Rotary positions, grouped heads, a gated feed-forward network, all without biases."""

    def __init__(self, width, heads, groups, inner):
        super().__init__()
        self.heads, self.groups, self.head = heads, groups, width // heads
        self.q, self.o = nn.Linear(width, width, bias=False), nn.Linear(width, width, bias=False)
        self.k, self.v = (nn.Linear(width, groups * self.head, bias=False) for _ in range(2))
        self.gate, self.up = (nn.Linear(width, inner, bias=False) for _ in range(2))
        self.down = nn.Linear(inner, width, bias=False)
        self.norm1, self.norm2 = RMSNorm(width), RMSNorm(width)

    def split(self, x, heads):
        return x.view(1, -1, heads, self.head).transpose(1, 2)

    def turn(self, x, cos, sin):
        a, b = x.chunk(2, -1)
        return x * cos + torch.cat((-b, a), -1) * sin

    def forward(self, x, cos, sin, mask, key, value):
        h = self.norm1(x)
        q = self.turn(self.split(self.q(h), self.heads), cos, sin)
        k = torch.cat((key, self.turn(self.split(self.k(h), self.groups), cos, sin)), 2)
        v = torch.cat((value, self.split(self.v(h), self.groups)), 2)
        times, total = self.heads // self.groups, k.shape[2]
        wide = [t[:, :, None].expand(1, self.groups, times, total, self.head).reshape(1, self.heads, total, self.head) for t in (k, v)]
        scores = torch.matmul(q, wide[0].transpose(2, 3)) / math.sqrt(self.head) + mask
        x = x + self.o(torch.matmul(scores.softmax(-1), wide[1]).transpose(1, 2).reshape(x.shape))
        h = self.norm2(x)
        return x + self.down(F.silu(self.gate(h)) * self.up(h)), k, v


class Decoder(nn.Module):
    def __init__(self, layers=8, width=1024, heads=16, groups=4, inner=2816, words=8000):
        super().__init__()
        self.words = nn.Embedding(words, width)
        self.layers = nn.ModuleList(DecoderLayer(width, heads, groups, inner) for _ in range(layers))
        self.norm, self.last = RMSNorm(width), nn.Linear(width, words, bias=False)
        self.head = width // heads

    def forward(self, input_ids, *past):
        tokens, before = input_ids.shape[1], past[0].shape[2]
        place = torch.arange(before, before + tokens).float()
        angle = place[:, None] * 10000 ** (-torch.arange(0, self.head, 2).float() / self.head)
        cos, sin = (torch.cat((f(angle), f(angle)), -1) for f in (torch.cos, torch.sin))
        mask = torch.full((tokens, before + tokens), -1e9).triu(before + 1)
        x, new = self.words(input_ids), []
        for i, layer in enumerate(self.layers):
            x, k, v = layer(x, cos, sin, mask, past[2 * i], past[2 * i + 1])
            new += [k, v]
        return (self.last(self.norm(x)), *new)


def decoder(tokens, before):
    net = Decoder()
    inputs = {"input_ids": torch.randint(0, 8000, (1, tokens))}
    for i in range(len(net.layers)):
        for part in ("key", "value"):
            inputs[f"past_{part}_{i}"] = torch.randn(1, 4, before, 64)
    return net, inputs


class Recurrent(nn.Module):
    def __init__(self, kind, width, directions):
        super().__init__()
        self.cells = getattr(nn, kind)(width, width, num_layers=2, bidirectional=directions == 2)
        self.last = nn.Linear(width * directions, 64)

    def forward(self, x):
        return self.last(self.cells(x)[0])


def recurrent(kind, width, directions, steps, batch):
    return Recurrent(kind, width, directions), {"x": torch.randn(steps, batch, width)}


def twice(channels, out):
    layers = []
    for c in (channels, out):
        layers += [nn.Conv2d(c, out, 3, padding=1), nn.InstanceNorm2d(out, affine=True), nn.LeakyReLU(0.01)]
    return nn.Sequential(*layers)


class UNet(nn.Module):
    def __init__(self, width, depth=4):
        super().__init__()
        widths = [width << i for i in range(depth + 1)]
        self.first = twice(1, width)
        self.down = nn.ModuleList(twice(a, b) for a, b in zip(widths, widths[1:]))
        self.up = nn.ModuleList(nn.ConvTranspose2d(b, a, 2, stride=2) for a, b in zip(widths, widths[1:]))
        self.join = nn.ModuleList(twice(2 * a, a) for a in widths[:-1])
        self.last = nn.Conv2d(width, 3, 1)

    def forward(self, image):
        kept = [self.first(image)]
        for down in self.down:
            kept.append(down(F.max_pool2d(kept[-1], 2)))
        x = kept.pop()
        for up, join in zip(reversed(self.up), reversed(self.join)):
            x = join(torch.cat((kept.pop(), up(x)), 1))
        return self.last(x)


def unet(size, width):
    return UNet(width), {"image": torch.randn(1, 1, size, size)}


class Speech(nn.Module):
    """The layers that turn samples into frames, as wav2vec 2.0 has them."""

    def __init__(self, width=512):
        super().__init__()
        sizes = [(10, 5), (3, 2), (3, 2), (3, 2), (3, 2), (2, 2), (2, 2)]
        self.convs = nn.ModuleList(nn.Conv1d(1 if i == 0 else width, width, k, stride=s, bias=False) for i, (k, s) in enumerate(sizes))
        self.norm, self.last = nn.GroupNorm(width, width), nn.LayerNorm(width)
        for c in self.convs:
            nn.init.kaiming_normal_(c.weight)

    def forward(self, samples):
        x = samples
        for i, conv in enumerate(self.convs):
            x = conv(x)
            x = F.gelu(self.norm(x) if i == 0 else x)
        return self.last(x.transpose(1, 2))


def speech(samples):
    return Speech(), {"samples": torch.randn(1, 1, samples)}
