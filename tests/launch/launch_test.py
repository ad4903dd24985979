#!/usr/bin/env python3
"""launch_test.py --weft PROGRAM [CASE...]: the real program under weft launch, as people use it."""
import argparse
import itertools
import json
import os
import pathlib
import re
import resource
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

MODEL = """--num-layers 1 --hidden-size 16 --num-attention-heads 2 --seq-length 16 --micro-batch-size 2 --global-batch-size 4
  --lr 1e-3 --mock-data --data-order keyed --vocab-size 60 --eval-iters 0 --log-interval 1 --threads 1""".split()
# A run that only a signal ends.
ENDLESS = MODEL + ["--train-iters", "100000000", "--lr-decay-iters", "100"]
# What launches this test must not be taken for what launches its ranks.
ENVIRONMENT = {name: value for name, value in os.environ.items() if not re.match("OMPI_|MV2_|PMI|PALS_|MPI_LOCAL|SLURM_|PET_|RANK$|WORLD_SIZE$|OMP_NUM_THREADS$", name)}


def run(words, **more):
    return subprocess.run([str(word) for word in words], capture_output=True, text=True, timeout=120, env=ENVIRONMENT, **more)


def expect(holds, what, said):
    if not holds:
        sys.exit(f"launch_test.py: {what}\n{said.returncode}\n{said.stdout}\n{said.stderr}")


def tensors(folder):
    newest = max(folder.glob("step_*"))
    return {path.name: path.read_bytes() for path in newest.glob("rank_*.safetensors")}


def losses(log):
    """Every line of the log: step, and its loss, norm and samples so far. A line that a kill tore is none."""
    for line in log.read_text().splitlines():
        try:
            step = json.loads(line)
        except ValueError:
            continue
        yield step["iteration"], (step["lm_loss"], step["grad_norm"], step["consumed_samples"])


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


def a_rank_that_dies_under_mpirun_is_told_at_once_though_mpirun_hangs(weft, folder):
    """mpirun is stopped, so that it can neither hear of the death nor end the others."""
    if shutil.which("mpirun") is None:
        print("skipped: there is no mpirun")
        return
    with subprocess.Popen([str(word) for word in [weft, "launch", "--processes", "--nproc-per-node", 2, "train", "gpt", *ENDLESS]],
                          stderr=subprocess.PIPE, text=True, env=ENVIRONMENT) as launch:
        for line in launch.stderr:
            if "iteration " in line:
                break
        ranks = [child for child in children(launch.pid) if is_rank(child)]
        mpirun = int(pathlib.Path(f"/proc/{ranks[0]}/stat").read_text().rsplit(")", 1)[1].split()[1])
        os.kill(mpirun, signal.SIGSTOP)
        began = time.monotonic()
        os.kill(ranks[-1], signal.SIGKILL)
        for line in launch.stderr:
            if "is gone" in line:
                break
        told = time.monotonic() - began
        wait_for(lambda: not is_rank(ranks[0]), "the end of the other rank")
        stopped = time.monotonic() - began
        rest = launch.stderr.read()
    said = subprocess.CompletedProcess([], launch.returncode, "", line + rest)
    expect(re.match(r"launch: rank [01] on node 0 \(host .*\) is gone; mpirun ends the others\n", line), "the loss is told", said)
    expect(told < 2 and stopped < 5 + 10, f"soon: after {told} s, and the other is stopped after {stopped} s", said)  # on a busy machine
    expect(re.search(r"first: rank [01] on node 0 \(host .*\) is gone, and mpirun does not say how, ", rest) and launch.returncode == 137, "and ends the job", said)
    print(f"a death under a mpirun that hangs is told after {1e3 * told:.1f} ms, and the other rank stopped after {stopped:.2f} s")


def stopped(weft, folder, more, number, before=()):
    saved = folder / f"stopped{number}"
    with subprocess.Popen([str(word) for word in [*before, weft, "launch", *more, "--nproc-per-node", 2, "train", "gpt", *ENDLESS, "--save", saved,
                                                  "--save-interval", 100000000]],
                          stderr=subprocess.PIPE, text=True, env=ENVIRONMENT) as launch:
        for line in launch.stderr:
            if "iteration " in line:
                break
        if before:
            launch.send_signal(signal.SIGHUP)
            for line in itertools.islice(launch.stderr, 20):
                pass
        launch.send_signal(number)
        rest = launch.stderr.read()
    said = subprocess.CompletedProcess([], launch.returncode, "", f"{more} {number}\n{line}{rest}")
    expect("iteration " in line, "it goes on after a hangup that is ignored", said)
    expect(launch.returncode == 3, "a run that was stopped returns 3", said)
    expect(len(steps(saved)) == 1, "and has saved", said)
    expect("the job failed" not in rest, "and has not failed", said)


