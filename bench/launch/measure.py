#!/usr/bin/env python3
"""measure.py --weft PROGRAM [--repeat N]: what the launcher costs and how quickly it acts, each line N times: median (least to most)."""
import argparse
import os
import pathlib
import signal
import statistics
import subprocess
import tempfile
import time

TICKS = os.sysconf("SC_CLK_TCK")


def launch(weft, *words, **more):
    return subprocess.Popen([weft, "launch", *map(str, words)], **more)


def first_lines(weft, folder):
    """From the command to the line of the last of eight workers."""
    began = time.monotonic()
    with launch(weft, "--nproc-per-node", 8, "sh", "-c", "echo here; exec sleep 60", stdout=subprocess.PIPE) as one:
        for _ in range(8):
            one.stdout.readline()
        took = time.monotonic() - began
        one.terminate()
        one.wait()
    return 1e3 * took


def peer_told(weft, folder):
    """From a worker's SIGKILL to SIGTERM at its peer."""
    script = ("trap 'date +%s%N > heard; exit 1' TERM; [ $RANK = 0 ] && { sleep 60 & echo > ready; wait; }; read x < ready; "
              "exec sh -c 'date +%s%N > died; kill -9 $$'")
    os.mkfifo(folder / "ready")
    launch(weft, "--nproc-per-node", 2, "sh", "-c", script, cwd=folder, stderr=subprocess.DEVNULL).wait()
    return (int((folder / "heard").read_text()) - int((folder / "died").read_text())) / 1e6


def started_again(weft, folder):
    """From a worker's SIGKILL to the first line of the next attempt's last worker, of eight."""
    script = ("[ $TORCHELASTIC_RESTART_COUNT = 1 ] && { echo again; exit 0; }; [ $RANK != 3 ] && exec sleep 60; "
              "exec sh -c 'date +%s%N > died; kill -9 $$'")
    with launch(weft, "--nproc-per-node", 8, "--max-restarts", 1, "sh", "-c", script, cwd=folder, stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL) as one:
        for _ in range(8):
            one.stdout.readline()
        now = time.time_ns()
    return (now - int((folder / "died").read_text())) / 1e6


