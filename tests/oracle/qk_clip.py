#!/usr/bin/env python3
"""Twenty steps of AdamW with --qk-clip, by weft and by megatron-core's own GPTModel and clip_qk(), from the same weights on the same samples: qk_clip.py WEFT [--cases N] [--seed S].
Random small configurations like GPT-2 and Llama, of which some share keys. Losses, gradient norms, the greatest score of every step and the weights after them must agree. megatron-core
asks a library of GPUs for greatest scores; here its softmax is watched instead. Needs torch, transformers and megatron-core (`make oracle` installs them)."""
import json, random, sys

import train as oracle
import numpy
import torch
import transformers
from megatron.core.datasets.indexed_dataset import IndexedDatasetBuilder
import recipe
from recipe import GLOBAL, MICRO, STEPS, steps


def watched(attention):
    """Keeps the greatest score of each head in what comes to softmax."""
    core, softmax = attention.core_attention, attention.core_attention.scale_mask_softmax
    plain = softmax.forward
    core.current_max_attn_logits = None

    def forward(scores, mask, *more):
        greatest = scores.detach().masked_fill(mask, float("-inf")).amax(dim=(0, 2, 3))
        before = core.current_max_attn_logits
        core.current_max_attn_logits = greatest if before is None else torch.maximum(before, greatest)
        return plain(scores, mask, *more)
    softmax.forward = forward


def by_megatron(model, shape, samples, alpha, threshold):
    other = oracle.megatron(shape)
    other.load_state_dict({k: v.clone() for k, v in oracle.renamed(model.state_dict(), shape).items()}, strict=False)
    attentions = [layer.self_attention for layer in other.decoder.layers]
    for attention in attentions:
        watched(attention)
        attention.config.qk_clip, attention.config.qk_clip_alpha, attention.config.qk_clip_threshold = True, alpha, threshold
    positions = torch.arange(shape["sequence"]).expand(MICRO, -1)
    mask = torch.ones(1, 1, shape["sequence"], shape["sequence"], dtype=torch.bool).triu(1)
    greatest = []

    def clip():
        greatest.append(max(a.core_attention.current_max_attn_logits.max().item() for a in attentions))
        with torch.no_grad():
            for attention in attentions:
                # A head whose scores are all below zero would have a negative factor, of which their power is no number.
                attention.core_attention.current_max_attn_logits.clamp_(min=1e-6)
                attention.clip_qk()
    found = steps(other, lambda x: other(x["tokens"], positions, mask, labels=x["labels"]).mean(), samples, oracle.RATE, clip)
    return *found, greatest, other


def compare(weft, folder, seed):
    rng = random.Random(seed)
    torch.manual_seed(seed)
    model, shape = oracle.draw(rng, rng.choice(["gpt2", "llama"]))
    alpha, threshold = rng.choice([0.2, 0.5, 0.7]), rng.choice([0.3, 0.6])
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if weight.dim() > 1 and ("attn" in name):
                weight *= 8  # so that heads begin on either side of the threshold
    model.save_pretrained(folder / "model")
    builder = IndexedDatasetBuilder(str(folder / "text.bin"), dtype=numpy.uint16)
    for _ in range(40):
        tokens = [rng.randrange(shape["words"] - 1) for _ in range(rng.randint(5, 90))]
        builder.add_document(torch.tensor(tokens), [len(tokens)])
    builder.finalize(str(folder / "text.idx"))
    clip = ["--qk-clip", "--qk-clip-alpha", alpha, "--qk-clip-threshold", threshold, "--log-max-attention-logit"]
    losses, norms, samples, after = oracle.by_weft(weft, folder, shape, *clip)
    greatest = [json.loads(line)["max_attention_logit"] for line in (folder / "log.jsonl").read_text().splitlines()]
    their_losses, their_norms, their_greatest, other = by_megatron(model, shape, samples, alpha, threshold)
    ours, theirs = oracle.renamed(after, shape), dict(other.named_parameters())
    # By their lengths: AdamW moves the row of a word that was seen once by the sign of its gradient, even where that is all but nothing.
    weights = max(((ours[n] - theirs[n]).norm() / theirs[n].norm()).item() for n in ours if not oracle.zero_in_theory(n, shape))
    found = [oracle.apart(losses, their_losses), oracle.apart(norms, their_norms), oracle.apart(greatest, their_greatest), weights]
    clipped = sum(g > threshold for g in greatest)
    print(f"seed {seed}: {shape['kind']}, {shape['heads']} heads of {shape['groups']} groups, {clipped} steps of {STEPS} clip: losses apart by {found[0]:.1e}, "
          f"gradient norms by {found[1]:.1e}, greatest scores by {found[2]:.1e}, weights by {found[3]:.1e}")
    # A key's bias that does not turn walks after noise (zero_in_theory): no probability knows it, but a greatest score does.
    if found[0] > 1e-4 or found[1] > 1e-3 or found[2] > (1e-2 if shape["kind"] == "gpt2" else 1e-3) or found[3] > 1e-3:
        sys.exit(f"  ours   {losses} {greatest}\n  theirs {their_losses} {their_greatest}")
    return clipped


def main():
    args = recipe.words(__doc__).parse_args()
    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    oracle.PEERS.pretend_cuda()
    oracle.PEERS.pretend_streams()
    if sum(recipe.alone(args, compare)) == 0:
        sys.exit("no step clipped anything")
    print(f"{args.cases} models: {STEPS} steps as megatron-core's")


if __name__ == "__main__":
    main()