def a_signal_saves_and_ends_with_3(weft, folder):
    for i, more in enumerate(kinds_of_ranks()):
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2):
            stopped(weft, folder / str(i), more, number)
        stopped(weft, folder / f"{i}.chosen", [*more, "--signals-to-handle", "SIGUSR1"], signal.SIGUSR1)


def a_hangup_that_nohup_ignores_stops_nothing(weft, folder):
    for more in ([], ["--launcher", "weft"]):
        stopped(weft, folder / f"ignored{len(more)}", more, signal.SIGTERM, ["env", "--ignore-signal=HUP"])


def no_process_outlives_a_launcher_that_is_killed(weft, folder):
    for more in kinds_of_ranks():
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


# Rank 0 listens, says where, and waits until somebody opens the fifo.
LISTENER = """
import os, socket, sys
rank, port = os.environ["RANK"], int(os.environ["MASTER_PORT"])
seat = rank + " of " + os.environ["WORLD_SIZE"]
if rank == "0":
    one = socket.socket()
    one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, int(sys.argv[2]))
    one.bind(("", port))
    one.listen()
    seat += " at " + str(port)
print(seat, flush=True)
if rank == "0":
    open(sys.argv[1]).close()
"""


def a_worker_finds_the_whole_contract(weft, folder):
    names = """RANK LOCAL_RANK WORLD_SIZE LOCAL_WORLD_SIZE GROUP_RANK GROUP_WORLD_SIZE ROLE_RANK ROLE_NAME ROLE_WORLD_SIZE MASTER_ADDR MASTER_PORT
      TORCHELASTIC_RESTART_COUNT TORCHELASTIC_MAX_RESTARTS TORCHELASTIC_RUN_ID TORCHELASTIC_USE_AGENT_STORE TORCH_NCCL_ASYNC_ERROR_HANDLING OMP_NUM_THREADS""".split()
    said = run([weft, "launch", "--nproc-per-node", 2, "--master-port", 4711, "--rdzv-id", "job7", "--role", "trainer", "--max-restarts", 3, "sh", "-c",
                'echo "' + " ".join(f"${name}" for name in names) + '" $(dirname $TORCHELASTIC_ERROR_FILE | xargs basename)'])
    expect(said.returncode == 0 and sorted(said.stdout.splitlines()) ==
           [f"{i} {i} 2 2 0 1 {i} trainer 2 127.0.0.1 4711 0 3 job7 False 1 1 {i}" for i in (0, 1)], "torchrun's variables", said)
    said = run([weft, "launch", "--nproc-per-node", "auto", "sh", "-c", "echo $RANK of $WORLD_SIZE"])
    count = len(os.sched_getaffinity(0))
    expect(sorted(said.stdout.splitlines()) == sorted(f"{i} of {count}" for i in range(count)), "auto: one a processor", said)
    hosts = folder / "hosts"
    hosts.write_text("localhost slots=2\nnowhere.invalid slots=2\n")
    if shutil.which("mpirun") is not None:
        said = run([weft, "launch", "--hostfile", hosts, "--num_nodes", 1, "--num_gpus", 1, "sh", "-c", "echo $RANK of $WORLD_SIZE at $MASTER_ADDR"])
        expect(said.returncode == 0 and said.stdout == "0 of 1 at localhost\n", "the first host's first slot", said)


def streams_go_where_they_are_sent(weft, folder):
    """Rank 0's stdout to a file, rank 1's both, rank 2's stderr to both; of what is left, ranks 0 and 2 reach the console."""
    said = run([weft, "launch", "--nproc-per-node", 3, "--log-dir", folder, "--redirects", "0:1,1:3", "--tee", "2:2", "--local-ranks-filter", "0,2", "sh", "-c",
                "echo out $RANK; echo err $RANK >&2"])
    kept = {f"{path.parent.name}/{path.name}": path.read_text() for path in folder.glob("*/attempt_0/*/std*.log")}
    expect(kept == {"0/stdout.log": "out 0\n", "1/stdout.log": "out 1\n", "1/stderr.log": "err 1\n", "2/stderr.log": "err 2\n"}, f"files {kept}", said)
    expect(said.stdout == "out 2\n" and sorted(said.stderr.splitlines()) == ["[default2]:err 2", "err 0"], "and the console", said)


def a_launcher_without_standard_streams_writes_into_nobodys_file(weft, folder):
    """What is opened first would get their numbers, and the launcher's lines."""
    said = run(["sh", "-c", 'exec "$@" <&- >&- 2>&-', "sh", weft, "launch", "--log-dir", folder, "--redirects", 3, "sh", "-c", "echo out; echo err >&2; exit 5"])
    kept = {path.name: path.read_text() for path in folder.glob("*/attempt_0/0/std*.log")}
    expect(said.returncode == 5 and kept == {"stdout.log": "out\n", "stderr.log": "err\n"}, f"only the worker's own: {kept}", said)


