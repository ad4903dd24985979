#!/usr/bin/env python3
"""A residual stream in f32 beside bf16 (--fp32-residual-connection), by weft and by megatron-core's own GPTModel: residual.py WEFT [--seed S]. Losses and gradient
norms of twenty batches of a deep model like GPT-2 and one like Llama, whose weights stay as they are. What rounding of the stream moves them by, megatron-core says with f32 alone and
with bf16 alone; weft must be nearer to its stream in f32 than that. Needs torch, transformers and megatron-core (`make oracle` installs them)."""
import argparse, json, pathlib, random, sys, tempfile

import train as oracle
import numpy
import torch
import transformers
from megatron.core.fusions import fused_bias_dropout
from megatron.core.datasets.indexed_dataset import IndexedDatasetBuilder
import recipe
from recipe import GLOBAL, MICRO, STEPS, run
from torch.nn import functional as F

LAYERS = 24


def draw(kind):
    heads, width, words, sequence = 4, 32, 101, 24
    shape = dict(heads=heads, width=width, layers=LAYERS, words=words, sequence=sequence, kind=kind, groups=heads, inner=4 * width, tied=True)
    if kind == "gpt2":
        config = transformers.GPT2Config(vocab_size=words, n_positions=sequence, n_embd=width, n_layer=LAYERS, n_head=heads, resid_pdrop=0, embd_pdrop=0,
                                         attn_pdrop=0, bos_token_id=0, eos_token_id=0, initializer_range=0.05)
        return transformers.GPT2LMHeadModel(config), shape
    config = transformers.LlamaConfig(vocab_size=words, hidden_size=width, intermediate_size=4 * width, num_hidden_layers=LAYERS, num_attention_heads=heads,
                                      num_key_value_heads=heads, max_position_embeddings=sequence, rms_norm_eps=1e-5, tie_word_embeddings=True,
                                      initializer_range=0.05, rope_parameters=dict(rope_type="default", rope_theta=500.0))
    return transformers.LlamaForCausalLM(config), shape


def of_f32(normed):
    """A norm as the fused ones are: whatever it reads, it computes in f32 and gives its weights' type. torch's own wants one type for all."""
    def forward(self, x):
        bias = getattr(self, "bias", None)
        weights = [self.weight.float()] + ([] if bias is None else [bias.float()])
        return normed(self, x.float(), *weights).to(self.weight.dtype)
    return forward


def added(x_with_bias, residual, prob, training):
    """As Megatron-LM's main branch adds: 0.16.1 rounds the residual to x's type first, and its flag does nothing."""
    x, bias = (t if t is None else t.to(residual.dtype) for t in x_with_bias)
    return residual + F.dropout(x if bias is None else x + bias, prob, training)


def by_megatron(model, shape, samples, half, wide):
    other = oracle.megatron(shape)
    other.load_state_dict({k: v.clone() for k, v in oracle.renamed(model.state_dict(), shape).items()}, strict=False)
    if half:
        other = other.bfloat16()
    for module in other.modules():
        if hasattr(module, "config"):
            module.config.fp32_residual_connection, module.config.params_dtype = wide, torch.bfloat16 if half else torch.float32
    positions = torch.arange(shape["sequence"]).expand(MICRO, -1)
    mask = torch.ones(1, 1, shape["sequence"], shape["sequence"], dtype=torch.bool).triu(1)
    losses, norms = [], []
    for step in range(STEPS):
        rows, told, sums = samples[step * GLOBAL:(step + 1) * GLOBAL], 0, {}
        for at in range(0, GLOBAL, MICRO):
            x = {key: torch.tensor([r[key] for r in rows[at:at + MICRO]]) for key in ("tokens", "labels")}
            part = other(x["tokens"], positions, mask, labels=x["labels"]).float().mean()
            (part * MICRO / GLOBAL).backward()
            told += part.item() * MICRO / GLOBAL
            for name, p in other.named_parameters():  # in f32, as Megatron's buffers are
                sums[name] = sums.get(name, 0) + p.grad.float()
                p.grad = None
        losses.append(told)
        norms.append(sum(g.square().sum() for g in sums.values()).sqrt().item())
    return losses, norms


