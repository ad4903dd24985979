#!/usr/bin/env python3
"""gpu_processes_test.py --weft PROGRAM --emulated PROGRAM: ranks that are processes train on emulated GPUs; losses are the processor's.

EMULATED has the emulated GPU in it, and WEFT has not. A process whose GPU's watcher found something ends with 99."""
import argparse
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

MODEL = """--num-layers 2 --hidden-size 64 --num-attention-heads 2 --seq-length 16 --max-position-embeddings 16 --micro-batch-size 2
  --global-batch-size 4 --lr 0.01 --lr-decay-style constant --vocab-size 61 --make-vocab-size-divisible-by 8 --init-method-std 0.1
  --mock-data --data-order keyed --eval-iters 0 --log-interval 1 --threads 1 --train-iters 4 --save-interval 2""".split()
ROUNDING = 2e-5  # of losses near 4 over four steps whose sums have another order (gpu_train_test.cpp)
# What launches this test must not be taken for what launches its ranks.
ENVIRONMENT = {name: value for name, value in os.environ.items() if not re.match("OMPI_|PMI|SLURM_|PET_|RANK$|WORLD_SIZE$|OMP_NUM_THREADS$", name)}


def fail(what, said):
    sys.exit(f"gpu_processes_test.py: {what}\n{said.returncode}\n{said.stdout}\n{said.stderr}")


def train(program, folder, words, gpus=1, launch=(), nccl=False):
    """(Losses by step, what was said.)"""
    log, save = folder / "log.jsonl", folder / "saved"
    machine = {"EMULATED_GPUS": str(gpus)} | ({"EMULATED_NCCL": str(folder / "nccl")} if nccl else {})
    said = subprocess.run([str(word) for word in [program, *launch, "train", "gpt", *MODEL, *words, "--log-jsonl", log, "--save", save]],
                          capture_output=True, text=True, timeout=300, env=ENVIRONMENT | machine)
    if said.returncode:
        fail(f"{words} ended badly", said)
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    return {line["iteration"]: line["lm_loss"] for line in lines if "lm_loss" in line and "evaluation" not in line}, said


def expect(holds, what, said):
    if not holds:
        fail(what, said)


def by_processes(how, *more, ranks=2):
    return ["launch", *how, "--nproc-per-node", ranks, *more]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--weft", type=pathlib.Path, required=True)
    parser.add_argument("--emulated", type=pathlib.Path, required=True)
    asked = parser.parse_args()
    kinds = [["--launcher", "weft"]] + ([["--processes"]] if shutil.which("mpirun") else [])
    # By how many GPUs, and whether there is NCCL.
    ways = {(1, False): "through the host: ranks 0 and 1 share ", (2, False): "through the host: on rank 0 libnccl.so.2 is not to be found",
            (2, True): "from GPU to GPU by NCCL"}

    def run(program, *words, **more):
        with tempfile.TemporaryDirectory(prefix="weft-gpu-processes-") as folder:
            return train(program, pathlib.Path(folder), words, **more)

    for layout in (["--tensor-model-parallel-size", 2, "--sequence-parallel"], ["--pipeline-model-parallel-size", 2], ["--zero-stage", 1]):
        expected, alone = run(asked.weft, "--ranks", 2, *layout)
        expect(len(expected) == 4, f"four steps, not {expected}", alone)
        for how in kinds if "--zero-stage" in layout else kinds[:1]:
            for (gpus, nccl), way in ways.items():
                losses, said = run(asked.emulated, "--device", "cuda", *layout, gpus=gpus, nccl=nccl, launch=by_processes(how))
                apart = max(abs(losses[step] - expected[step]) for step in expected)
                expect(apart <= ROUNDING, f"{layout} by {how} on {gpus} GPUs, {way}, parts from the processor by {apart}", said)
                if how == kinds[0]:
                    expect(f"ranks speak {way}" in said.stderr, f"{gpus} GPUs are told", said)

    def by_nccl(*words, ranks=2):
        return run(asked.emulated, "--device", "cuda", *words, gpus=ranks, nccl=True, launch=by_processes(kinds[0], ranks=ranks))

    # Circles of two by two, and rows that travel to the experts of others.
    experts = ["--num-experts", 4, "--moe-router-topk", 2, "--disable-bias-linear", "--expert-model-parallel-size", 2]
    for ranks, words in ((4, ["--tensor-model-parallel-size", 2, "--pipeline-model-parallel-size", 2, "--sequence-parallel"]), (2, experts)):
        expected, _ = run(asked.weft, "--ranks", ranks, *words)
        losses, said = by_nccl(*words, ranks=ranks)
        apart = max(abs(losses[step] - expected[step]) for step in expected)
        expect(apart <= ROUNDING, f"{words} by {ranks} processes parts from the processor by {apart}", said)

    # Exactly, they have the bits of one.
    alone, _ = run(asked.emulated, "--device", "cuda", "--exact")
    for words in (["--tensor-model-parallel-size", 2, "--sequence-parallel"], ["--context-parallel-size", 2], ["--zero-stage", 1]):
        losses, said = by_nccl("--exact", *words)
        expect(losses == alone, f"exact losses of one rank, {alone}, not {losses}", said)

    # A rank is ended by a signal, and all go on from what was saved: as if nothing had been.
    for nccl in (False, True):
        whole, _ = run(asked.emulated, "--device", "cuda", gpus=2, nccl=nccl, launch=by_processes(kinds[0]))
        killed, said = run(asked.emulated, "--device", "cuda", gpus=2, nccl=nccl, launch=by_processes(kinds[0], "--max-restarts", 1, "--inject", "kill@step=3,rank=1"))
        expect("restart 1 of 1" in said.stderr and "resumed from" in said.stderr, "it was started again", said)
        expect(killed == whole, f"the losses of the unbroken run, {whole}, not {killed}", said)


if __name__ == "__main__":
    main()
