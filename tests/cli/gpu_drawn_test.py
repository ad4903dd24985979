#!/usr/bin/env python3
"""gpu_drawn_test.py --weft PROGRAM --emulated PROGRAM [--first N] [--count N]: models and layouts that are drawn, N of them from number N on,
train three steps on emulated GPUs and on the processor, and are held against each other. Some GPUs go on from what the processor has saved.

EMULATED has the emulated GPU in it, and WEFT has not. A draw that the processor refuses is left out, and half of them at least must be taken. The
first step is held closely; behind it an update may have turned a number that was near zero, which the steps that follow make more of."""
import argparse
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile

STEPS = """--lr 0.003 --lr-decay-style constant --init-method-std 0.08 --mock-data --eval-iters 1 --log-interval 1 --threads 1 --train-iters 3 --clip-grad 1
  --max-position-embeddings 80""".split()
# How far the first step's loss and norm may be, and what comes behind it: of themselves.
NEAR = {"f32": (1e-5, 1e-4, 2e-3), "bf16": (2e-2, 1e-1, 5e-2), "fp16": (5e-3, 5e-2, 3e-2), "eight bits": (5e-2, 2e-1, 1e-1)}
SECONDS = 240

ACTIVATIONS = ["", "", "--swiglu", "--geglu", "--squared-relu", "--quick-geglu", "--relu", "--openai-gelu"]
POSITIONS = ["", "", "--position-embedding-type rope", "--position-embedding-type rope --rotary-percent 0.5", "--position-embedding-type rope --rotary-interleaved",
             "--position-embedding-type none", "--position-embedding-type yarn"]
# Layouts: ranks, those of them that have other samples, and what says so.
LAYOUTS = [(1, 1, ""), (1, 1, ""), (2, 1, "--tensor-model-parallel-size 2"), (2, 1, "--tensor-model-parallel-size 2 --sequence-parallel"),
           (2, 1, "--pipeline-model-parallel-size 2"), (2, 1, "--pipeline-model-parallel-size 2 --pipeline-schedule zb-h1"),
           (2, 1, "--context-parallel-size 2"), (4, 1, "--tensor-model-parallel-size 2 --context-parallel-size 2 --sequence-parallel"),
           (2, 2, "--zero-stage 1"), (2, 2, "--zero-stage 2"), (2, 2, "--zero-stage 3")]
EXPERT_LAYOUTS = [(1, 1, ""), (2, 2, "--expert-model-parallel-size 2"), (2, 2, "--expert-model-parallel-size 2 --zero-stage 1"),
                  (4, 4, "--expert-model-parallel-size 2 --zero-stage 3"), (2, 1, "--context-parallel-size 2 --expert-model-parallel-size 2"),
                  (4, 4, "--expert-model-parallel-size 2 --expert-tensor-parallel-size 2 --disable-bias-linear"),
                  (2, 1, "--tensor-model-parallel-size 2 --sequence-parallel --expert-model-parallel-size 2 --expert-tensor-parallel-size 1"),
                  (4, 2, "--pipeline-model-parallel-size 2 --expert-model-parallel-size 2")]
LAYOUTS_OF_FOUR_LAYERS = [(2, 1, "--pipeline-model-parallel-size 2 --num-layers-per-virtual-pipeline-stage 1"),
                          (2, 1, "--pipeline-model-parallel-size 2 --pipeline-schedule zb-v")]
LATENTS = ["--multi-latent-attention --kv-lora-rank 16 --qk-head-dim 16 --qk-pos-emb-head-dim 8 --v-head-dim 16",
           "--multi-latent-attention --q-lora-rank 24 --kv-lora-rank 16 --qk-head-dim 8 --qk-pos-emb-head-dim 8 --v-head-dim 24"]
ROOM = ["--moe-expert-capacity-factor 0.5", "--moe-expert-capacity-factor 1.25", "--moe-expert-capacity-factor 0.75 --moe-token-drop-policy position",
        "--moe-expert-capacity-factor 1 --moe-pad-expert-input-to-capacity"]