def a_node_that_leaves_an_elastic_job_ends_and_the_others_go_on(weft, folder):
    port = free_ports(1)[0]

    def agent(rank):
        words = [weft, "launch", "--nnodes", "1:2", "--node-rank", rank, "--master-port", port, "--rdzv-conf", "last_call_timeout=60", "sh", "-c",
                 f"trap 'exit 0' TERM; echo $WORLD_SIZE; while ! [ -e {folder}/end ]; do sleep 0.1; done"]
        return subprocess.Popen([str(word) for word in words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=ENVIRONMENT)

    first, second = agent(0), agent(1)
    for one in (first, second):
        expect(one.stdout.readline() == "2\n", "both work", one)
    second.terminate()
    err = second.communicate(timeout=30)[1]  # it has a grace of 25 s, and needs none of it
    expect(second.returncode == 143, "who was told to go has gone", subprocess.CompletedProcess([], second.returncode, "", err))
    expect(first.stdout.readline() == "1\n", "the other goes on alone", first)
    (folder / "end").touch()
    out, err = first.communicate(timeout=60)
    expect(first.returncode == 0, "to the end", subprocess.CompletedProcess([], first.returncode, out, err))


def few_descriptors_are_enough_to_train(weft, folder):
    for i, more in enumerate(kinds_of_ranks()):
        said = run([weft, "launch", *more, "--nproc-per-node", 2, "train", "gpt", *MODEL, "--train-iters", 20, "--save-interval", 5, "--save", folder / str(i)],
                   preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64)))
        expect(said.returncode == 0 and steps(folder / str(i))[-1] == 20, f"{more} under 64 descriptors", said)


# CLOCK_REALTIME as somebody sets it who sets it often: an hour ahead, an hour back, every 50 ms.
JUMPS = """
#include <dlfcn.h>
#include <sys/time.h>
#include <time.h>
static int (*real)(clockid_t, struct timespec *);
int clock_gettime(clockid_t clock, struct timespec *now) {
  if (!real) real = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
  int wrong = real(clock, now);
  struct timespec steady;
  if (clock != CLOCK_REALTIME && clock != CLOCK_REALTIME_COARSE) return wrong;
  real(CLOCK_MONOTONIC, &steady);
  now->tv_sec += (steady.tv_nsec / 50000000) % 2 ? 3600 : -3600;
  return wrong;
}
int gettimeofday(struct timeval *now, void *zone) {
  struct timespec at;
  int wrong = clock_gettime(CLOCK_REALTIME, &at);
  now->tv_sec = at.tv_sec;
  now->tv_usec = at.tv_nsec / 1000;
  return wrong;
}
time_t time(time_t *to) {
  struct timespec at;
  clock_gettime(CLOCK_REALTIME, &at);
  if (to) *to = at.tv_sec;
  return at.tv_sec;
}
"""


def a_clock_that_jumps_is_no_fault(weft, folder):
    if shutil.which("cc") is None:
        print("skipped: there is no cc")
        return
    (folder / "jumps.c").write_text(JUMPS)
    subprocess.run(["cc", "-D_GNU_SOURCE", "-shared", "-fPIC", "-O1", "-o", folder / "jumps.so", folder / "jumps.c", "-ldl"], check=True)
    jumping = ENVIRONMENT | {"LD_PRELOAD": str(folder / "jumps.so")}
    dates, end = [0], time.monotonic() + 20  # a jump lasts 50 ms, in which a fast machine asks for the date forty times
    while time.monotonic() < end and not (max(dates) > 3000 and min(dates) < -3000):
        dates.append(int(subprocess.run(["date", "+%s"], capture_output=True, text=True, env=jumping).stdout) - time.time())
    expect(max(dates) > 3000 and min(dates) < -3000, "the clock jumps", subprocess.CompletedProcess([], 0, str(dates), ""))
    words = ["train", "gpt", *MODEL, "--train-iters", 300, "--save-interval", 50, "--save"]
    for i, more in enumerate(kinds_of_ranks()):
        said = subprocess.run([str(word) for word in [weft, "launch", *more, "--nproc-per-node", 2, "--hang-limit", 20, *words, folder / str(i)]],
                              capture_output=True, text=True, timeout=120, env=jumping)
        expect(said.returncode == 0 and steps(folder / str(i))[-1] == 300, f"{more} trains to the end without a restart", said)
        expect("hangs" not in said.stderr and "is slow" not in said.stderr, "and nobody is blamed", said)


