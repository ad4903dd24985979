#!/usr/bin/env python3
"""layouts.py WEFT [GROUP...]: the same model and the same cores under several layouts, in turn.

A 4-layer cut of GPT-2 124M (hidden 768, 12 heads, sequence 1024, vocabulary 50304). The layouts of a group run one after the other in each
round, and a share is taken within a round, so that what slows the machine for a while slows both; the median over rounds is told."""
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile

MODEL = """--num-layers 4 --hidden-size 768 --num-attention-heads 12 --seq-length 1024 --max-position-embeddings 1024 --vocab-size 50304
  --attention-dropout 0 --hidden-dropout 0 --lr 1e-4 --mock-data --data-order keyed --eval-iters 0 --log-interval 1""".split()
ONE = "--ranks 1 --threads 2 --micro-batch-size 2".split()
DP = "--ranks 2 --threads 1 --micro-batch-size 2".split()
TP = [*DP, "--tensor-model-parallel-size", "2"]
MPI = "mpirun -n 2 --allow-run-as-root --oversubscribe --bind-to none".split()

# Name: global batch, steps, rounds, then each layout: its name, what starts weft, flags, what it is compared with.
GROUPS = {
    "tp": (2, 5, 3, [("one rank", [], ONE, ""), ("tp 2", [], TP, "one rank"), ("tp 2, sp", [], [*TP, "--sequence-parallel"], "one rank"),
                     ("tp 2 under mpirun", MPI, TP[2:], "tp 2")]),
    "dp": (8, 3, 2, [("one rank", [], ONE, ""), ("dp 2", [], DP, "one rank"),
                     ("dp 2, ZeRO-1", [], [*DP, "--use-distributed-optimizer"], "one rank"),
                     ("dp 2, ZeRO-1, overlapped", [], [*DP, *"--use-distributed-optimizer --overlap-grad-reduce --overlap-param-gather".split()],
                      "one rank"), ("dp 2 under mpirun", MPI, DP[2:], "dp 2")]),
    "exact": (2, 5, 3, [("fast", [], [*ONE[:-1], "1"], ""), ("exact", [], [*ONE[:-1], "1", "--exact"], "fast")]),
}


def seconds(weft, batch, steps, layout):
    """A step, the first left out."""
    _, before, flags, _ = layout
    with tempfile.TemporaryDirectory(prefix="weft-layouts-") as name:
        log = pathlib.Path(name) / "log.jsonl"
        run = subprocess.run([*before, weft, "train", "gpt", *MODEL, "--global-batch-size", str(batch), "--train-iters", str(steps),
                              "--log-jsonl", str(log), *flags], capture_output=True, text=True)
        if run.returncode:
            sys.exit(run.stderr)
        return statistics.median(json.loads(line)["milliseconds"] / 1000 for line in log.read_text().splitlines()[1:])


def main():
    weft, *names = sys.argv[1:]
    print("| layout | tokens/s | compared with | share, median of rounds (least to most) |")
    print("|---|---|---|---|")
    for name in names or GROUPS:
        batch, steps, rounds, layouts = GROUPS[name]
        took = [{layout[0]: seconds(weft, batch, steps, layout) for layout in layouts} for _ in range(rounds)]
        for layout, _, _, other in layouts:
            rate = batch * 1024 / statistics.median(t[layout] for t in took)
            shares = sorted(t[other] / t[layout] for t in took) if other else []
            print(f"| {layout} | {rate:.0f} | {other} |", f"{statistics.median(shares):.1%} ({shares[0]:.1%} to {shares[-1]:.1%}) |" if other else " |",
                  flush=True)


if __name__ == "__main__":
    main()