class Draw:
    """A model, a layout and an emulated GPU, which follow from a number."""

    def __init__(self, number):
        self.random, self.words, self.layouts = random.Random(number), [], LAYOUTS
        self.kind = self.one("gpt", "gpt", "gpt", "bert", "t5")
        self.precision = self.one("f32", "f32", "bf16", "bf16", "fp16")
        self.sizes()
        self.inside()
        self.of_kind()
        self.layout()
        self.gpu()
        self.before = 1 if self.random.random() < 0.3 else 0  # steps that the processor has done for it
        self.on_gpu += self.one("", "", "--timing-log-level 1", "--timing-log-level 2", "--profile --profile-step-start 1 --profile-step-end 2").split()

    def one(self, *all):
        return self.random.choice(all)

    def maybe(self, share, *all):
        if self.random.random() < share:
            self.say(self.one(*all))

    def say(self, *words):
        self.words += " ".join(str(word) for word in words).split()

    def sizes(self):
        heads, channels = self.one(2, 2, 4, 4, 3, 1, 6), self.one(8, 12, 16, 16, 20, 24, 40, 64, 72)
        self.heads, hidden = heads, self.one(min(heads * channels, 144), 48, 64, 80, 96, 100)
        layers = self.one(1, 2, 2, 2, 4)
        if layers == 4:
            self.layouts = LAYOUTS + LAYOUTS_OF_FOUR_LAYERS
        self.say("--num-layers", layers, "--hidden-size", hidden, "--num-attention-heads", heads, "--kv-channels", channels)
        self.say("--seq-length", self.one(16, 16, 24, 32, 40), "--vocab-size", self.one(61, 97, 128, 300), "--make-vocab-size-divisible-by", self.one(4, 8, 16))
        self.maybe(0.3, *(f"--ffn-hidden-size {width}" for width in (48, 64, 100, 129, 256)))

    def inside(self):
        self.say({"f32": "", "bf16": "--bf16", "fp16": "--fp16 --initial-loss-scale 1024"}[self.precision])
        self.say("--attention-dropout", self.one(0, 0, 0.1, 0.3), "--hidden-dropout", self.one(0, 0, 0.1))
        self.say(self.one(*ACTIVATIONS))
        self.maybe(0.3, "--disable-bias-linear")
        self.maybe(0.4, "--normalization RMSNorm", "--apply-layernorm-1p")
        self.maybe(0.3, "--recompute-granularity full --recompute-method uniform --recompute-num-layers 1", "--recompute-granularity selective")
        self.maybe(0.3, *(f"--optimizer {name}" for name in ("sgd", "lion", "muon", "lamb")))
        if self.precision == "bf16" and self.random.random() < 0.15:
            self.precision = "eight bits"
            self.say("--fp8-format", self.one("e4m3", "hybrid"), "--fp8-recipe", self.one("delayed", "tensorwise"))

    def of_kind(self):
        if self.kind == "t5":
            self.say("--decoder-seq-length", self.one(16, 24))
            self.maybe(0.4, "--position-embedding-type relative")
        if self.kind != "gpt":
            return
        self.say("--data-order keyed", self.one(*POSITIONS))
        self.maybe(0.3, "--untie-embeddings-and-output-weights")
        self.maybe(0.2, "--qk-layernorm")
        self.maybe(0.15, "--window-size 4 0", "--window-size 20 0")
        self.maybe(0.25, "--eod-mask-loss --reset-position-ids --reset-attention-mask")
        self.maybe(0.1, "--mtp-num-layers 1")
        self.maybe(0.1, *LATENTS)
        if self.heads % 2 == 0:
            self.maybe(0.3, "--group-query-attention --num-query-groups 1", "--group-query-attention --num-query-groups 2")
        if self.random.random() < 0.35:
            self.experts()

    def experts(self):
        chosen = self.one(1, 2, 2)
        self.layouts = EXPERT_LAYOUTS + self.layouts[-2:]
        self.say("--num-experts", self.one(2, 4, 8, 5), "--moe-router-topk", chosen)
        self.say("--moe-router-pre-softmax" if chosen == 1 else self.one("", "--moe-router-score-function sigmoid --moe-router-enable-expert-bias"))
        self.maybe(0.4, "--moe-aux-loss-coeff 0.01", "--moe-z-loss-coeff 0.001", "--moe-router-load-balancing-type sinkhorn")
        self.maybe(0.4, *ROOM)
        self.maybe(0.2, "--moe-shared-expert-intermediate-size 32")
        self.maybe(0.2, "--moe-ffn-hidden-size 24", "--moe-ffn-hidden-size 33")

    def layout(self):
        ranks, others, words = self.one(*self.layouts)
        samples = self.one(1, 2, 3)
        self.say(words, "--ranks", ranks, "--micro-batch-size", samples, "--global-batch-size", samples * others * self.one(1, 2, 4))

    def gpu(self):
        """Ranks share one, or have one each and speak by NCCL."""
        self.on_gpu = f"--device cuda {self.one('', '', '--by-warpgroups')} {self.one('', '', '--cuda-graph-impl local')}".split()
        self.machine = {"EMULATED_CAPABILITY": self.one("8", "9"), "EMULATED_GPUS": self.one("1", "4"), "EMULATED_NCCL": "here"}


