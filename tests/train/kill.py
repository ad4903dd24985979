#!/usr/bin/env python3
"""kill.py --weft PROGRAM [--rounds N] [--seconds S] [--seed K]: kills training with SIGKILL at random times, starts it again, and compares with a run that nobody killed.

Every start must go on from the newest complete step, never anew while one is there; every loss that is computed, and the weights and
moments in the end, must have the bits of the unbroken run. A series of kills ends when the run is complete; the next one begins anew."""
import argparse
import json
import pathlib
import random
import re
import subprocess
import sys
import tempfile
import time

STEPS, INTERVAL = 60, 3
MODEL = """--num-layers 1 --hidden-size 16 --num-attention-heads 2 --seq-length 16 --micro-batch-size 2 --global-batch-size 4
  --lr 1e-3 --mock-data --data-order keyed --vocab-size 60 --eval-iters 0 --log-interval 1 --threads 1""".split()


def command(weft, folder, extra):
    return [weft, "train", "gpt", *MODEL, "--train-iters", str(STEPS), "--save", str(folder / "saved"), "--load",
            str(folder / "saved"), "--save-interval", str(INTERVAL), "--allow-fresh-start", "--log-jsonl",
            str(folder / "log.jsonl"), *extra]


def complete_steps(folder):
    return sorted(int(mark.parent.name[5:]) for mark in folder.glob("saved/step_*/COMPLETE"))


def losses(folder):
    """Every line of the log: step, loss, norm. A line that a kill tore is none."""
    out = []
    for line in (folder / "log.jsonl").read_text().splitlines():
        try:
            step = json.loads(line)
        except ValueError:
            continue
        out.append((step["iteration"], step["lm_loss"], step["grad_norm"]))
    return out


def final_tensors(folder):
    return {path.name: path.read_bytes() for path in folder.glob(f"saved/step_{STEPS:08d}/rank_*.safetensors")}


def fail(sentence, said=""):
    sys.exit(f"kill.py: {sentence}\n{said}")


class Unbroken:
    def __init__(self, weft, folder):
        started = time.monotonic()
        subprocess.run(command(weft, folder, []), check=True, capture_output=True)
        self.seconds = time.monotonic() - started
        self.losses = dict((step, rest) for step, *rest in losses(folder))
        self.tensors = final_tensors(folder)
        assert len(self.losses) == STEPS and self.tensors


def attempt(args, folder, extra, lifetime):
    """Starts the run and kills it after `lifetime` seconds; whether it ended by itself, and what it said."""
    newest = max(complete_steps(folder), default=None)
    with subprocess.Popen(command(args.weft, folder, extra), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                          text=True) as run:
        try:
            said = run.communicate(timeout=lifetime)[1]
        except subprocess.TimeoutExpired:
            run.kill()
            said = run.communicate()[1]
    done = run.returncode == 0
    if run.returncode not in (0, -9):
        fail(f"the run ended with {run.returncode}", said)
    resumed = re.search(r"resumed from .*step_(\d+)", said)
    if resumed and int(resumed[1]) != newest:
        fail(f"went on from step {int(resumed[1])}, the newest complete one is {newest}", said)
    if newest is not None and "fresh start" in said:
        fail(f"started anew over step {newest}", said)
    return done, said


def compare(unbroken, folder, said):
    for step, *rest in losses(folder):
        if rest != unbroken.losses[step]:
            fail(f"step {step} has loss and norm {rest}, {unbroken.losses[step]} in the unbroken run", said)
    if final_tensors(folder) != unbroken.tensors:
        fail("weights and moments in the end are not those of the unbroken run", said)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--weft", required=True)
    parser.add_argument("--rounds", type=int, default=25)
    parser.add_argument("--seconds", type=float, default=1e9, help="stop after this time, whatever was done")
    parser.add_argument("--seed", type=int, default=11)
    args = parser.parse_args()
    draw = random.Random(args.seed)
    began, kills, runs, resumed = time.monotonic(), 0, 0, 0
    with tempfile.TemporaryDirectory(prefix="weft-kill-") as first:
        unbroken = Unbroken(args.weft, pathlib.Path(first))
    while kills < args.rounds and time.monotonic() - began < args.seconds:
        extra = [["--async-save"], [], ["--save-keep-last", "2"], ["--async-save", "--verify-resume"]][runs % 4]
        with tempfile.TemporaryDirectory(prefix="weft-kill-") as name:
            done = False
            while not done:
                enough = kills >= args.rounds
                lifetime = None if enough else draw.uniform(0.02, max(0.1, 0.6 * unbroken.seconds))
                done, said = attempt(args, pathlib.Path(name), extra, lifetime)
                kills += not done
                resumed += "resumed from" in said
            compare(unbroken, pathlib.Path(name), said)
            runs += 1
    print(f"{kills} kills in {runs} runs of {STEPS} steps, {resumed} times resumed: every loss, weight and moment as in "
          f"the unbroken run; {time.monotonic() - began:.0f} s")


if __name__ == "__main__":
    main()