def what_would_be_passed_over_is_refused(weft, folder):
    hosts = folder / "hosts"
    hosts.write_text("a slots=2\nb slots=1\n")
    there = ["--hostfile", hosts]
    for words, sentence in {
            ("--num_gpus", 4, *there, "x"): f"launch: --num-gpus 4, and host a of {hosts} has 2 slots",
            ("--nproc-per-node", 2, *there, "x"): f"launch: --nproc-per-node 2, and host b of {hosts} has 1 slots",
            ("--num_nodes", 3, *there, "x"): f"launch: --num-nodes 3, and {hosts} names 2",
            (*there, "--nnodes", 2, "x"): "launch: --nnodes and --hostfile contradict each other; leave one out",
            (*there, "--launcher", "slurm", "x"): f"launch: srun starts as many tasks on every node, and {hosts} gives a 2 and b 1; take --launcher openmpi",
            ("--launcher", "openmpi", "--redirects", "0:3", "x"):
                "launch: --redirects of single ranks: mpirun treats all ranks' lines alike; give one number for all, or take --launcher weft",
            ("--launcher", "slurm", "--tee", "1:1", "x"):
                "launch: --tee of single ranks: srun treats all ranks' lines alike; give one number for all, or take --launcher weft",
            ("--launcher", "slurm", "--local-ranks-filter", "0", "x"):
                "launch: --local-ranks-filter of single ranks: srun treats all ranks' lines alike; give one number for all, or take --launcher weft",
            ("--local-ranks-filter", "1", "--nproc-per-node", 2, "train", "gpt", *MODEL):
                "launch: --local-ranks-filter of single ranks: they are threads of one process, which has one stdout and one stderr; take --launcher weft",
            ("--redirects", "1:3", "--nproc-per-node", 2, "train", "gpt", *MODEL):
                "launch: --redirects of single ranks: they are threads of one process, which has one stdout and one stderr; take --launcher weft",
            ("--tee", "0:1,2:3", "--nproc-per-node", 2, "x"): "launch: --tee: there is no local rank 2 among the 2 of a node",
            ("--local-ranks-filter", "0,4", "--launcher", "weft", "--nproc-per-node", 4, "train", "gpt", *MODEL):
                "launch: --local-ranks-filter: there is no local rank 4 among the 4 of a node",
            ("--inject", "kill@step=1,rank=0", "x"): "launch: --inject is for weft's own training, and x is another program",
            ("--hang-limit", 9, "x"): "launch: --hang-limit is for weft's own training, and x is another program",
            ("--slow-window", 9, "x"): "launch: --slow-window is for weft's own training, and x is another program",
            ("--nproc-per-node", 4, "--inject", "kill@step=1,rank=99", "train", "gpt", *MODEL): "launch: --inject: there is no rank 99 among the 4 of this job",
            ("--inject", "kill@step=1,rank=2", "train", "gpt", *MODEL, "--tensor-model-parallel-size", 2): "launch: --inject: there is no rank 2 among the 2 of this job",
            ("--take-a-seat", "x"): "launch: --take-a-seat is weft launch's own word to the processes that mpirun and srun start for it",
    }.items():
        said = run([weft, "launch", *words])
        expect(said.returncode == 2 and said.stderr == sentence + "\n", f"{words} is refused in a sentence", said)
    said = subprocess.run([weft, "train", "gpt", *MODEL, "--train-iters", "1"], capture_output=True, text=True, env=ENVIRONMENT | {"RANK": "3"})
    expect(said.returncode == 2 and said.stderr == "environment: RANK is 3 and WORLD_SIZE is not set; set both, as torchrun does, or unset RANK\n",
           "a rank of nobody knows how many", said)


def logs_go_nowhere_or_under_any_name(weft, folder):
    said = run([weft, "launch", "--log-dir", "/dev/null", "--redirects", 1, "sh", "-c", "echo out; echo err >&2; exit 4"])
    expect(said.returncode == 4 and said.stdout == "" and "\n    err\n" in said.stderr and "its logs" not in said.stderr, "torchrun's word for no logs", said)
    said = run([weft, "launch", "--log-dir", "/dev/null", "sh", "-c", "echo out"])
    expect(said.returncode == 0 and said.stdout == "out\n", "and what is not redirected is seen", said)
    said = run([weft, "launch", "--log-dir", folder, "--rdzv-id", "team/job", "--redirects", 3, "sh", "-c", "echo $TORCHELASTIC_RUN_ID"])
    expect(said.returncode == 0 and [path.read_text() for path in folder.glob("team_job_*/attempt_0/0/stdout.log")] == ["team/job\n"], "a name with a slash", said)


