#!/usr/bin/env python3
"""go_on.py --weft PROGRAM: stops training by signals and limits, and goes on as Megatron's flags say. Losses are compared to the last bit
with those of a run that was never stopped."""
import argparse
import json
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

STEPS, CUT = 300, 40
MODEL = "--num-layers 1 --hidden-size 16 --num-attention-heads 2 --max-position-embeddings 16 --vocab-size 60".split()
RUN = f"""--seq-length 16 --micro-batch-size 2 --global-batch-size 4 --train-iters {STEPS} --mock-data --data-order keyed --eval-iters 0
  --log-interval 1 --threads 1""".split()
RATE = "--lr 1e-3 --lr-warmup-iters 5".split()
DONE, FAILED, USAGE, STOPPED = 0, 1, 2, 3
HUB = pathlib.Path(__file__).resolve().parent.parent / "golden/exchange/llama3"


def expect(true, sentence, said=""):
    if not true:
        sys.exit(f"go_on.py: {sentence}\n{said}")


class Folder:
    """A directory of checkpoints and the log of the last run in it."""

    def __init__(self, weft, path):
        self.weft, self.path, self.log = weft, path, path / "log.jsonl"
        path.mkdir(exist_ok=True)

    def command(self, words):
        self.log.unlink(missing_ok=True)
        return [self.weft, "train", "gpt", *map(str, words), "--log-jsonl", str(self.log)]

    def run(self, words, status=DONE):
        done = subprocess.run(self.command(words), capture_output=True, text=True)
        expect(done.returncode == status, f"status {done.returncode}, expected {status}: {' '.join(map(str, words))}", done.stderr)
        return done.stderr

    def steps(self):
        """What was logged, by step."""
        if not self.log.exists():
            return {}
        return {step["iteration"]: step for step in map(json.loads, self.log.read_text().splitlines()) if "lm_loss" in step}

    def losses(self):
        return {at: (step["lm_loss"], step["grad_norm"]) for at, step in self.steps().items()}

    def saved(self):
        return sorted(int(mark.parent.name[5:]) for mark in self.path.glob("saved/step_*/COMPLETE"))

    def to_save(self):
        return ["--save", self.path / "saved", "--save-interval", 10 * STEPS]

    def to_load(self):
        return ["--load", self.path / "saved"]


def same(found, whole, what):
    expect(found, f"{what}: nothing was logged")
    for step, values in found.items():
        expect(values == whole[step], f"{what}: step {step} gives {values}, {whole[step]} in the run that was not stopped")


def stopped(place, words, number):
    """Starts a run and sends it a signal after some steps. On a busy machine it may be done before: it is then none of our business."""
    for _ in range(20):
        shutil.rmtree(place.path / "saved", ignore_errors=True)
        with subprocess.Popen(place.command(words), stderr=subprocess.PIPE, text=True) as run:
            while run.poll() is None and not (place.log.exists() and place.log.read_text().count("\n") > 3):
                time.sleep(0.005)
            run.send_signal(number)
            said = run.communicate()[1]
        expect(run.returncode in (DONE, STOPPED), f"status {run.returncode} after {number.name}", said)
        if run.returncode == STOPPED and max(place.losses()) < STEPS:
            return said
    sys.exit("go_on.py: the run was done before the signal, twenty times")


def stopped_by_a_signal(folder, whole):
    """Saves, says so, ends with 3, and goes on to the last bit, whenever the signal comes."""
    for number in (signal.SIGTERM, signal.SIGINT):
        place = Folder(folder.weft, folder.path / number.name)
        words = MODEL + RUN + RATE + place.to_save() + ["--verify-resume"]
        said = stopped(place, words, number)
        last = max(place.losses())
        expect(place.saved() == [last], f"saved {place.saved()}, the last step is {last}", said)
        expect(f"saved {place.path}/saved/step_{last:08d}" in said, "the save is not told", said)
        expect("the run stops before its end: a signal asked for it" in said, "the reason is not told", said)
        same(place.losses(), whole, number.name)
        said = place.run(words + place.to_load())
        expect(f"verified: step {last + 1} gives its loss" in said and "every bit equal" in said, "the step is not replayed", said)
        expect(sorted(place.losses()) == list(range(last + 1, STEPS + 1)), "not every step was made once", said)
        same(place.losses(), whole, f"after {number.name}")


def one_at_a_time(folder, whole):
    """A second run is refused a directory by the first one's name, and gets it as soon as that one is dead."""
    place, second = Folder(folder.weft, folder.path / "alone"), Folder(folder.weft, folder.path / "second")
    words = MODEL + RUN + RATE + place.to_save() + ["--train-iters", 1000000]
    with subprocess.Popen(place.command(words), stderr=subprocess.PIPE, text=True) as run:
        while run.poll() is None and not (place.log.exists() and place.log.read_text().count("\n") > 3):
            time.sleep(0.005)
        refused(second, words, f"alone/saved: another run saves there: process {run.pid} on .*; wait until it has ended, or save elsewhere")
        run.kill()
        run.communicate()
    said = place.run(MODEL + RUN + RATE + place.to_save())
    expect("lock" not in said, "the dead run's lock is not passed over in silence", said)
    expect(not (place.path / "saved/.weft-lock").exists(), "the lock is left behind")
    same(place.losses(), whole, "after a run that was killed")


