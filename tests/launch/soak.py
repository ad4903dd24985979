#!/usr/bin/env python3
"""soak.py --weft PROGRAM [--kills N] [--seconds S] [--launches N] [--seed K]: four ranks, data parallel 2 by tensor parallel 2, as threads, as processes
of our agents and of mpirun, under every kind of fault at random times, on documents of files; compared with a run that nobody disturbed.

Ranks are killed by random signals and stopped so that they hang; a bit of a weight is flipped; launchers are killed, and told to end. A launcher must start
its ranks again from the newest step by itself; one that has ended is started again by us, and may leave no process behind. Every loss that is computed, and the weights and moments in the end, must have the bits of the undisturbed run, and every step
must have consumed as many samples: that loss comes of those samples alone. Then many
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
from launch_test import ENVIRONMENT, MODEL as MOCK, children, is_rank, launches_at_once_do_not_meet, losses, steps, tensors

STEPS, INTERVAL, BATCH = 120, 3, 4
MODEL = [word for word in MOCK if word not in ("--mock-data", "--data-order", "keyed")]
SIGNALS = [signal.SIGKILL, signal.SIGSEGV, signal.SIGABRT, signal.SIGBUS]
KINDS = {"kill": 55, "hang": 10, "launcher killed": 20, "launcher told to end": 15}


def make_documents(weft, folder, draw):
    """Token files of documents of numbers, of which a run sees each sequence more than once, in another order each time."""
    with open(folder / "documents.jsonl", "w") as out:
        for _ in range(60):
            print(json.dumps({"text": " ".join(str(draw.randrange(50)) for _ in range(40))}), file=out)
    subprocess.run([weft, "preprocess", "--input", folder / "documents.jsonl", "--output-prefix", folder / "data", "--tokenizer-type", "NullTokenizer",
                    "--vocab-size", "59", "--append-eod"], check=True, capture_output=True, env=ENVIRONMENT)
    return ["--data-path", str(folder / "data_text_document"), "--split", "100,0,0", "--tokenizer-type", "NullTokenizer"]


def words(weft, folder, more, data):
    return [weft, "launch", *more, "--nproc-per-node", "4", "--max-restarts", "1000", "--hang-limit", "3", "train", "gpt", *MODEL, *data, "--train-iters", str(STEPS),
            "--tensor-model-parallel-size", "2", "--save", str(folder / "saved"), "--load", str(folder / "saved"), "--allow-fresh-start",
            "--save-interval", str(INTERVAL), "--check-replicas", str(INTERVAL), "--log-jsonl", str(folder / "log.jsonl")]


def fail(sentence, said=""):
    sys.exit(f"soak.py: {sentence}\n{said}")


def strike(kind, launch, ranks, draw):
    if kind == "kill":
        os.kill(draw.choice(ranks), draw.choice(SIGNALS))
    elif kind == "hang":
        os.kill(draw.choice(ranks), signal.SIGSTOP)
    else:
        launch.send_signal(signal.SIGKILL if kind == "launcher killed" else signal.SIGTERM)
        launch.wait()
        late = time.monotonic() + 60
        while any(is_rank(rank) for rank in ranks):
            if time.monotonic() > late:
                fail(f"ranks {ranks} outlived their launcher")


def disturbed(start, folder, draw, faults):
    """Starts a launcher and strikes below it until it ends; returns whether the job is complete."""
    newest, without_progress, kind = 0, 0, ""
    with open(folder / "said", "a+") as said, subprocess.Popen(start, stdout=said, stderr=said, env=ENVIRONMENT) as launch:
        while True:
            try:
                launch.wait(timeout=draw.uniform(0.05, 0.8))
                break
            except subprocess.TimeoutExpired:
                pass
            ranks = [child for child in children(launch.pid) if is_rank(child)]
            reached = (steps(folder / "saved") or [0])[-1]
            without_progress = 0 if reached > newest else without_progress
            newest = max(newest, reached)
            # Three restarts without a new step would rightly end the job.
            if faults["left"] <= 0 or not ranks or without_progress == 2:
                continue
            kind = draw.choices(list(KINDS), KINDS.values())[0]
            try:
                strike(kind, launch, ranks, draw)
            except ProcessLookupError:
                continue
            without_progress += 1
            faults["left"] -= 1
            faults[kind] = faults.get(kind, 0) + 1
    # Told to end, it returns what its ranks had come to: 3, or a signal's code before they train or while one fails.
    if kind != "launcher told to end" and launch.returncode not in (0, -signal.SIGKILL):
        fail(f"the launcher ended with {launch.returncode}", (folder / "said").read_text()[-4000:])
    return launch.returncode == 0


def one_run(start, folder, draw, faults, expected):
    """Until the job is complete; then every loss that was computed must be right, but for the step of a flipped bit, which is done again."""
    flipped, done = INTERVAL * draw.randrange(2, STEPS // INTERVAL), False
    flip = ["--inject", f"flip@step={flipped},rank={draw.randrange(4)}"]
    while not done:
        done = disturbed(start(flip), folder, draw, faults)
        reached = (steps(folder / "saved") or [0])[-1]
        if reached >= flipped:
            flip = []
    last = {}
    for step, rest in losses(folder / "log.jsonl"):
        last[step] = rest
        if rest != expected[step] and step != flipped:
            fail(f"step {step} has loss, norm and samples {rest}, {expected[step]} in the undisturbed run")
        if rest[2] != BATCH * step:
            fail(f"step {step} has consumed {rest[2]} samples, and {BATCH} a step are right")
    if wrong := [f"step {step}: {last.get(step, 'no line')}, {rest} in the undisturbed run" for step, rest in expected.items() if last.get(step) != rest]:
        fail(f"not every step is as in the undisturbed run in the end (the flipped one is {flipped})", "\n".join([*wrong, (folder / "said").read_text()[-20000:]]))
    faults["flip"] = faults.get("flip", 0) + ("hold different bits" in (folder / "said").read_text())


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--weft", required=True)
    parser.add_argument("--kills", type=int, default=12, help="faults of all kinds")
    parser.add_argument("--seconds", type=float, default=1e9, help="stop after this time, whatever was done")
    parser.add_argument("--launches", type=int, default=0, help="of two workers, 25 at once")
    parser.add_argument("--seed", type=int, default=11)
    args = parser.parse_args()
    draw, began, faults, runs = random.Random(args.seed), time.monotonic(), {"left": args.kills}, 0
    kinds = [[], ["--launcher", "weft"]] + ([["--processes"]] if shutil.which("mpirun") else [])
    lasting = tempfile.TemporaryDirectory(prefix="weft-soak-")
    data = make_documents(args.weft, pathlib.Path(lasting.name), draw)
    with tempfile.TemporaryDirectory(prefix="weft-soak-") as name:
        folder = pathlib.Path(name)
        subprocess.run(words(args.weft, folder, [], data), check=True, capture_output=True, env=ENVIRONMENT)
        expected, end = dict(losses(folder / "log.jsonl")), tensors(folder / "saved")
    while (faults["left"] > 0 or runs < len(kinds)) and time.monotonic() - began < args.seconds:
        with tempfile.TemporaryDirectory(prefix="weft-soak-") as name:
            folder = pathlib.Path(name)
            kind = kinds[runs % len(kinds)]
            one_run(lambda flip: words(args.weft, folder, kind + flip, data), folder, draw, faults, expected)
            if tensors(folder / "saved") != end:
                fail("weights and moments in the end are not those of the undisturbed run")
            runs += 1
    for _ in range(0, args.launches, 25):
        launches_at_once_do_not_meet(args.weft, None)
    lasting.cleanup()
    del faults["left"]
    print(f"{sum(faults.values())} faults ({', '.join(f'{kind} {count}' for kind, count in sorted(faults.items()))}) in {runs} runs of {STEPS} steps "
          f"under the launcher, {args.launches} launches at once: every loss, count of samples, weight and moment as in the undisturbed run; "
          f"{time.monotonic() - began:.0f} s")


if __name__ == "__main__":
    main()
