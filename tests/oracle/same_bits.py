#!/usr/bin/env python3
"""same_bits.py --weft PROGRAM (--write FILE | --compare FILE): trains forty layouts and digests what came of each.

For a change that must change no bit: digests are written with the program from before, and compared with the program from after. A
digest is of every line of the log (loss, norm, rate, the evaluation) and of every byte of tensor that the last checkpoint holds."""
import argparse
import hashlib
import json
import pathlib
import subprocess
import sys
import tempfile

LENGTH = """--train-iters 4 --micro-batch-size 2 --global-batch-size 8 --lr 1e-2 --lr-warmup-iters 1 --clip-grad 0.5
  --eval-interval 2 --eval-iters 1 --log-interval 1 --save-interval 4 --mock-data --vocab-size 250 --threads 1 --seed 11""".split()
MODELS = {
    "gpt": "--num-layers 4 --hidden-size 64 --num-attention-heads 8 --seq-length 64 --max-position-embeddings 64",
    "llama": """--num-layers 4 --hidden-size 64 --num-attention-heads 8 --group-query-attention --num-query-groups 4 --seq-length 64
      --max-position-embeddings 64 --position-embedding-type rope --normalization RMSNorm --swiglu --disable-bias-linear
      --untie-embeddings-and-output-weights --qk-layernorm --hidden-dropout 0 --attention-dropout 0""",
}
LAYOUTS = [
    "gpt", "llama", "gpt --bf16", "llama --bf16", "gpt --fp16 --initial-loss-scale 4096", "gpt --optimizer sgd",
    "gpt --recompute-granularity full --recompute-method uniform --recompute-num-layers 2",
    "llama --recompute-granularity selective --recompute-modules core_attn mlp",
    "gpt --calculate-per-token-loss", "llama --window-size 15,0 --window-attn-skip-freq 2", "gpt --reset-position-ids --reset-attention-mask",
    "gpt tp2", "llama tp4", "gpt tp2 --sequence-parallel", "llama tp2 --sequence-parallel --bf16", "llama tp4 --sequence-parallel",
    "gpt dp2", "gpt dp4 --use-distributed-optimizer", "llama dp2 --use-distributed-optimizer --overlap-grad-reduce --ddp-bucket-size 20000",
    "gpt dp2 --bf16 --use-distributed-optimizer --grad-reduce-in-bf16",
    "gpt cp2", "llama cp2 --cp-comm-type all_gather", "gpt cp4 --cp-comm-type a2a", "llama cp2 tp2 --sequence-parallel",
    "gpt pp2", "gpt pp4 dp2 --use-distributed-optimizer", "llama pp2 --num-virtual-stages-per-pipeline-rank 2",
    "llama pp2 --pipeline-schedule zb-h1", "gpt pp2 --pipeline-schedule zb-v", "gpt pp2 tp2 dp2 --sequence-parallel --use-distributed-optimizer",
    "llama pp2 tp2 cp2 --sequence-parallel", "gpt pp2 --bf16 --accumulate-allreduce-grads-in-fp32",
    "gpt --exact", "gpt tp2 --exact", "llama tp8 --exact", "gpt tp2 dp2 --sequence-parallel --use-distributed-optimizer --exact",
    "llama cp2 tp2 --exact", "gpt pp2 dp2 --exact", "llama tp2 pp2 --sequence-parallel --bf16 --exact",
    "gpt tp2 pp2 dp2 --sequence-parallel --overlap-grad-reduce --exact",
]
DEGREES = {"tp": "--tensor-model-parallel-size", "pp": "--pipeline-model-parallel-size", "cp": "--context-parallel-size"}


def command(layout):
    words, ranks = [], 1
    model, *rest = layout.split()
    for word in rest:
        if word[:2] in ("tp", "pp", "cp", "dp") and word[2:].isdigit():
            ranks *= int(word[2:])
            if word[:2] in DEGREES:
                words += [DEGREES[word[:2]], word[2:]]
        else:
            words.append(word)
    return ["train", "gpt", *MODELS[model].split(), *LENGTH, *words, "--ranks", str(ranks)]


def digest(weft, layout):
    with tempfile.TemporaryDirectory() as folder:
        told = pathlib.Path(folder) / "log.jsonl"
        saved = pathlib.Path(folder) / "saved"
        run = subprocess.run([weft, *command(layout), "--log-jsonl", str(told), "--save", str(saved)], capture_output=True, text=True)
        if run.returncode:
            sys.exit(f"same_bits.py: {layout}: {run.stderr[-600:]}")
        numbers = []
        for line in told.read_text().splitlines():
            step = json.loads(line)
            numbers.append({key: value for key, value in step.items() if "loss" in key or key in ("iteration", "grad_norm", "learning_rate")})
        tensors = hashlib.sha256()
        files = sorted(saved.glob("step_*/rank_*.safetensors"))
        if not files:
            sys.exit(f"same_bits.py: {layout}: no tensors in {saved}")
        for path in files:
            tensors.update(path.name.encode() + path.read_bytes())
        return {"numbers": numbers, "tensors": tensors.hexdigest()}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--weft", required=True)
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--write")
    what.add_argument("--compare")
    given = parser.parse_args()
    found = {layout: digest(given.weft, layout) for layout in LAYOUTS}
    if given.write:
        pathlib.Path(given.write).write_text(json.dumps(found, indent=1))
        return print(f"{len(found)} layouts written")
    before = json.loads(pathlib.Path(given.compare).read_text())
    parted = [layout for layout in LAYOUTS if found[layout] != before.get(layout)]
    for layout in parted:
        print(f"{layout}: {found[layout]} was {before.get(layout)}"[:900])
    print(f"{len(LAYOUTS) - len(parted)} of {len(LAYOUTS)} layouts have the same bits")
    sys.exit(1 if parted else 0)


if __name__ == "__main__":
    main()