def by_weft(weft, folder, shape, *more):
    flags = ["--load", folder / "model", "--finetune", "--use-checkpoint-args", "--data-path", folder / "text", "--split", "1,0,0", "--seq-length", shape["sequence"],
             "--micro-batch-size", MICRO, "--global-batch-size", GLOBAL, "--train-iters", STEPS, "--lr", 1e-30, "--lr-decay-style", "constant", "--weight-decay", 0,
             "--clip-grad", 1, "--attention-dropout", 0, "--hidden-dropout", 0, "--eval-iters", 0, "--tokenizer-type", "NullTokenizer", "--vocab-size", shape["words"],
             "--max-position-embeddings", shape["sequence"]]
    run(weft, "train", "gpt", *flags, *more, "--log-interval", 1, "--log-jsonl", folder / "log.jsonl")
    lines = [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()][-STEPS:]
    samples = run(weft, "data", "sample", "--index", 0, "--count", STEPS * GLOBAL, "--json", *flags)
    return ([line["lm_loss"] for line in lines], [line["grad_norm"] for line in lines]), [json.loads(s) for s in samples.splitlines()]


def apart(a, b):
    """The root of the mean square of what parts two runs, of losses and of norms, as a part of each."""
    return [(sum((x / y - 1) ** 2 for x, y in zip(p, q, strict=True)) / len(p)) ** 0.5 for p, q in zip(a, b, strict=True)]


def compare(weft, folder, seed, kind):
    rng = random.Random(seed)
    torch.manual_seed(seed)
    model, shape = draw(kind)
    model = model.bfloat16().float()  # weights that both types hold
    model.save_pretrained(folder / "model")
    builder = IndexedDatasetBuilder(str(folder / "text.bin"), dtype=numpy.uint16)
    for _ in range(40):
        tokens = [rng.randrange(shape["words"] - 1) for _ in range(rng.randint(5, 90))]
        builder.add_document(torch.tensor(tokens), [len(tokens)])
    builder.finalize(str(folder / "text.idx"))
    ours, samples = by_weft(weft, folder, shape, "--bf16", "--fp32-residual-connection")
    narrow, _ = by_weft(weft, folder, shape, "--bf16")
    exact, _ = by_weft(weft, folder, shape)
    theirs = {name: by_megatron(model, shape, samples, *how) for name, how in {"f32": (False, False), "bf16": (True, False), "wide": (True, True)}.items()}
    print(f"seed {seed}: {shape}")
    for what, a, b in (("weft's f32, megatron-core's f32", exact, theirs["f32"]), ("weft's bf16 alone, f32", narrow, theirs["f32"]), ("weft's stream in f32, f32", ours, theirs["f32"]),
                       ("megatron-core's bf16 alone, f32", theirs["bf16"], theirs["f32"]), ("megatron-core's stream in f32, f32", theirs["wide"], theirs["f32"]),
                       ("weft's stream in f32, megatron-core's", ours, theirs["wide"])):
        print(f"  {what}: losses apart by %.1e, gradient norms by %.1e" % tuple(apart(a, b)))
    for what, near, far in (("to megatron-core's", apart(ours, theirs["wide"]), apart(theirs["bf16"], theirs["f32"])),
                            ("to f32", apart(ours, theirs["f32"]), apart(narrow, theirs["f32"]))):
        if not all(x < y for x, y in zip(near, far)):
            sys.exit(f"  weft's stream in f32 is no nearer {what} than one in bf16 is")


def main():
    words = argparse.ArgumentParser(description=__doc__)
    words.add_argument("weft"), words.add_argument("--seed", type=int, default=1)
    args = words.parse_args()
    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    oracle.PEERS.pretend_cuda()
    torch.nn.LayerNorm.forward = of_f32(lambda self, x, *w: F.layer_norm(x, self.normalized_shape, *w, eps=self.eps))
    torch.nn.RMSNorm.forward = of_f32(lambda self, x, *w: F.rms_norm(x, self.normalized_shape, *w, eps=self.eps))
    fused_bias_dropout._bias_dropout_add_func = added
    with tempfile.TemporaryDirectory() as folder:
        recipe.one_rank(folder)
        for kind in ("gpt2", "llama"):
            own = pathlib.Path(folder) / kind
            own.mkdir()
            compare(args.weft, own, args.seed, kind)
    print("a residual stream in f32, as megatron-core's")


if __name__ == "__main__":
    main()
