#!/usr/bin/env python3
"""turns.py take FILE WEFT PYTHON WHAT [ROUNDS [STEPS]] | turns.py table FILE: a training step of weft's and of others in turn, f32, by all processors.

WHAT is bert, t5, t5-relative (megatron-core's models, run by PYTHON: encoders.py) or experts (megatron-core's and transformers': experts.py; or one of
them, as in experts:transformers), or hybrid, gemma, capped, uncapped or neox (transformers' Nemotron-H, Gemma 3, Gemma 2 with and without its caps, and GPT-NeoX:
families.py). In a round each program runs once as a process of its own: steps that nobody counts, then STEPS; who begins changes from round to round. What each says is added to FILE, a line a process, so that several calls make one table: medians, least to most, over all steps,
and the ratio round by round. The share of the product rate is by the rate that weft's own process measured in that round, and a peer's by the
operations that its step takes."""
import json
import os
import pathlib
import statistics
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).parent
COMMON = "--attention-dropout 0 --hidden-dropout 0 --json".split()
ENCODER = "--seq-length 512 --max-position-embeddings 512 --micro-batch-size 4 --global-batch-size 4 --vocab-size 30522 --mock-data".split()
BERT = ["bert", *"--num-layers 4 --hidden-size 1024 --num-attention-heads 16".split(), *ENCODER]
T5 = ["t5", *"--num-layers 4 --hidden-size 768 --num-attention-heads 12 --decoder-seq-length 128".split(), *ENCODER]
EXPERTS = """gpt --num-layers 12 --hidden-size 768 --num-attention-heads 12 --ffn-hidden-size 2048 --swiglu --normalization RMSNorm --disable-bias-linear
  --position-embedding-type rope --seq-length 1024 --max-position-embeddings 1024 --micro-batch-size 1 --global-batch-size 1 --vocab-size 50304
  --untie-embeddings-and-output-weights --num-experts 8 --moe-router-topk 2 --moe-ffn-hidden-size 2048 --moe-router-load-balancing-type none""".split()
HYBRID = """gpt --hybrid-layer-pattern M-M*M-M- --hidden-size 768 --num-attention-heads 12 --ffn-hidden-size 3072 --squared-relu --normalization RMSNorm
  --disable-bias-linear --position-embedding-type none --mamba-num-heads 24 --mamba-head-dim 64 --mamba-num-groups 4 --mamba-state-dim 128 --seq-length 1024
  --max-position-embeddings 1024 --micro-batch-size 1 --global-batch-size 1 --vocab-size 50304 --untie-embeddings-and-output-weights""".split()
GEMMA = """gpt --num-layers 6 --hidden-size 768 --num-attention-heads 12 --num-query-groups 4 --kv-channels 64 --ffn-hidden-size 3072 --geglu --normalization RMSNorm
  --apply-layernorm-1p --norm-places around --qk-layernorm --disable-bias-linear --position-embedding-type rope --rotary-base 1000000 --rotary-window-base 10000
  --window-size 255,0 --window-attn-skip-freq 6 --embedding-multiplier 27.712812921102035 --seq-length 1024 --max-position-embeddings 1024 --micro-batch-size 1
  --global-batch-size 1 --vocab-size 50304""".split()
UNCAPPED = """gpt --num-layers 6 --hidden-size 768 --num-attention-heads 12 --num-query-groups 4 --kv-channels 64 --ffn-hidden-size 3072 --geglu --normalization RMSNorm
  --apply-layernorm-1p --norm-places around --disable-bias-linear --position-embedding-type rope --window-size 511,0 --window-attn-skip-freq 2
  --embedding-multiplier 27.712812921102035 --seq-length 1024 --max-position-embeddings 1024 --micro-batch-size 1 --global-batch-size 1 --vocab-size 50304""".split()
CAPPED = [*UNCAPPED, "--attention-cap", "50", "--output-cap", "30"]
NEOX = """gpt --num-layers 6 --hidden-size 768 --num-attention-heads 12 --ffn-hidden-size 3072 --no-bias-gelu-fusion --parallel-sublayers own-norms
  --position-embedding-type rope --rotary-percent 0.25 --seq-length 1024 --max-position-embeddings 1024 --micro-batch-size 1 --global-batch-size 1 --vocab-size 50304
  --untie-embeddings-and-output-weights""".split()
