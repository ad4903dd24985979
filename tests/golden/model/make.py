#!/usr/bin/env python3
"""Makes gpt2.json and llama.json beside this file with PyTorch: logits, loss, every gradient, twenty steps of AdamW.

Run by hand, with any PyTorch since 2.0; the numbers are committed. Weights and tokens come from a hash of integers that
golden_test.cpp computes too, so that no file has to carry them. Everything is written out in plain tensor operations in
float64 and rounded at the end: the numbers are what exact arithmetic gives, to more digits than the test asks for.
"""
import json
import pathlib

import torch

torch.set_default_dtype(torch.float64)
HERE = pathlib.Path(__file__).parent
B, S, STEPS = 2, 16, 20


def mix(x):
    x = (x ^ (x >> 16)) * 0x45D9F3B & 0xFFFFFFFF
    x = (x ^ (x >> 16)) * 0x45D9F3B & 0xFFFFFFFF
    return x ^ (x >> 16)


def weight(index, shape, scale, center):
    count = 1
    for n in shape:
        count *= n
    values = [center + scale * (mix(index * 1000003 + i) / 2**32 - 0.5) for i in range(count)]
    # Both sides start from the same f32 numbers.
    return torch.tensor(values, dtype=torch.float32).double().reshape(shape).requires_grad_()


def tokens_of(step, vocabulary):
    rows = [[mix(7919 * step + 131 * row + i) % vocabulary for i in range(S + 1)] for row in range(B)]
    rows = torch.tensor(rows)
    return rows[:, :-1], rows[:, 1:]


def shapes(c):
    h, d = c["hidden"], c["hidden"] // c["heads"]
    qkv = (c["heads"] + 2 * c["groups"]) * d
    up = 2 * c["ffn"] if c["gated"] else c["ffn"]
    out = [("embedding.words", (c["vocabulary"], h))]
    if c["learned"]:
        out.append(("embedding.positions", (S, h)))
    norm = lambda name: [(name + ".gain", (h,))] + ([(name + ".bias", (h,))] if c["layer_norm"] else [])
    linear = lambda name, rows, cols: [(name + ".weight", (rows, cols))] + (
        [(name + ".bias", (rows,))] if c["biases"] else [])
    for i in range(c["layers"]):
        p = f"layers.{i}."
        out += norm(p + "attention_norm") + linear(p + "attention.qkv", qkv, h)
        out += linear(p + "attention.project", h, c["heads"] * d) + norm(p + "mlp_norm")
        out += linear(p + "mlp.up", up, h) + linear(p + "mlp.down", h, c["ffn"])
    out += norm("final_norm")
    if not c["tied"]:
        out.append(("output.words", (c["vocabulary"], h)))
    return out


def make_weights(c):
    made = {}
    for index, (name, shape) in enumerate(shapes(c)):
        gain = name.endswith(".gain")
        made[name] = weight(index, shape, 0.2 if gain else 0.4, 1.0 if gain else 0.0)
    return made


def normed(c, w, name, x):
    if c["layer_norm"]:
        x = x - x.mean(-1, keepdim=True)
    y = x / torch.sqrt((x * x).mean(-1, keepdim=True) + 1e-5) * w[name + ".gain"]
    return y + w[name + ".bias"] if c["layer_norm"] else y


def linear(w, name, x):
    y = x @ w[name + ".weight"].T
    return y + w[name + ".bias"] if name + ".bias" in w else y


