#!/usr/bin/env python3
"""beside.py --weft PROGRAM [--rounds N]: what a step of a tiny model takes beside programs that use the same processors, by how long its
threads spin while they wait for each other (GOMP_SPINCOUNT; none: libgomp's own way). In turn; the median of the rounds, least to most."""
import argparse
import os
import re
import statistics
import subprocess

TRAIN = """train gpt --mock-data --vocab-size 512 --num-layers 2 --hidden-size 64 --num-attention-heads 4 --seq-length 128
  --max-position-embeddings 128 --micro-batch-size 4 --global-batch-size 4 --train-iters 40 --lr 1e-3 --log-interval 20 --eval-iters 0""".split()
WAYS = {"libgomp's own": {"OMP_WAIT_POLICY": ""}, "GOMP_SPINCOUNT=100": {"GOMP_SPINCOUNT": "100"}, "1000": {"GOMP_SPINCOUNT": "1000"},
        "10000": {"GOMP_SPINCOUNT": "10000"}, "100000": {"GOMP_SPINCOUNT": "100000"}, "OMP_WAIT_POLICY=passive": {"OMP_WAIT_POLICY": "passive"}}


def step(weft, way):
    """Milliseconds, of the last twenty steps."""
    said = subprocess.run([weft, *TRAIN], env=os.environ | way, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=True).stdout
    return float(re.findall(r"elapsed time per iteration \(ms\): ([\d.]+)", said)[-1])


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--weft", required=True)
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    print("| beside | " + " | ".join(WAYS) + " |\n|---" + "|---" * len(WAYS) + "|")
    for busy in range(4):
        others = [subprocess.Popen(["sh", "-c", "while :; do :; done"]) for _ in range(busy)]
        try:
            took = {name: [] for name in WAYS}
            for _ in range(args.rounds):
                for name, way in WAYS.items():
                    took[name].append(step(args.weft, way))
        finally:
            for other in others:
                other.kill()
        cells = [f"{statistics.median(ms):.1f} ({min(ms):.1f} to {max(ms):.1f})" for ms in took.values()]
        print(f"| {busy} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
