#!/usr/bin/env python3
"""launch_test.py --weft PROGRAM [CASE...]: the real program under weft launch, as people use it."""
import argparse
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

MODEL = """--num-layers 1 --hidden-size 16 --num-attention-heads 2 --seq-length 16 --micro-batch-size 2 --global-batch-size 4
  --lr 1e-3 --mock-data --data-order keyed --vocab-size 60 --eval-iters 0 --log-interval 1 --threads 1""".split()
# A run that only a signal ends.
ENDLESS = MODEL + ["--train-iters", "100000000", "--lr-decay-iters", "100"]
# What launches this test must not be taken for what launches its ranks.
ENVIRONMENT = {name: value for name, value in os.environ.items() if not re.match("OMPI_|PMI|SLURM_|PET_|RANK$|WORLD_SIZE$", name)}


def run(words, **more):
    return subprocess.run([str(word) for word in words], capture_output=True, text=True, timeout=120, env=ENVIRONMENT, **more)


def expect(holds, what, said):
    if not holds:
        sys.exit(f"launch_test.py: {what}\n{said.returncode}\n{said.stdout}\n{said.stderr}")


def tensors(folder):
    newest = max(folder.glob("step_*"))
    return {path.name: path.read_bytes() for path in newest.glob("rank_*.safetensors")}


def losses(log):
    """Every line of the log: step, loss, norm. A line that a kill tore is none."""
    for line in log.read_text().splitlines():
        try:
            step = json.loads(line)
        except ValueError:
            continue
        yield step["iteration"], (step["lm_loss"], step["grad_norm"])


def steps(folder):
    return sorted(int(mark.parent.name[5:]) for mark in folder.glob("step_*/COMPLETE"))


def children(process):
    """All processes below this one."""
    below = []
    for task in pathlib.Path(f"/proc/{process}/task").glob("*"):
        try:
            below += [int(child) for child in (task / "children").read_text().split()]
        except OSError:
            pass
    return below + [grandchild for child in below for grandchild in children(child)]


def wait_for(holds, what):
    late = time.monotonic() + 60
    while not (found := holds()):
        if time.monotonic() > late:
            sys.exit(f"launch_test.py: {what} never came")
        os.sched_yield()
    return found