def trained(program, draw, words, log, machine):
    """(Losses and norms by line of the log, what was said)."""
    said = subprocess.run([str(program.resolve()), "train", draw.kind, *STEPS, *draw.words, *words, "--log-jsonl", log], capture_output=True, text=True,
                          timeout=SECONDS, env=os.environ | machine)
    lines = [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []
    return [(line["lm_loss"], line.get("grad_norm")) for line in lines if "lm_loss" in line], said


def apart(found, expected):
    return abs(found - expected) / max(1e-6, abs(expected))


def what_parts(draw, found, expected):
    loss, norm, later = NEAR[draw.precision]
    if len(found) != len(expected):
        return f"{len(found)} losses, not {len(expected)}"
    for step, (one, other) in enumerate(zip(found, expected)):
        if not apart(one[0], other[0]) <= (later if step else loss) or (step == 0 and not apart(one[1], other[1]) <= norm):
            return f"step {step + 1}: {one}, and the processor has {other}"
    return None


def tried(weft, emulated, number):
    """Whether the processor takes it; fails where GPUs give something else."""
    draw = Draw(number)
    with tempfile.TemporaryDirectory(prefix="weft-gpu-drawn-") as folder:
        saves = f"--save {folder}/saved --save-interval 1".split() if draw.before else []
        loads = f"--load {folder}/saved --ckpt-step {draw.before}".split() if draw.before else []
        expected, said = trained(weft, draw, saves, pathlib.Path(folder, "processor.jsonl"), {})
        if said.returncode:
            return False
        found, said = trained(emulated, draw, draw.on_gpu + loads, pathlib.Path(folder, "gpu.jsonl"), draw.machine)
    wrong = f"it ended with {said.returncode}" if said.returncode else what_parts(draw, found, expected[draw.before:])
    if wrong:
        machine = " ".join(f"{name}={value}" for name, value in draw.machine.items())
        sys.exit(f"gpu_drawn_test.py: draw {number}: {wrong}\n{machine} train {draw.kind} {' '.join(STEPS + draw.words + draw.on_gpu + loads)}\n{said.stderr}")
    return True


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--weft", type=pathlib.Path, required=True)
    parser.add_argument("--emulated", type=pathlib.Path, required=True)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--count", type=int, default=8)
    asked = parser.parse_args()
    taken = sum(tried(asked.weft, asked.emulated, number) for number in range(asked.first, asked.first + asked.count))
    if 2 * taken < asked.count:
        sys.exit(f"gpu_drawn_test.py: the processor takes {taken} of {asked.count} draws, and half of them at least are wanted")
    print(f"gpu_drawn_test.py: {taken} of {asked.count} draws were taken, and are the processor's on emulated GPUs")


if __name__ == "__main__":
    main()
