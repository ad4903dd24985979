#!/usr/bin/env python3
"""Twenty steps of AdamW on conversations, by weft, by transformers and by megatron-core's own GPTModel, from the same weights on the same samples
(which sft.py compares): train_sft.py WEFT [--cases N] [--seed S]. Conversations of a sample do not see each other, each counts its own positions,
and the loss of a micro batch is a mean over its answers. Needs what train.py needs."""
import json, random, sys

import torch
import transformers
from torch.nn import functional as F

import sft, train
import recipe
from recipe import DECAY, GLOBAL, MICRO, STEPS, WARM, run, steps


def by_weft(weft, folder, shape, named):
    """Losses, norms and samples of a run on conversations."""
    flags = ["--load", folder / "model", "--finetune", "--use-checkpoint-args", "--sft", "--sft-tokenizer-prompt-format", named, "--data-path", folder / "talk.jsonl",
             "--split", "1,0,0", "--tokenizer-type", "SFTTokenizer", "--tokenizer-model", folder / "words", "--seq-length", shape["sequence"],
             "--micro-batch-size", MICRO, "--global-batch-size", GLOBAL, "--train-iters", STEPS, "--lr", train.RATE, "--min-lr", train.RATE, "--lr-decay-style",
             "constant", "--lr-warmup-iters", WARM, "--weight-decay", DECAY, "--clip-grad", 1, "--adam-beta2", 0.999, "--attention-dropout", 0,
             "--hidden-dropout", 0, "--eval-iters", 0, "--max-position-embeddings", shape["sequence"], "--make-vocab-size-divisible-by", 1]
    run(weft, "train", "gpt", *flags, "--log-interval", 1, "--log-jsonl", folder / "log.jsonl")
    lines = [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]
    samples = run(weft, "data", "sample", "--index", 0, "--count", STEPS * GLOBAL, "--json", *flags)
    return [line["lm_loss"] for line in lines], [line["grad_norm"] for line in lines], [json.loads(s) for s in samples.splitlines()]


def hidden(x):
    """True where a token does not see another: it is later, or of another conversation."""
    number = x["segments"]
    return ~(number[:, :, None] == number[:, None, :]).tril()[:, None]


class Answers:
    """What a micro batch learns from is a mean over its answers; what is told of a step, as Megatron tells it, one over all of the step's."""

    def __init__(self):
        self.parts = []

    def mean(self, losses, x):
        total, count = (losses * x["loss_mask"]).sum(), x["loss_mask"].sum()
        self.parts.append((total.item(), count.item()))
        return total / count.clamp(min=1)

    def told(self):
        each = GLOBAL // MICRO
        by_step = [self.parts[at:at + each] for at in range(0, len(self.parts), each)]
        return [sum(total for total, _ in step) / max(1, sum(count for _, count in step)) for step in by_step]


def trained(model, losses_of, samples):
    answers = Answers()
    _, norms = steps(model, lambda x: answers.mean(losses_of(x), x), samples, train.RATE)
    return answers.told(), norms


def compare(weft, folder, seed):
    rng = random.Random(seed)
    torch.manual_seed(seed)
    named = rng.choice(sft.FORMATS)
    sft.make_tokenizer(folder / "words", rng)
    sft.write(folder / "talk.jsonl", rng, named)
    words = len(transformers.AutoTokenizer.from_pretrained(folder / "words"))
    kind, heads, sequence = rng.choice(["gpt2", "llama"]), rng.choice([2, 4]), rng.choice([64, 128, 200])
    shape = dict(kind=kind, heads=heads, groups=heads, width=heads * 8, layers=2, words=words, sequence=sequence, inner=heads * 32, tied=True)
    if kind == "gpt2":
        config = transformers.GPT2Config(vocab_size=words, n_positions=sequence, n_embd=shape["width"], n_layer=2, n_head=heads, resid_pdrop=0, embd_pdrop=0,
                                         attn_pdrop=0, bos_token_id=0, eos_token_id=0)
        model = transformers.GPT2LMHeadModel(config)
    else:
        config = transformers.LlamaConfig(vocab_size=words, hidden_size=shape["width"], intermediate_size=shape["inner"], num_hidden_layers=2,
                                          num_attention_heads=heads, max_position_embeddings=sequence, rms_norm_eps=1e-5, tie_word_embeddings=True,
                                          rope_parameters=dict(rope_type="default", rope_theta=500.0))
        model = transformers.LlamaForCausalLM(config)
    model.save_pretrained(folder / "model")
    losses, norms, samples = by_weft(weft, folder, shape, named)
    other = train.megatron(shape)
    other.load_state_dict({k: v.clone() for k, v in train.renamed(model.state_dict(), shape).items()}, strict=False)

    def by_transformers(x):
        mask = torch.zeros(hidden(x).shape).masked_fill(hidden(x), torch.finfo(torch.float32).min)
        logits = model(x["tokens"], attention_mask=mask, position_ids=x["positions"]).logits
        return F.cross_entropy(logits.transpose(1, 2), x["labels"], reduction="none")

    found = {"megatron-core": trained(other, lambda x: other(x["tokens"], x["positions"], hidden(x), labels=x["labels"]), samples),
             "transformers": trained(model, by_transformers, samples)}
    print(f"seed {seed}: {named}, {shape}")
    for who, (their_losses, their_norms) in found.items():
        a, b = train.apart(losses, their_losses), train.apart(norms, their_norms)
        print(f"  {who}: losses apart by {a:.1e}, gradient norms by {b:.1e}")
        if a > 1e-4 or b > 1e-3:
            sys.exit(f"  ours   {losses} {norms}\n  theirs {their_losses} {their_norms}")


def main():
    args = recipe.words(__doc__, cases=4).parse_args()
    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    train.PEERS.pretend_cuda()
    train.PEERS.pretend_streams()
    recipe.alone(args, compare)
    print(f"{args.cases} models: {STEPS} steps on conversations as transformers' and as megatron-core's")


if __name__ == "__main__":
    main()
