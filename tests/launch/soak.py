#!/usr/bin/env python3
"""soak.py --weft PROGRAM [--kills N] [--seconds S] [--launches N] [--seed K]: kills ranks and launchers at random times with random signals, and
compares with a run that nobody disturbed.

A launcher must start its ranks again from the newest step by itself; a launcher that was killed is started again by us, and may leave no
process behind. Every loss that is computed, and the weights and moments in the end, must have the bits of the undisturbed run. Then many
launches at once, whose ports and ranks must not meet."""
import argparse
import json
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from launch_test import ENVIRONMENT, MODEL, children, is_rank, launches_at_once_do_not_meet, tensors

STEPS, INTERVAL = 120, 3
KINDS = [signal.SIGKILL, signal.SIGSEGV, signal.SIGABRT, signal.SIGBUS]


def words(weft, folder, more):
    return [weft, "launch", *more, "--nproc-per-node", "4", "--max-restarts", "1000", "train", "gpt", *MODEL, "--train-iters", str(STEPS),
            "--tensor-model-parallel-size", "2", "--save", str(folder / "saved"), "--load", str(folder / "saved"), "--allow-fresh-start",
            "--save-interval", str(INTERVAL), "--log-jsonl", str(folder / "log.jsonl")]


def losses(folder):
    """Every line of the log: step, loss, norm. A line that a kill tore is none."""
    for line in (folder / "log.jsonl").read_text().splitlines():
        try:
            step = json.loads(line)
        except ValueError:
            continue
        yield step["iteration"], (step["lm_loss"], step["grad_norm"])


def fail(sentence, said=""):
    sys.exit(f"soak.py: {sentence}\n{said}")


def disturbed(weft, folder, more, draw, kills_left):
    """Starts a launcher and kills below it until it ends; returns the kills, and whether the job is complete."""
    kills = 0
    with open(folder / "said", "a+") as said, subprocess.Popen(words(weft, folder, more), stdout=said, stderr=said,
                                                               env=ENVIRONMENT) as launch:
        while True:
            try:
                launch.wait(timeout=draw.uniform(0.05, 0.8))
                break
            except subprocess.TimeoutExpired:
                pass
            ranks = [child for child in children(launch.pid) if is_rank(child)]
            if kills >= kills_left or not ranks:
                continue
            victim = launch.pid if draw.random() < 0.2 else draw.choice(ranks)
            try:
                os.kill(victim, signal.SIGKILL if victim == launch.pid else draw.choice(KINDS))
            except ProcessLookupError:
                continue
            kills += 1
            if victim == launch.pid:
                launch.wait()
                late = time.monotonic() + 5
                while any(is_rank(rank) for rank in ranks):
                    if time.monotonic() > late:
                        fail(f"ranks {ranks} outlived their launcher")
    if launch.returncode not in (0, -signal.SIGKILL):
        fail(f"the launcher ended with {launch.returncode}", (folder / "said").read_text()[-4000:])
    return kills, launch.returncode == 0


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--weft", required=True)
    parser.add_argument("--kills", type=int, default=12)
    parser.add_argument("--seconds", type=float, default=1e9, help="stop after this time, whatever was done")
    parser.add_argument("--launches", type=int, default=0, help="of two workers, 25 at once")
    parser.add_argument("--seed", type=int, default=11)
    args = parser.parse_args()
    draw, began, kills, runs = random.Random(args.seed), time.monotonic(), 0, 0
    kinds = [[], ["--processes"]] if shutil.which("mpirun") else [[]]
    with tempfile.TemporaryDirectory(prefix="weft-soak-") as name:
        folder = pathlib.Path(name)
        subprocess.run(words(args.weft, folder, []), check=True, capture_output=True, env=ENVIRONMENT)
        expected, end = dict(losses(folder)), tensors(folder / "saved")
    while kills < args.kills and time.monotonic() - began < args.seconds:
        with tempfile.TemporaryDirectory(prefix="weft-soak-") as name:
            folder, done = pathlib.Path(name), False
            while not done:
                more, done = disturbed(args.weft, folder, kinds[runs % len(kinds)], draw, args.kills - kills)
                kills += more
            for step, rest in losses(folder):
                if rest != expected[step]:
                    fail(f"step {step} has loss and norm {rest}, {expected[step]} in the undisturbed run")
            if tensors(folder / "saved") != end:
                fail("weights and moments in the end are not those of the undisturbed run")
            runs += 1
    for _ in range(0, args.launches, 25):
        launches_at_once_do_not_meet(args.weft, None)
    print(f"{kills} kills in {runs} runs of {STEPS} steps under the launcher, {args.launches} launches at once: every loss, weight and moment as "
          f"in the undisturbed run; {time.monotonic() - began:.0f} s")


if __name__ == "__main__":
    main()