def a_program_under_mpirun_finds_torchruns_contract(weft, folder):
    if shutil.which("mpirun") is None:
        print("skipped: there is no mpirun")
        return
    told = "echo $RANK $LOCAL_RANK $WORLD_SIZE $LOCAL_WORLD_SIZE $GROUP_RANK $GROUP_WORLD_SIZE $MASTER_ADDR $TORCHELASTIC_RUN_ID ${local_rank} port=$MASTER_PORT"
    said = run([weft, "launch", "--launcher", "openmpi", "--nproc-per-node", 2, "--rdzv-id", "job7", "sh", "-c", told])
    lines = sorted(re.sub(r"port=[1-9]\d+$", "port", line) for line in said.stdout.splitlines())
    expect(said.returncode == 0 and lines == ["0 0 2 2 0 1 127.0.0.1 job7 0 port", "1 1 2 2 0 1 127.0.0.1 job7 1 port"], "each its own", said)
    said = run([weft, "launch", "--launcher", "openmpi", "--nproc-per-node", 2, "--master-port", 4711, "sh", "-c", "echo $MASTER_PORT; [ $RANK = 0 ] || exit 9"])
    expect(said.returncode == 9 and set(said.stdout.split()) == {"4711"} and "first: rank 1 on node 0" in said.stderr, "and its own end", said)
    said = run([weft, "launch", "--launcher", "openmpi", "--nproc-per-node", 1, "./no such program"])
    expect(said.returncode == 127 and "launch: cannot run ./no such program: No such file or directory" in said.stderr, "what cannot be run", said)


def who_failed_under_mpirun_is_known_at_a_terminal_too(weft, folder):
    """And where mpirun itself fails, it is named, with what it says."""
    if shutil.which("mpirun") is None:
        print("skipped: there is no mpirun")
        return
    ours, theirs = os.openpty()
    words = [weft, "launch", "--launcher", "openmpi", "--nproc-per-node", "2", "sh", "-c", "[ $RANK = 0 ] || exit 9; sleep 60"]
    with subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=theirs, env=ENVIRONMENT) as launch:
        os.close(theirs)
        said = b""
        try:
            while more := os.read(ours, 4096):
                said += more
        except OSError:  # the other end is closed
            pass
    os.close(ours)
    said = subprocess.CompletedProcess([], launch.returncode, "", said.decode())
    expect(said.returncode == 9 and re.search(r"first: rank 1 on node 0 \(host .*\): exit code 9, .* after the start; local rank 1\r\n", said.stderr), "rank 1", said)
    said = run([weft, "launch", "--launcher", "openmpi", "--launcher-args", "--no-such-word", "sh", "-c", "exit 0"])
    expect(said.returncode != 0 and re.search(r"first: mpirun on node 0 \(host .*\): exit code \d+, .* after the start; process \d+\n", said.stderr), "mpirun", said)
    expect("no-such-word" in said.stderr.split("its last words:")[1], "and its words", said)


def lives(process):
    try:
        return "Z" not in pathlib.Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[:1]
    except OSError:
        return False


def what_workers_started_does_not_outlive_a_launcher_that_is_killed(weft, folder):
    """Each worker is a shell that waits for its child. The launcher's whole process group is killed, as a batch system does."""
    with subprocess.Popen([weft, "launch", "--nproc-per-node", "2", "sh", "-c", "echo here; sleep 600; true"], stdout=subprocess.PIPE, text=True,
                          env=ENVIRONMENT, start_new_session=True) as launch:
        for _ in range(2):
            launch.stdout.readline()
        wait_for(lambda: len(children(launch.pid)) >= 5, "two shells with a child each, and the keeper")
        below = children(launch.pid)
        os.killpg(launch.pid, signal.SIGKILL)
        launch.communicate()
    wait_for(lambda: not any(lives(one) for one in below), f"the end of {below}")