WORDS = {"hybrid": HYBRID, "gemma": GEMMA, "capped": CAPPED, "uncapped": UNCAPPED, "neox": NEOX, "bert": BERT, "t5": T5, "t5-relative": [*T5, "--position-embedding-type", "relative"],
         "experts": [*EXPERTS, "--moe-token-dispatcher-type", "alltoall"]}
PEERS = {**{name: {"transformers": ["families.py", name]} for name in ("hybrid", "gemma", "capped", "uncapped", "neox")}, "bert": {"megatron-core": ["encoders.py", "bert"]}, "t5": {"megatron-core": ["encoders.py", "t5"]},
         "t5-relative": {"megatron-core": ["encoders.py", "t5-relative"]},
         "experts": {"megatron-core": ["experts.py", "megatron"], "transformers": ["experts.py", "transformers"]}}
# megatron-core's BERT makes the logits of all 512 tokens, weft those of the 76 that are guessed: three products of the head's transform and of the words.
MORE = {"bert": 4 * (512 - 76) * 6 * 1024 * (30522 + 1024)}


def said(command):
    """The JSON object that a program ends with. Nobody's choice of kernels is handed on."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("OPENBLAS_")}
    run = subprocess.run(command, capture_output=True, text=True, env=clean)
    if run.returncode:
        sys.exit(run.stderr)
    return json.loads(run.stdout[run.stdout.index("{"):])


def take(file, weft, python, what, rounds=1, steps=2):
    what, _, only = what.partition(":")
    programs = {"weft": [weft, "bench", "train", *WORDS[what], *COMMON, "--bench-steps", steps]}
    for peer, (script, *words) in PEERS[what].items():
        if only in ("", peer):
            programs[peer] = [python, HERE / script, *words, "--steps", steps, "--warm", "1"]
    for number in range(int(rounds)):
        began = time.time()
        for name in list(programs)[::-1 if number % 2 else 1]:
            found = said([str(word) for word in programs[name]])
            line = {"what": what, "round": began, "program": name, "steps": found.get("step_seconds") or found["steps"], "loss": found["loss"]}
            line |= {key: found[key] for key in ("flops", "product_flops", "tokens", "work") if key in found}
            with open(file, "a") as out:
                print(json.dumps(line), file=out, flush=True)


def rounds_of(lines):
    """[{program: line}]; a round that was stopped before weft had its turn says nothing."""
    found = {}
    for line in lines:
        found.setdefault(line["round"], {})[line["program"]] = line
    return [one for one in found.values() if "weft" in one]


def spread(numbers, digits):
    return f"{statistics.median(numbers):.{digits}f} ({min(numbers):.{digits}f} to {max(numbers):.{digits}f})"


def row(what, name, rounds):
    with_it = [one for one in rounds if name in one]
    second = lambda one, who: statistics.median(one[who]["steps"])
    more = MORE.get(what, 0) if name != "weft" else 0
    shares = [100 * (one["weft"]["flops"] + more) / second(one, name) / one["weft"]["product_flops"] for one in with_it]
    seconds = [step for one in with_it for step in one[name]["steps"]]
    ratios = [second(one, name) / second(one, "weft") for one in with_it]
    tokens = rounds[0]["weft"]["tokens"] / statistics.median(seconds)
    return (f"| {what} | {name} | {len(with_it)}, {len(seconds)} | {spread(seconds, 2)} | {tokens:.0f} | {spread(shares, 1)} % | "
            f"{'' if name == 'weft' else spread(ratios, 2)} |")


def table(file):
    lines = [json.loads(line) for line in pathlib.Path(file).read_text().splitlines()]
    print("| | program | rounds, steps | s a step | tokens/s | of the product rate | weft is faster by |\n|---|---|---|---|---|---|---|")
    for what in dict.fromkeys(line["what"] for line in lines):
        rounds = rounds_of([line for line in lines if line["what"] == what])
        for name in dict.fromkeys(name for one in rounds for name in one):
            print(row(what, name, rounds))
        print(f"| {what} | product rate, GFLOP/s | | {spread([one['weft']['product_flops'] / 1e9 for one in rounds], 0)} | | | |")


if __name__ == "__main__":
    sys.exit({"take": take, "table": table}[sys.argv[1]](*sys.argv[2:]))