def idle(weft, folder):
    """Processor time of the launcher a second while eight workers sleep, as a share of a core; and its memory in MB."""
    with launch(weft, "--nproc-per-node", 8, "sh", "-c", "echo here; exec sleep 60", stdout=subprocess.PIPE) as one:
        for _ in range(8):
            one.stdout.readline()

        def used():
            fields = pathlib.Path(f"/proc/{one.pid}/stat").read_text().rsplit(")", 1)[1].split()
            return (int(fields[11]) + int(fields[12])) / TICKS
        before = used()
        time.sleep(5)
        share = (used() - before) / 5
        resident = int(pathlib.Path(f"/proc/{one.pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6
        one.terminate()
        one.wait()
    return 100 * share, resident


def teed(weft, folder):
    """MB a second of eight workers' lines, to files and through the console's pipe."""
    line = "x" * 99
    script = f"yes {line} | head -c 20000000"
    began = time.monotonic()
    with launch(weft, "--nproc-per-node", 8, "--tee", 1, "--log-dir", folder, "sh", "-c", script, stdout=subprocess.PIPE) as one:
        lines = sum(chunk.count(b"\n") for chunk in iter(lambda: one.stdout.read(1 << 20), b""))
    took = time.monotonic() - began
    assert lines == 8 * 200_000, lines
    return 160 / took


def orphans(weft, folder):
    """Workers that live on after their launcher's SIGKILL, of 8 x 25."""
    mark = f"0.{os.getpid()}"
    for _ in range(25):
        with launch(weft, "--nproc-per-node", 8, "sh", "-c", f"echo here; exec sleep 60{mark}", stdout=subprocess.PIPE) as one:
            one.stdout.readline()
            one.kill()
            one.communicate()
    time.sleep(0.2)
    return len(subprocess.run(["pgrep", "-f", f"sleep 60{mark}"], capture_output=True, text=True).stdout.split())


def at_once(weft, folder):
    """Failures of 1,000 launches of two workers, 25 at a time."""
    failures = 0
    for _ in range(40):
        all_of_them = [launch(weft, "--standalone", "--nproc-per-node", 2, "true") for _ in range(25)]
        failures += sum(one.wait() != 0 for one in all_of_them)
    return failures


MODEL = """train gpt --num-layers 1 --hidden-size 16 --num-attention-heads 2 --seq-length 16 --micro-batch-size 2 --global-batch-size 4 --lr 1e-3
  --mock-data --data-order keyed --vocab-size 60 --eval-iters 0 --log-interval 1 --threads 1 --tensor-model-parallel-size 2
  --train-iters 100000000 --lr-decay-iters 100""".split()


def training(weft, saving, *more):
    """Four ranks as processes that speak TCP: data parallel 2 by tensor parallel 2."""
    return launch(weft, "--launcher", "weft", "--nproc-per-node", 4, "--max-restarts", 3, *more, *MODEL, *saving, stderr=subprocess.PIPE,
                  text=True)


def until(one, words):
    for line in one.stderr:
        if words in line:
            return time.monotonic()
    raise SystemExit(f"measure.py: never '{words}'")


def ranks_below(process):
    found = []
    for child in pathlib.Path(f"/proc/{process}/task/{process}/children").read_text().split():
        found.append(int(child))
    return found


def rank_killed(weft, folder):
    """From a training rank's SIGKILL to the launcher's word of it, and to the next step that is done."""
    with training(weft, ["--save-interval", 10, "--save", folder]) as one:
        until(one, "iteration       30/")
        began = time.monotonic()
        os.kill(ranks_below(one.pid)[2], signal.SIGKILL)
        told, again = until(one, "restart 1 of 3") - began, until(one, "iteration ") - began
        one.terminate()
        one.communicate()
    return 1e3 * told, 1e3 * again


def rank_stopped(weft, folder):
    """From a training rank's SIGSTOP, under the learned limit, to the report, and to the next step that is done."""
    with training(weft, ["--save-interval", 10, "--save", folder]) as one:
        until(one, "iteration       90/")
        began = time.monotonic()
        os.kill(ranks_below(one.pid)[2], signal.SIGSTOP)
        told, again = until(one, "hangs in step") - began, until(one, "iteration ") - began
        one.terminate()
        one.communicate()
    return told, again


def slow_rank(weft, folder):
    """From the first slow step to the rank's name; its work is more than a quarter longer."""
    with training(weft, [], "--slow-window", 10, "--inject", "slow@step=3000,rank=1,ms=2") as one:
        began = until(one, "iteration     3000/")
        told = until(one, "is slow: ") - began
        one.terminate()
        one.communicate()
    return told


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--weft", required=True)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--only", default="", help="lines that hold this word")
    args = parser.parse_args()

    def told(name, unit, what, repeat=args.repeat):
        if args.only not in name:
            return
        values = []
        for _ in range(repeat):
            with tempfile.TemporaryDirectory(prefix="weft-measure-") as folder:
                values.append(what(args.weft, pathlib.Path(folder)))
        for i, part in enumerate(unit.split("; ")):
            numbers = [value[i] if isinstance(value, tuple) else value for value in values]
            print(f"{name}: {statistics.median(numbers):.1f} ({min(numbers):.1f} to {max(numbers):.1f}) {part}", flush=True)

    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    told("command to the first lines of 8 workers", "ms", first_lines)
    told("a worker's SIGKILL to its peer's SIGTERM", "ms", peer_told)
    told("a worker's SIGKILL to 8 started again", "ms", started_again)
    told("8 workers asleep", "% of a core; MB resident", idle, 2)
    told("8 workers' lines to files and the console", "MB/s", teed)
    told("workers left by 25 killed launchers of 8", "workers", orphans, 1)
    told("failures of 1000 launches, 25 at once", "launches", at_once, 1)
    told("a rank's SIGKILL", "ms to the launcher's word; ms to the next step that is done", rank_killed)
    told("a rank's SIGSTOP", "s to the report; s to the next step that is done", rank_stopped, 2)
    told("a slow rank", "s to its name, windows of 10 s", slow_rank, 2)


if __name__ == "__main__":
    main()