def out_of_time(folder, whole):
    place = Folder(folder.weft, folder.path / "time")
    words = MODEL + RUN + RATE + place.to_save()
    said = place.run(words + ["--exit-duration-in-mins", "0.0005"], STOPPED)
    expect("the run stops before its end: --exit-duration-in-mins is over" in said, "the reason is not told", said)
    last = max(place.losses())
    expect(last < STEPS and place.saved() == [last], f"saved {place.saved()} after step {last}", said)
    place.run(words + place.to_load())
    same(place.losses(), whole, "after the time limit")


def refused(folder, words, sentence):
    said = folder.run(words, USAGE)
    expect(re.search(sentence, said), f"'{sentence}' is not said", said)


def flags(folder, whole):
    """What each flag lets differ, and nothing else."""
    load = folder.to_load()
    folder.run(RUN + RATE + load + ["--use-checkpoint-args"])
    same(folder.losses(), whole, "--use-checkpoint-args")
    expect(min(folder.losses()) == CUT + 1, "--use-checkpoint-args starts at another step")
    refused(folder, RUN + RATE + load + ["--use-checkpoint-args", "--num-layers", "2"],
            "is of another model: model.layers is 1 there and 2 here")

    said = folder.run(MODEL + RUN + RATE + load + ["--finetune", "--exit-interval", "2"], STOPPED)
    expect("; the run starts at step 0" in said and min(folder.losses()) == 1, "--finetune goes on", said)
    expect(folder.losses()[1] != whole[1], "--finetune starts from new weights")

    folder.run(MODEL + RUN + RATE + load + ["--no-load-optim", "--override-opt-param-scheduler", "--exit-interval", CUT + 2], STOPPED)
    tuned = folder.losses()
    expect(tuned[CUT + 1] == whole[CUT + 1], "--no-load-optim: the first loss is that of the weights")
    expect(tuned[CUT + 2] != whole[CUT + 2], "--no-load-optim: moments were loaded")
    expect(folder.steps()[CUT + 1]["learning_rate"] < 1e-3, "--no-load-optim: warm-up does not begin again")

    refused(folder, MODEL + RUN + RATE + load + ["--seed", "5"], "its seed is 1234 and --seed 5 is asked for: leave --seed out, or add --no-load-rng")
    folder.run(MODEL + RUN + RATE + load + ["--seed", "5", "--no-load-rng", "--exit-interval", CUT + 1], STOPPED)
    expect(folder.losses()[CUT + 1] != whole[CUT + 1], "--no-load-rng: dropout and data are those of the old seed")

    other = ["--lr", "5e-4", "--lr-warmup-iters", "5"]
    refused(folder, MODEL + RUN + other + load, "its schedules differ: rate.peak is 0.001 there and 5e-04 here")
    folder.run(MODEL + RUN + other + load + ["--override-opt-param-scheduler", "--exit-interval", CUT + 2], STOPPED)
    expect(0 < folder.steps()[CUT + 1]["learning_rate"] <= 5e-4, "--override-opt-param-scheduler: the rate is the checkpoint's")
    folder.run(MODEL + RUN + other + load + ["--use-checkpoint-opt_param-scheduler", "--exit-interval", CUT + 2], STOPPED)
    same(folder.losses(), whole, "--use-checkpoint-opt_param-scheduler")


def nothing_there(folder):
    empty = Folder(folder.weft, folder.path / "empty")
    words = MODEL + RUN + RATE + ["--load", empty.path, "--exit-interval", "1"]
    for more in ([], ["--exit-on-missing-checkpoint"]):
        refused(empty, words + more, "no checkpoint can be loaded: .*: holds no directory of a step; add --allow-fresh-start")
    said = empty.run(words + ["--allow-fresh-start"], STOPPED)
    expect("a fresh start" in said, "a fresh start is not told", said)


def from_hugging_face(folder):
    place = Folder(folder.weft, folder.path / "hub")
    words = "--seq-length 8 --micro-batch-size 2 --train-iters 3 --lr 1e-3 --mock-data --data-order keyed --eval-iters 0 --log-interval 1"
    said = place.run(words.split() + ["--threads", "1", "--load", HUB, "--use-checkpoint-args"] + place.to_save())
    expect(f"weights from {HUB}; the run starts at step 0" in said, "the directory is not told", said)
    expect(sorted(place.losses()) == [1, 2, 3] and place.saved() == [3], f"steps {sorted(place.losses())}, saved {place.saved()}", said)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--weft", required=True)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="weft-go-on-") as name:
        folder = Folder(args.weft, pathlib.Path(name))
        folder.run(MODEL + RUN + RATE)
        whole = folder.losses()
        expect(sorted(whole) == list(range(1, STEPS + 1)), "the run that is not stopped is not whole")
        folder.run(MODEL + RUN + RATE + folder.to_save() + ["--exit-interval", CUT], STOPPED)
        expect(folder.saved() == [CUT], f"--exit-interval {CUT} saved {folder.saved()}")
        stopped_by_a_signal(folder, whole)
        one_at_a_time(folder, whole)
        out_of_time(folder, whole)
        flags(folder, whole)
        nothing_there(folder)
        from_hugging_face(folder)
    print("stopped by signals, a limit and an interval; went on under every flag")


if __name__ == "__main__":
    main()