def launches_at_once_do_not_meet(weft, folder):
    """Each one's first rank listens at its MASTER_PORT, and keeps it until all have theirs. Half of them bind it as a server that was just there may, half plainly."""
    held = tempfile.mkdtemp(prefix="weft-ports-")
    os.mkfifo(f"{held}/go")
    launches = []
    for i in range(25):
        words = [weft, "launch", "--standalone", "--nproc-per-node", 2, "python3", "-I", "-S", "-c", LISTENER, f"{held}/go", i % 2]
        launches.append(subprocess.Popen([str(word) for word in words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=ENVIRONMENT))
    ports = []
    for launch in launches:
        lines = sorted(launch.stdout.readline().strip() for _ in range(2))
        said = subprocess.CompletedProcess([], launch.poll(), "\n".join(lines), "")
        expect(re.fullmatch(r"0 of 2 at \d+", lines[0]) and lines[1] == "1 of 2", "each has its own ranks", said)
        ports.append(lines[0].split()[-1])
    with open(f"{held}/go", "w"):
        for launch in launches:
            out = launch.communicate(timeout=60)[0]
            expect(launch.returncode == 0, "and ends well", subprocess.CompletedProcess([], launch.returncode, out, ""))
    shutil.rmtree(held)
    expect(len(set(ports)) == len(launches), f"{len(launches)} ports of their own", subprocess.CompletedProcess([], 0, " ".join(ports), ""))


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


def an_outer_launchers_names_are_not_its_workers(weft, folder):
    """As where an agent a node is a task of srun's, or a process of mpirun's."""
    outer = {f"{name}_COMM_WORLD_{what}": value for name in ("OMPI", "MV2") for what, value in (("RANK", "1"), ("SIZE", "2"), ("LOCAL_RANK", "0"))}
    outer |= {"PMI_RANK": "1", "PMI_SIZE": "2", "PALS_RANKID": "1", "SLURM_PROCID": "1", "SLURM_STEP_NUM_TASKS": "2", "SLURM_LOCALID": "0"}
    for more in ([], ["--launcher", "weft"]):
        for only in (outer, {name: value for name, value in outer.items() if "SLURM" in name}):
            said = subprocess.run([str(word) for word in [weft, "launch", *more, "--nproc-per-node", 2, "train", "gpt", *MODEL, "--train-iters", 3]],
                                  capture_output=True, text=True, timeout=120, env=ENVIRONMENT | only)
            expect(said.returncode == 0 and "iteration        3/       3" in said.stderr, f"ranks of {more} train under {sorted(only)}", said)


def injected_faults_are_seen_and_survived(weft, folder):
    whole = watched(weft, folder / "whole", [], "kill@step=999,rank=0")
    expect(whole.returncode == 0, "no fault comes", whole)
    for i, more in enumerate(kinds_of_ranks()):
        said = watched(weft, folder / f"killed{i}", more, "kill@step=12,rank=2,signal=11;kill@step=23,rank=1,attempt=1")
        expect(said.returncode == 0 and "restart 2 of 3" in said.stderr, "it goes on after two kills", said)
        who = "rank 2" if more else "the process of ranks 0 to 3"
        expect(re.search(who + r" on node 0 \(host .*\): signal 11 \(Segmentation fault\); restart 1 of 3", said.stderr), "the first to fail is named", said)
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


def on_machine(name):
    return ["unshare", "-u", "sh", "-c", f'hostname {name} && exec "$@"', "on"]


def a_refused_result_ends_with_16_or_17(weft, folder):
    """Megatron's codes: 16, go on elsewhere to know more; 17, it is known. The launcher returns them and tries nothing again."""
    def words(kind, *more, ranks=()):
        return [weft, "launch", *ranks, "--nproc-per-node", 2, "--max-restarts", 3, "train", "gpt", *MODEL, "--train-iters", 8, "--rerun-mode", "validate_results",
                "--save", folder / kind, "--save-interval", 100, *more]

    def injected(kind):
        return run(words(kind, "--error-injection-rate", 5, "--error-injection-type", kind))

    for i, ranks in enumerate(kinds_of_ranks()[1:]):
        for kind, code in ("transient_error", 17), ("persistent_error", 16):
            said = run(words(f"{kind}{i}", "--error-injection-rate", 5, "--error-injection-type", kind, ranks=ranks))
            expect(said.returncode == code and f"exit code {code} is not tried again" in said.stderr, f"{code} of {ranks}", said)
            expect(steps(folder / f"{kind}{i}") == [4], "the step before it is saved", said)
            report = said.stderr[said.stderr.index("launch: the job failed"):]
            told = "a passing fault of a machine" if code == 17 else "injected by --error-injection-rate"
            told_by = 2 if "--processes" in ranks else 1  # mpirun's ranks speak through one stream
            # Open MPI at times loses its own word for who failed, where both ranks give up at once.
            expect(re.search(r"first: (rank \d|mpirun) ", report) and 1 <= report.count(told) <= told_by and "{" not in report,
                   "the report tells once what happened, in the words of the command line", said)

    said = injected("transient_error")
    expect(said.returncode == 17 and "a passing fault of a machine" in said.stderr and "exit code 17 is not tried again" in said.stderr, "a passing fault", said)
    expect(steps(folder / "transient_error") == [4], "the step before it is saved", said)
    said = run(words("transient_error", "--load", folder / "transient_error"))
    expect(said.returncode == 0, "and a start after it goes on", said)
    for kind in ("persistent_error", "correct_result"):
        said = injected(kind)
        expect(said.returncode == 16 and "exit code 16 is not tried again" in said.stderr, "what is there again", said)
        again = run(words(kind, "--load", folder / kind))
        expect(again.returncode == 16 and "is the same there again" in again.stderr, "and once more on this machine", again)
    if subprocess.run([*on_machine("elsewhere"), "true"], capture_output=True).returncode != 0:
        print("skipped: this system lets no process have another host name")
        return
    said = run([*on_machine("elsewhere"), *words("persistent_error", "--load", folder / "persistent_error")])
    expect(said.returncode == 17 and "a lasting fault of that machine" in said.stderr, "another machine computes otherwise", said)
    said = run([*on_machine("elsewhere"), *words("persistent_error", "--load", folder / "persistent_error")])
    expect(said.returncode == 0 and steps(folder / "persistent_error") == [4, 8], "and then goes on", said)
    said = run([*on_machine("elsewhere"), *words("correct_result", "--load", folder / "correct_result")])
    expect(said.returncode == 17 and "no machine erred" in said.stderr, "another machine computes the same", said)


def a_job_file_is_tried_here_made_small(weft, folder):
    words = ["pretrain_gpt.py", "--num-layers=24", "--hidden-size=2048", "--num-attention-heads=16", "--seq-length=2048", "--micro-batch-size=16",
             "--global-batch-size=512", "--train-tokens=26000000000", "--lr=2.0e-4", "--pipeline-model-parallel-size=2", "--data-path=nowhere"]
    (folder / "job.yaml").write_text("apiVersion: batch.tensorstack.dev/v1beta1\nkind: DeepSpeedJob\nmetadata: {name: gpt}\nspec:\n  config: {slotsPerWorker: 2, run: {python: "
                                     + json.dumps(words) + "}}\n  worker: {replicas: 1, template: {spec: {containers: [{name: worker, image: i}]}}}\n")
    said = run([weft, "job", "run", "--small", folder / "job.yaml"])
    expect(said.returncode == 0 and "weft launch --nproc-per-node 2 pretrain_gpt.py --lr=2.0e-4" in said.stderr and "iteration        3/       3" in said.stderr,
           "two ranks, a stage each, train three steps", said)


def free_ports(count):
    sockets = [socket.socket() for _ in range(count)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


def listens(port):
    try:
        socket.create_connection(("127.0.0.1", port), 1).close()
    except OSError:
        return False
    return True


def the_first_node_may_be_lost_where_agents_may_meet_at_three_places(weft, folder):
    """Two nodes and a spare, each at one of three places. The one that coordinates is killed; the others choose another and end with the same bits."""
    words = ["train", "gpt", *MODEL, "--train-iters", 400, "--save-interval", 5, "--save"]
    expect((said := run([weft, "launch", "--nproc-per-node", 2, *words, folder / "whole"])).returncode == 0, "whole", said)
    ports = free_ports(3)
    places = ",".join(f"127.0.0.1:{port}" for port in ports)

    def agent(*more):
        return subprocess.Popen([str(word) for word in [
            weft, "launch", "--nnodes", 2, "--nproc-per-node", 1, "--rdzv-endpoint", places, "--local-addr", "127.0.0.1", "--max-restarts", 3,
            "--rdzv-conf", "keep_alive_interval=0.5,keep_alive_max_attempt=4,join_timeout=60", *more, *words, folder / "cut"]],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=ENVIRONMENT)

    agents = []
    for port in ports:
        agents.append(agent())
        wait_for(lambda: listens(port), "an agent at its place")  # they are taken in the order in which agents come
    wait_for(lambda: len(steps(folder / "cut")) >= 3, "a checkpoint")
    agents[0].kill()
    began = time.monotonic()
    then = steps(folder / "cut")[-1]
    wait_for(lambda: steps(folder / "cut")[-1] > then + 5, "a later checkpoint")
    went_on = time.monotonic() - began
    ends = [one.communicate(timeout=100) for one in agents]
    said = subprocess.CompletedProcess([], agents[1].returncode, "", "\n----\n".join(err for _, err in ends))
    expect(agents[1].returncode == 0 and agents[2].returncode == 0, "the other two end well", said)
    expect("the coordinator is lost" in said.stderr and "waits for another" in said.stderr, "the loss is said", said)
    expect(went_on < 90, f"it goes on soon, and not after {went_on} s", said)
    expect(tensors(folder / "cut") == tensors(folder / "whole"), "the weights are those of the unbroken run", said)
    print(f"goes on {went_on:.1f} s after its coordinator's death")


def one_node_of_three_places_does_not_go_on_alone(weft, folder):
    """Most are gone, and may go on elsewhere: the one that is left stops, though --nnodes would let it work."""
    places = ",".join(f"127.0.0.1:{port}" for port in free_ports(3))
    words = [weft, "launch", "--nnodes", "1:3", "--rdzv-endpoint", places, "--local-addr", "127.0.0.1", "--rdzv-conf",
             "keep_alive_interval=0.3,keep_alive_max_attempt=4,join_timeout=4,last_call_timeout=1", "sh", "-c", "echo up; exec sleep 60"]
    agents = []
    for _ in range(3):
        agents.append(subprocess.Popen([str(word) for word in words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=ENVIRONMENT))
    for one in agents:
        one.stdout.readline()
    for one in agents[1:]:
        one.kill()
    err = agents[0].communicate(timeout=60)[1]
    for one in agents[1:]:
        one.communicate()
    said = subprocess.CompletedProcess([], agents[0].returncode, "", err)
    expect(agents[0].returncode == 1 and "most of the places of --rdzv-endpoint" in err, "it ends, and says why", said)


def threads_wait_briefly_unless_the_environment_says_how(weft, folder):
    names = ("GOMP_SPINCOUNT", "OMP_WAIT_POLICY", "OMP_NUM_THREADS")
    plain = {name: value for name, value in ENVIRONMENT.items() if name not in names}
    for said, found in [({}, {"GOMP_SPINCOUNT": "1000"}), ({"GOMP_SPINCOUNT": "7"},) * 2, ({"OMP_WAIT_POLICY": "active"},) * 2, ({"OMP_NUM_THREADS": "1"},) * 2]:
        with subprocess.Popen([weft, "train", "gpt", *ENDLESS], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env={**plain, **said}) as train:
            for line in train.stdout:
                if "iteration " in line:
                    break
            entries = pathlib.Path(f"/proc/{train.pid}/environ").read_bytes().decode().split("\0")
            train.kill()
        now = {name: value for name, _, value in (entry.partition("=") for entry in entries) if name in names}
        expect(now == found, f"{said} is listened to", subprocess.CompletedProcess([], train.returncode, line, str(now)))
    said = run([weft, "launch", "--nproc-per-node", 1, "sh", "-c", "echo ${GOMP_SPINCOUNT-nothing}"])
    expect(said.stdout == "nothing\n", "other programs' threads wait as they like", said)


CASES = [a_megatron_script_runs_with_one_word_changed, mistakes_in_the_programs_flags_are_said_once,
         a_run_that_is_killed_goes_on_with_the_same_bits, processes_that_are_killed_go_on_with_the_same_bits,
         a_rank_that_dies_under_mpirun_is_told_at_once_though_mpirun_hangs, ranks_of_agents_give_the_bits_of_threads, an_outer_launchers_names_are_not_its_workers, injected_faults_are_seen_and_survived,
         a_flipped_bit_is_found_by_comparing_replicas, a_slow_rank_is_named, a_signal_saves_and_ends_with_3, a_hangup_that_nohup_ignores_stops_nothing, no_process_outlives_a_launcher_that_is_killed,
         what_workers_started_does_not_outlive_a_launcher_that_is_killed,
         a_worker_finds_the_whole_contract, streams_go_where_they_are_sent, a_launcher_without_standard_streams_writes_into_nobodys_file,
         a_node_that_leaves_an_elastic_job_ends_and_the_others_go_on, few_descriptors_are_enough_to_train, a_clock_that_jumps_is_no_fault,
         what_would_be_passed_over_is_refused, logs_go_nowhere_or_under_any_name, a_program_under_mpirun_finds_torchruns_contract,
         who_failed_under_mpirun_is_known_at_a_terminal_too,
         launches_at_once_do_not_meet, a_refused_result_ends_with_16_or_17, a_job_file_is_tried_here_made_small,
         the_first_node_may_be_lost_where_agents_may_meet_at_three_places, one_node_of_three_places_does_not_go_on_alone, threads_wait_briefly_unless_the_environment_says_how]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--weft", required=True)
    parser.add_argument("cases", nargs="*")
    args = parser.parse_args()
    for number in signal.SIGINT, signal.SIGQUIT:  # which a shell's background job ignores, and all that it starts
        signal.signal(number, signal.SIG_DFL)
    for case in CASES:
        if args.cases and case.__name__ not in args.cases:
            continue
        with tempfile.TemporaryDirectory(prefix="weft-launch-") as name, tempfile.TemporaryDirectory(prefix="weft-tmp-") as scratch:
            began = time.monotonic()
            ENVIRONMENT["TMPDIR"] = scratch  # a launcher that is killed leaves its folder there
            case(args.weft, pathlib.Path(name))
        print(f"{case.__name__}: {time.monotonic() - began:.1f} s")


if __name__ == "__main__":
    main()