def is_rank(process):
    try:
        words = pathlib.Path(f"/proc/{process}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return False
    return b"train" in words[1:2]


def a_megatron_script_runs_with_one_word_changed(weft, folder):
    said = run([weft, "launch", "--nproc_per_node=2", "--nnodes", 1, "scripts/pretrain_gpt.py", *MODEL, "--train-iters", 3,
                "--tensor-model-parallel-size", 2])
    expect(said.returncode == 0 and "iteration        3/       3" in said.stderr, "two thread ranks train", said)


def mistakes_in_the_programs_flags_are_said_once(weft, folder):
    said = run([weft, "launch", "--nproc-per-node", 4, "--max-restarts", 3, "train", "gpt", *MODEL, "--train-itres", 3])
    expect(said.returncode == 2, "a typo is the person's mistake", said)
    expect(len(said.stderr.splitlines()) == 1 and "train-iters" in said.stderr, "and is said in one line", said)
    said = run([weft, "launch", "--nproc-per-node", 2, "train", "gpt", *MODEL, "--ranks", 3, "--train-iters", 3])
    expect(said.stderr == "launch: --ranks 3 of training is not what is launched: 2 on each of 1 nodes; leave --ranks out\n",
           "two counts of ranks", said)


def a_run_that_is_killed_goes_on_with_the_same_bits(weft, folder, more=()):
    words = ["train", "gpt", *MODEL, "--train-iters", 200, "--save-interval", 5, "--save"]
    expect((said := run([weft, "launch", *more, "--nproc-per-node", 2, *words, folder / "whole"])).returncode == 0, "whole", said)
    saved = folder / "cut"
    with subprocess.Popen([str(word) for word in [weft, "launch", *more, "--nproc-per-node", 2, "--max-restarts", 9, "--log-dir",
                                                  folder / "logs", *words, saved]],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=ENVIRONMENT) as launch:
        for kill in range(2):
            wait_for(lambda: steps(saved) and steps(saved)[-1] >= 10 + 60 * kill, "a checkpoint")
            ranks = wait_for(lambda: [child for child in children(launch.pid) if is_rank(child)], "a rank")
            os.kill(ranks[-1], signal.SIGKILL)
        out, err = launch.communicate(timeout=120)
    said = subprocess.CompletedProcess([], launch.returncode, out, err)
    expect(said.returncode == 0, "it ends well", said)
    expect(re.findall(r"signal 9 \(Killed\); restart (\d) of 9|exit code 137; restart (\d) of 9", err), "it was started again", said)
    expect("resumed from" in err, "from a checkpoint", said)
    expect(tensors(saved) == tensors(folder / "whole"), "its weights are those of the unbroken run", said)
    attempts = {path.name for path in (folder / "logs").glob("*/attempt_*")}
    expect({"attempt_0", "attempt_1", "attempt_2"} <= attempts, f"logs of every attempt, not {attempts}", said)


def processes_that_are_killed_go_on_with_the_same_bits(weft, folder):
    if shutil.which("mpirun") is None:
        print("skipped: there is no mpirun")
        return
    a_run_that_is_killed_goes_on_with_the_same_bits(weft, folder, ["--processes"])


def stopped(weft, folder, more, number):
    saved = folder / f"stopped{number}"
    with subprocess.Popen([str(word) for word in [weft, "launch", *more, "--nproc-per-node", 2, "train", "gpt", *ENDLESS, "--save", saved,
                                                  "--save-interval", 100000000]],
                          stderr=subprocess.PIPE, text=True, env=ENVIRONMENT) as launch:
        for line in launch.stderr:
            if "iteration " in line:
                break
        launch.send_signal(number)
        rest = launch.stderr.read()
    said = subprocess.CompletedProcess([], launch.returncode, "", rest)
    expect(launch.returncode == 3, "a run that was stopped returns 3", said)
    expect(len(steps(saved)) == 1, "and has saved", said)
    expect("the job failed" not in rest, "and has not failed", said)


def a_signal_saves_and_ends_with_3(weft, folder):
    stopped(weft, folder, [], signal.SIGTERM)
    stopped(weft, folder, [], signal.SIGINT)


def a_signal_saves_processes_too(weft, folder):
    if shutil.which("mpirun") is None:
        print("skipped: there is no mpirun")
        return
    stopped(weft, folder, ["--processes"], signal.SIGTERM)


def no_process_outlives_a_launcher_that_is_killed(weft, folder):
    for more in ([], ["--processes"]):
        if more and shutil.which("mpirun") is None:
            continue
        with subprocess.Popen([str(word) for word in [weft, "launch", *more, "--nproc-per-node", 2, "train", "gpt", *ENDLESS]],
                              stderr=subprocess.PIPE, text=True, env=ENVIRONMENT) as launch:
            for line in launch.stderr:
                if "iteration " in line:
                    break
            ranks = [child for child in children(launch.pid) if is_rank(child)]
            launch.kill()
            launch.communicate()
        expect(len(ranks) == (2 if more else 1), f"ranks {ranks}", launch)
        wait_for(lambda: not any(is_rank(rank) for rank in ranks), f"the end of {ranks}")


def launches_at_once_do_not_meet(weft, folder):
    words = [weft, "launch", "--standalone", "--nproc-per-node", 2, "sh", "-c", 'echo "$RANK of $WORLD_SIZE"']
    launches = [subprocess.Popen([str(word) for word in words], stdout=subprocess.PIPE, text=True, env=ENVIRONMENT) for _ in range(25)]
    for launch in launches:
        out = launch.communicate(timeout=60)[0]
        said = subprocess.CompletedProcess([], launch.returncode, out, "")
        expect(launch.returncode == 0 and sorted(out.split("\n")) == ["", "0 of 2", "1 of 2"], "each has its own ranks", said)


def watched(weft, folder, more, faults, words=()):
    """A run of 40 steps on four ranks, dp 2 by tp 2, under faults; and what it said."""
    return run([weft, "launch", *more, "--nproc-per-node", 4, "--max-restarts", 3, "--inject", faults, "--hang-limit", 4, "train", "gpt", *MODEL,
                "--train-iters", 40, "--tensor-model-parallel-size", 2, "--save-interval", 5, "--save", folder, *words])


def kinds_of_ranks():
    """Threads, processes of our own agents, processes of mpirun."""
    return [[], ["--launcher", "weft"]] + ([["--processes"]] if shutil.which("mpirun") else [])


def ranks_of_agents_give_the_bits_of_threads(weft, folder):
    words = ["train", "gpt", *MODEL, "--train-iters", 20, "--tensor-model-parallel-size", 2, "--save-interval", 20, "--save"]
    alone = run([weft, "launch", "--nproc-per-node", 4, *words, folder / "threads"])
    expect(alone.returncode == 0, "threads train", alone)
    said = run([weft, "launch", "--launcher", "weft", "--nproc-per-node", 4, *words, folder / "agents"])
    expect(said.returncode == 0, "processes that speak TCP train", said)
    expect(tensors(folder / "agents") == tensors(folder / "threads"), "the same weights", said)


def injected_faults_are_seen_and_survived(weft, folder):
    whole = watched(weft, folder / "whole", [], "kill@step=999,rank=0")
    expect(whole.returncode == 0, "no fault comes", whole)
    for i, more in enumerate(kinds_of_ranks()):
        said = watched(weft, folder / f"killed{i}", more, "kill@step=12,rank=2,signal=11;kill@step=23,rank=1,attempt=1")
        expect(said.returncode == 0 and "restart 2 of 3" in said.stderr, "it goes on after two kills", said)
        if "weft" in more:
            expect(re.search(r"launch: rank 2 on node 0 \(host .*\): signal 11 \(Segmentation fault\); restart 1 of 3", said.stderr),
                   "the first to fail is named", said)
        expect(tensors(folder / f"killed{i}") == tensors(folder / "whole"), "with the same weights", said)
        said = watched(weft, folder / f"hung{i}", more, "hang@step=12,rank=2")
        expect(said.returncode == 0, "it goes on after a hang", said)
        expect(re.search(r"launch: rank 2 on node 0 \(host .*\) hangs in step 12 \(training\): no sign of life for \d+\.\d s, where 4\.0 s are much\n",
                         said.stderr), "which is named", said)
        expect(len(re.findall(r"launch:   rank [013] waits in [a-z_]+ .*, in step 12 \(training\)\n", said.stderr)) == 3, "with the others", said)
        expect(tensors(folder / f"hung{i}") == tensors(folder / "whole"), "with the same weights", said)


def a_flipped_bit_is_found_by_comparing_replicas(weft, folder):
    said = watched(weft, folder / "flipped", ["--launcher", "weft"], "flip@step=12,rank=3", ["--check-replicas", 5])
    expect(said.returncode == 0 and "step 15: data-parallel ranks hold different bits of " in said.stderr, "it is found and undone", said)
    whole = watched(weft, folder / "whole", [], "kill@step=999,rank=0")
    expect(tensors(folder / "flipped") == tensors(folder / "whole"), "the run goes on from before", whole)


def a_slow_rank_is_named(weft, folder):
    with subprocess.Popen([str(word) for word in [weft, "launch", "--launcher", "weft", "--nproc-per-node", 2, "--inject",
                                                  "slow@step=5,rank=1,ms=40", "--slow-window", 2, "train", "gpt", *ENDLESS]],
                          stderr=subprocess.PIPE, text=True, env=ENVIRONMENT) as launch:
        for line in launch.stderr:
            if "is slow: " in line:
                break
        launch.send_signal(signal.SIGTERM)
        rest = launch.stderr.read()
    said = subprocess.CompletedProcess([], launch.returncode, "", line + rest)
    expect(line.startswith("launch: rank 1 is slow: ") and "ms of work a step, where " in line, "the slow one", said)
    expect(launch.returncode == 3, "and it stops in order", said)


CASES = [a_megatron_script_runs_with_one_word_changed, mistakes_in_the_programs_flags_are_said_once,
         a_run_that_is_killed_goes_on_with_the_same_bits, processes_that_are_killed_go_on_with_the_same_bits,
         ranks_of_agents_give_the_bits_of_threads, injected_faults_are_seen_and_survived,
         a_flipped_bit_is_found_by_comparing_replicas, a_slow_rank_is_named, a_signal_saves_and_ends_with_3, a_signal_saves_processes_too, no_process_outlives_a_launcher_that_is_killed,
         launches_at_once_do_not_meet]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--weft", required=True)
    parser.add_argument("cases", nargs="*")
    args = parser.parse_args()
    for case in CASES:
        if args.cases and case.__name__ not in args.cases:
            continue
        with tempfile.TemporaryDirectory(prefix="weft-launch-") as name:
            began = time.monotonic()
            case(args.weft, pathlib.Path(name))
        print(f"{case.__name__}: {time.monotonic() - began:.1f} s")


if __name__ == "__main__":
    main()
