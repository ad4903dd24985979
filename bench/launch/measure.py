#!/usr/bin/env python3
"""measure.py --weft PROGRAM [--repeat N] [--only WORD]: what the launcher costs and how quickly it acts, each line N times: median (least to most)."""
import argparse
import functools
import os
import pathlib
import re
import select
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tests/launch"))
import hosts_test
from launch_test import ENDLESS, ENVIRONMENT, children, is_rank, launches_at_once_do_not_meet, on_machine, steps, wait_for

TICKS = os.sysconf("SC_CLK_TCK")
# How a worker ends, as a shell does it to itself.
ENDS = {"SIGKILL": "kill -9 $$", "SIGSEGV": "kill -SEGV $$", "SIGABRT": "kill -ABRT $$", "exit 7": "exit 7"}
CODES = {"SIGKILL": 137, "SIGSEGV": 139, "SIGABRT": 134, "exit 7": 7}


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


def weft_ranks(weft, folder, more):
    """From the command to the first step that eight ranks of weft have done."""
    began = time.monotonic()
    with launch(weft, *more, "--nproc-per-node", 8, *" ".join(MODEL).replace("batch-size 4", "batch-size 8").split(), stderr=subprocess.PIPE, text=True) as one:
        took = until(one, "iteration        1/") - began
        one.terminate()
        one.communicate()
    return 1e3 * took


def peer_told(weft, folder, end):
    """From a worker's end to SIGTERM at its peer."""
    script = ("trap 'date +%s%N > heard; exit 1' TERM; [ $RANK = 0 ] && { sleep 60 & echo > ready; wait; }; read x < ready; "
              f"exec sh -c 'date +%s%N > died; {end}'")
    os.mkfifo(folder / "ready")
    launch(weft, "--nproc-per-node", 2, "sh", "-c", script, cwd=folder, stderr=subprocess.DEVNULL).wait()
    return (int((folder / "heard").read_text()) - int((folder / "died").read_text())) / 1e6


def started_again(weft, folder, end):
    """From a worker's end to the first line of the next attempt's last worker, of eight; it has lived for longer than what is followed by a pause."""
    script = ("[ $TORCHELASTIC_RESTART_COUNT = 1 ] && { echo again; exit 0; }; [ $RANK != 3 ] && exec sleep 60; sleep 5.5; "
              f"exec sh -c 'date +%s%N > died; {end}'")
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


