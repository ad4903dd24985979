#!/usr/bin/env python3
"""Models of transformers through weft and back: random small ones of every family weft reads are converted to a checkpoint and
exported again, transformers loads what weft wrote, and its logits must be those of the original; and weft goes on from a
prompt as transformers' likeliest tokens do. Needs: pip install torch transformers.
Usage: exchange.py [--weft build/release/weft] [--rounds N] [--seed S]"""
import argparse, json, pathlib, random, subprocess, sys, tempfile

import torch
import transformers

ARGS = argparse.ArgumentParser()
ARGS.add_argument("--weft", default="build/release/weft")
ARGS.add_argument("--rounds", type=int, default=3)
ARGS.add_argument("--seed", type=int, default=0)
ARGS = ARGS.parse_args()
MAKE = pathlib.Path(__file__).parents[1] / "golden/exchange/make.py"
WRONG = []
transformers.utils.logging.set_verbosity_error()
transformers.utils.logging.disable_progress_bar()


def run(*words):
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"{words[:3]}: {done.stderr.strip()}")
    return done.stdout


def is_encoder(directory):
    return "bert" in json.loads((directory / "config.json").read_text())["model_type"]


def load(directory, **how):
    kind = transformers.AutoModelForPreTraining if is_encoder(directory) else transformers.AutoModelForCausalLM
    return kind.from_pretrained(directory, dtype=torch.float32, attn_implementation="eager", **how)


def logits(model, ids):
    with torch.no_grad():
        out = model(torch.tensor([ids]))
    return (out.prediction_logits if hasattr(out, "prediction_logits") else out.logits)[0]


def check(what, same):
    if not same:
        WRONG.append(what)
        print("DIFFERS", what)


def likeliest(model, ids, count):
    """Greedy tokens, as far as no two are so near that rounding decides; none ends the text."""
    out = []
    for _ in range(count):
        row = logits(model, ids + out)[-1]
        two = row.topk(2)
        if two.values[0] - two.values[1] < 1e-3 or int(two.indices[0]) in ends(model):
            break
        out.append(int(two.indices[0]))
    return out


def ends(model):
    end = model.generation_config.eos_token_id
    return (end if isinstance(end, list) else [end]) + [model.config.vocab_size - 1]  # the null tokenizer's last id


def through(directory, scratch, name):
    expected = json.loads((directory / "logits.json").read_text())
    there, back = scratch / f"{name}_weft", scratch / f"{name}_back"
    print(name, run(ARGS.weft, "checkpoint", "convert", directory, there).splitlines()[-1])
    run(ARGS.weft, "checkpoint", "convert", "--dtype", "f32", "--shard-bytes", random.choice([8000, 5000000]), there, back)
    found, info = load(back, output_loading_info=True)
    check(f"{name}: tensors {info}", not info["missing_keys"] and not info["unexpected_keys"])
    theirs = torch.tensor(expected["logits"])
    apart = (logits(found.eval(), expected["prompt"]) - theirs).abs().max() / theirs.abs().max()
    check(f"{name}: logits of the export differ by {apart:.3g} of the largest", apart < 1e-5)
    if is_encoder(directory):
        return
    model = load(directory).eval()
    wanted = likeliest(model, expected["prompt"], 8)
    said = json.loads(run(ARGS.weft, "generate", directory, "--tokenizer", f"null:{model.config.vocab_size}", "--prompt",
                          " ".join(map(str, expected["prompt"])), "--tokens", 8, "--greedy", "--json"))["text"]
    check(f"{name}: goes on {said}, not {wanted}", [int(word) for word in said.split()][:len(wanted)] == wanted)


for round in range(ARGS.rounds):
    seed = ARGS.seed or random.randrange(2, 10**6)
    with tempfile.TemporaryDirectory() as scratch:
        scratch = pathlib.Path(scratch)
        subprocess.run([sys.executable, str(MAKE), str(scratch), str(seed)], check=True, capture_output=True)
        for directory in sorted(path for path in scratch.iterdir() if (path / "logits.json").exists()):
            through(directory, scratch, f"seed {seed}: {directory.name}")
print(f"exchange: {ARGS.rounds} rounds, {len(WRONG)} differences")
sys.exit(1 if WRONG else 0)