def turned(x):  # [b, s, n, d], pairs are (i, i + d/2)
    d = x.shape[-1]
    frequency = (1.0 / 10000 ** (torch.arange(0, d, 2) / d)).float().double()
    angle = torch.arange(S)[:, None] * frequency
    cos, sin = torch.cos(angle)[:, None, :], torch.sin(angle)[:, None, :]
    a, b = x[..., : d // 2], x[..., d // 2:]
    return torch.cat([a * cos - b * sin, b * cos + a * sin], -1)


def attention(c, w, name, x):
    g, r, d = c["groups"], c["heads"] // c["groups"], c["hidden"] // c["heads"]
    qkv = linear(w, name + ".qkv", x).reshape(B, S, g, r + 2, d)
    q, k, v = qkv[..., :r, :], qkv[..., r, :], qkv[..., r + 1, :]
    q = q.reshape(B, S, g * r, d)
    if not c["learned"]:
        q, k = turned(q), turned(k)
    k, v = k.repeat_interleave(r, 2), v.repeat_interleave(r, 2)
    scores = torch.einsum("bqnd,bknd->bnqk", q, k) / d**0.5
    scores = scores.masked_fill(torch.ones(S, S).triu(1).bool(), float("-inf"))
    out = torch.einsum("bnqk,bknd->bqnd", scores.softmax(-1), v)
    return linear(w, name + ".project", out.reshape(B, S, -1))


def mlp(c, w, name, x):
    y = linear(w, name + ".up", x)
    if c["gated"]:
        gate, up = y.chunk(2, -1)
        return linear(w, name + ".down", torch.nn.functional.silu(gate) * up)
    return linear(w, name + ".down", torch.nn.functional.gelu(y, approximate="tanh"))


def logits_of(c, w, tokens):
    x = w["embedding.words"][tokens]
    if c["learned"]:
        x = x + w["embedding.positions"]
    for i in range(c["layers"]):
        p = f"layers.{i}."
        x = x + attention(c, w, p + "attention", normed(c, w, p + "attention_norm", x))
        x = x + mlp(c, w, p + "mlp", normed(c, w, p + "mlp_norm", x))
    x = normed(c, w, "final_norm", x)
    return x @ w["embedding.words" if c["tied"] else "output.words"].T


def loss_of(c, w, step):
    tokens, targets = tokens_of(step, c["vocabulary"])
    logits = logits_of(c, w, tokens)
    return torch.nn.functional.cross_entropy(logits.reshape(B * S, -1), targets.reshape(-1)), logits


def train(c, w):
    rate = lambda done: 1e-2 * min(done / 5, 1)  # warm-up: the first step runs at 0
    matrices = [p for p in w.values() if p.dim() > 1]
    vectors = [p for p in w.values() if p.dim() == 1]
    adam = torch.optim.AdamW([{"params": matrices, "weight_decay": 0.1}, {"params": vectors, "weight_decay": 0.0}],
                             lr=0.0, betas=(0.9, 0.95), eps=1e-8)
    losses, norms = [], []
    for step in range(STEPS):
        for group in adam.param_groups:
            group["lr"] = rate(step)
        adam.zero_grad()
        loss, _ = loss_of(c, w, step)
        loss.backward()
        norms.append(torch.nn.utils.clip_grad_norm_(w.values(), 1.0).item())
        adam.step()
        losses.append(loss.item())
    return losses, norms


def main():
    gpt2 = dict(layers=2, hidden=32, heads=4, groups=4, ffn=128, vocabulary=61, learned=True, layer_norm=True,
                biases=True, gated=False, tied=True)
    llama = dict(layers=2, hidden=32, heads=4, groups=2, ffn=48, vocabulary=61, learned=False, layer_norm=False,
                 biases=False, gated=True, tied=False)
    for name, c in {"gpt2": gpt2, "llama": llama}.items():
        w = make_weights(c)
        loss, logits = loss_of(c, w, 0)
        loss.backward()
        digits = lambda t: [float(f"{x:.9g}") for x in t.reshape(-1).tolist()]
        out = dict(config=c, parameters=[n for n, _ in shapes(c)], loss=loss.item(), logits=digits(logits.detach()),
                   grads={n: digits(p.grad) for n, p in w.items()})
        out["losses"], out["norms"] = train(c, make_weights(c))
        (HERE / f"{name}.json").write_text(json.dumps(out, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