def resident(weft, folder):
    """MB that the launcher holds while eight workers write a line a second, as they come and after each of five minutes."""
    with launch(weft, "--nproc-per-node", 8, "--log-dir", folder, "sh", "-c", "while :; do echo here; sleep 1; done", stdout=subprocess.PIPE) as one:
        drain = subprocess.Popen(["cat"], stdin=one.stdout, stdout=subprocess.DEVNULL)

        def now():
            return int(pathlib.Path(f"/proc/{one.pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6
        time.sleep(2)
        seen = [now()]
        for _ in range(5):
            time.sleep(60)
            seen.append(now())
        one.terminate()
        one.wait()
        drain.wait()
    return tuple(seen)


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
    """What lives on after a launcher's SIGKILL, of 200 times 8 workers, each a shell that waits for its child."""
    mark = f"60{time.monotonic_ns() % 10**9}.{os.getpid()}"
    for _ in range(200):
        with launch(weft, "--nproc-per-node", 8, "sh", "-c", f"echo here; sleep {mark}; true", stdout=subprocess.PIPE) as one:
            for _ in range(8):
                one.stdout.readline()
            one.kill()
            one.communicate()
    time.sleep(0.5)
    return len(subprocess.run(["pgrep", "-f", f"sleep {mark}"], capture_output=True, text=True).stdout.split())


def at_once(weft, folder):
    """Rounds of 40 that failed: 25 launches at a time, whose first ranks all listen at their MASTER_PORT until the last one does."""
    failures = 0
    for _ in range(40):
        try:
            launches_at_once_do_not_meet(weft, None)
        except SystemExit as why:
            print(why, file=sys.stderr)
            failures += 1
    return failures


def codes(weft, folder):
    """Of four ways to end, those whose code the launcher does not return, or whose rank it does not name though its peer fails too, later and on being told."""
    wrong = 0
    for name, end in ENDS.items():
        script = f"trap 'exit 99' TERM; [ $RANK = 1 ] && exec sh -c '{end}'; sleep 60 & wait"
        said = subprocess.run([weft, "launch", "--nproc-per-node", "2", "sh", "-c", script], capture_output=True, text=True)
        wrong += said.returncode != CODES[name] or "first: rank 1 on node 0" not in said.stderr
    return wrong


def without_progress(weft, folder):
    """Restarts of a job whose every start fails before it has saved, of 100 that it may have; and seconds."""
    faults = ";".join(f"kill@step=2,rank=0,attempt={attempt}" for attempt in range(100))
    began = time.monotonic()
    said = subprocess.run([weft, "launch", "--nproc-per-node", "4", "--max-restarts", "100", "--inject", faults, *MODEL, "--save-interval", "10", "--save", folder],
                          capture_output=True, text=True)
    if "restarts in a row made no progress" not in said.stderr:
        raise SystemExit(f"measure.py: {said.stderr}")
    return len(re.findall("; restart [0-9]+ of 100", said.stderr)), time.monotonic() - began


def told_to_end(weft, folder):
    """From SIGTERM at the launcher to its end, with 3 and a step saved."""
    with training(weft, ["--save-interval", 100000000, "--save", folder]) as one:
        until(one, "iteration       30/")
        began = time.monotonic()
        one.terminate()
        one.communicate()
        took = time.monotonic() - began
    if one.returncode != 3 or len(steps(folder)) != 1:
        raise SystemExit(f"measure.py: {one.returncode} and {steps(folder)} where 3 and one step saved are right")
    return 1e3 * took


def judged(weft, folder, kind):
    """Share of ten results that were made wrong in this way, and are told for what they are, here or, where that takes another machine, there."""
    right, count = 0, 10
    for i in range(count):
        saved = folder / str(i)
        words = [weft, "launch", "--nproc-per-node", "2", *TINY, "--train-iters", "8", "--rerun-mode", "validate_results", "--save", saved, "--save-interval", "100"]
        made = subprocess.run([*map(str, words), "--seed", str(i + 1), "--error-injection-rate", "5", "--error-injection-type", kind], capture_output=True, text=True)
        if kind == "transient_error":
            right += made.returncode == 17 and "a passing fault of a machine" in made.stderr
            continue
        there = subprocess.run([*on_machine("elsewhere"), *map(str, words), "--seed", str(i + 1), "--load", str(saved)], capture_output=True, text=True)
        story = "a lasting fault of that machine" if kind == "persistent_error" else "no machine erred"
        right += made.returncode == 16 and there.returncode == 17 and story in there.stderr
    return 100 * right / count


TINY = """train gpt --num-layers 1 --hidden-size 16 --num-attention-heads 2 --seq-length 16 --micro-batch-size 2 --global-batch-size 4 --lr 1e-3
  --mock-data --data-order keyed --vocab-size 60 --eval-iters 0 --log-interval 1 --threads 1""".split()
# Two ranks, data parallel: some 20 ms of work a step, which a scheduler's millisecond does not blur.
LARGER = """train gpt --num-layers 4 --hidden-size 128 --num-attention-heads 4 --seq-length 128 --micro-batch-size 2 --global-batch-size 4 --lr 1e-3
  --mock-data --data-order keyed --vocab-size 500 --eval-iters 0 --log-interval 1 --threads 1
  --train-iters 100000000 --lr-decay-iters 100""".split()
MODEL = """train gpt --num-layers 1 --hidden-size 16 --num-attention-heads 2 --seq-length 16 --micro-batch-size 2 --global-batch-size 4 --lr 1e-3
  --mock-data --data-order keyed --vocab-size 60 --eval-iters 0 --log-interval 1 --threads 1 --tensor-model-parallel-size 2
  --train-iters 100000000 --lr-decay-iters 100""".split()


def training(weft, saving, *more, by=("--launcher", "weft")):
    """Four ranks as processes, which speak TCP: data parallel 2 by tensor parallel 2."""
    return launch(weft, *by, "--nproc-per-node", 4, "--max-restarts", 3, *more, *MODEL, *saving, stderr=subprocess.PIPE,
                  text=True)


def until(one, words):
    for line in one.stderr:
        if words in line:
            return time.monotonic()
    raise SystemExit(f"measure.py: never '{words}'")


def ranks_below(process):
    return [child for child in children(process) if is_rank(child)]


def rank_killed(weft, folder, number=signal.SIGKILL):
    """From a training rank's death to the launcher's word of it, and to the next step that is done."""
    with training(weft, ["--save-interval", 10, "--save", folder]) as one:
        until(one, "iteration       30/")
        began = time.monotonic()
        os.kill(ranks_below(one.pid)[2], number)
        told, again = until(one, "restart 1 of 3") - began, until(one, "iteration ") - began
        one.terminate()
        one.communicate()
    return 1e3 * told, 1e3 * again


def mpi_rank_killed(weft, folder):
    """The same under mpirun on this machine; and to the end of the last of its peers, and to the report of how it was."""
    with training(weft, ["--save-interval", 10, "--save", folder], by=["--processes"]) as one:
        until(one, "iteration       30/")
        ranks = ranks_below(one.pid)
        ends = {rank: os.pidfd_open(rank) for rank in ranks}
        began = time.monotonic()
        os.kill(ranks[2], signal.SIGKILL)
        told = until(one, "is gone; mpirun ends the others") - began
        for end in ends.values():
            select.select([end], [], [])
            os.close(end)
        stopped = time.monotonic() - began
        report, again = until(one, "restart 1 of 3") - began, until(one, "iteration ") - began
        one.terminate()
        one.communicate()
    return 1e3 * told, 1e3 * stopped, 1e3 * report, 1e3 * again


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


def work_of_a_step(weft):
    """Milliseconds of a step of two ranks that nobody disturbs: the median of 60 after the first 20."""
    with launch(weft, "--launcher", "weft", "--nproc-per-node", 2, *LARGER, stderr=subprocess.PIPE, text=True) as one:
        seen = []
        for line in one.stderr:
            if found := re.search(r"elapsed time per iteration \(ms\): ([0-9.]+)", line):
                seen.append(float(found[1]))
            if len(seen) == 80:
                break
        one.terminate()
        one.communicate()
    return statistics.median(seen[20:])


def slow_rank(weft, folder):
    """From the first slow step to the rank's name; a step's work, as the launcher says it, over what is usual; and a step before. The window is the usual one."""
    step = work_of_a_step(weft)
    # Whoever reads a line of each step takes a processor from the ranks where there are two.
    seldom = ["100" if before == "--log-interval" else word for before, word in zip(["", *LARGER], LARGER)]
    with launch(weft, "--launcher", "weft", "--nproc-per-node", 2, "--inject", f"slow@step=200,rank=1,ms={max(1, round(step / 4))}", *seldom,
                stderr=subprocess.PIPE, text=True) as one:
        began = until(one, "iteration      200/")
        for line in one.stderr:
            if "is slow: " in line:
                break
        told = time.monotonic() - began
        one.terminate()
        one.communicate()
    found = re.search(r"rank (\d+) is slow: ([0-9.]+) ms of work a step, where ([0-9.]+) ms are usual", line)
    if found is None or found[1] != "1":
        raise SystemExit(f"measure.py: {line}")
    return told, float(found[2]) / float(found[3]), step


def cut_off(weft, folder):
    """Two hosts as network namespaces, a rank each by mpirun; the cable is cut and stays so: to the launcher's word, to its end, and to that of the rank behind the cut."""
    hosts_test.lay_cable()
    try:
        words = [*hosts_test.on(hosts_test.ADDRESSES[0]), weft, "launch", *hosts_test.by_mpirun(folder), "train", "gpt", *ENDLESS, "--tensor-model-parallel-size", "2"]
        with subprocess.Popen([str(word) for word in words], stderr=subprocess.PIPE, text=True, env=ENVIRONMENT) as one:
            until(one, "iteration       10/")
            there = wait_for(lambda: hosts_test.ranks_of(hosts_test.ADDRESSES[1]), "a rank on the other host")
            end = os.pidfd_open(there[0])
            subprocess.run(["ip", "-n", hosts_test.space(hosts_test.ADDRESSES[1]), "link", "set", "cable", "down"], check=True)
            began = time.monotonic()
            told = until(one, "its machine is gone or cut off") - began
            one.communicate()
            ended = time.monotonic() - began
            select.select([end], [], [], 120)
            alone = time.monotonic() - began
    finally:
        for address in hosts_test.ADDRESSES:
            subprocess.run(["ip", "netns", "del", hosts_test.space(address)], capture_output=True)
    return told, ended, alone


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
                values.append(what(os.path.abspath(args.weft), pathlib.Path(folder)))
        for i, part in enumerate(unit.split("; ")):
            numbers = [value[i] if isinstance(value, tuple) else value for value in values]
            print(f"{name}: {statistics.median(numbers):.1f} ({min(numbers):.1f} to {max(numbers):.1f}) {part}", flush=True)

    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    told("L3 command to the first lines of 8 workers", "ms", first_lines)
    for name, more in ("threads", []), ("TCP processes", ["--launcher", "weft"]), ("MPI processes", ["--processes"]):
        if "--processes" not in more or shutil.which("mpirun"):
            told(f"L3 command to the first step of 8 weft ranks, {name}", "ms", functools.partial(weft_ranks, more=more))
    for name, end in ENDS.items():
        told(f"F1 a worker's {name} to its peer's SIGTERM", "ms", functools.partial(peer_told, end=end))
        told(f"F1 a worker's {name} to 8 started again", "ms", functools.partial(started_again, end=end))
    for name in ("SIGKILL", "SIGSEGV", "SIGABRT"):
        told(f"F1 a training rank's {name}", "ms to the launcher's word; ms to the next step that is done",
             functools.partial(rank_killed, number=getattr(signal, name)))
    if shutil.which("mpirun"):
        told("F1 a training rank's SIGKILL under mpirun", "ms to the launcher's word; ms to the end of the last rank; ms to the report; ms to the next step that is done",
             mpi_rank_killed)
    told("F2 a rank's SIGSTOP", "s to the report; s to the next step that is done", rank_stopped)
    told("F6 SIGTERM to the end, saved, with 3", "ms", told_to_end)
    told("F7 left by 200 killed launchers of 8 workers with a child each", "processes", orphans)
    if subprocess.run([*on_machine("elsewhere"), "true"], capture_output=True).returncode == 0:
        for kind in ("transient_error", "persistent_error", "correct_result"):
            told(f"F8 {kind} told for what it is", "% of 10", functools.partial(judged, kind=kind))
    told("F9 a job that never gets on", "restarts; s", without_progress)
    told("F10 codes or names that are wrong, of four ways to end", "ways", codes)
    told("F11 a slow rank", "s to its name, windows of 60 s; times the usual work; ms a step", slow_rank)
    told("L2 8 workers asleep", "% of a core; MB resident", idle)
    told("L2 8 workers that write", "MB resident; after 1 min; after 2; after 3; after 4; after 5", resident)
    if hosts_test.missing() is None:
        told("F3 a cable that is cut and stays so, two hosts by mpirun", "s to the launcher's word; s to its end; s to the end of the rank behind the cut", cut_off)
    told("L4 rounds that failed of 40, 25 launches at once", "rounds", at_once)
    told("8 workers' lines to files and the console", "MB/s", teed)


if __name__ == "__main__":
    main()
