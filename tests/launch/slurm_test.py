#!/usr/bin/env python3
"""slurm_test.py --weft PROGRAM --script deploy/slurm/train.sbatch: starts a real slurmctld and two slurmd on this machine, submits the
script, and compares what two tasks on two node names trained with what two threads train. Needs root, slurm-wlm and mpirun; says what is missing."""
import argparse
import os
import pathlib
import re
import shlex
import shutil
import socket
import subprocess
import sys
import tempfile
import time

MODEL = """--num-layers 1 --hidden-size 16 --num-attention-heads 2 --seq-length 16 --micro-batch-size 2 --global-batch-size 4
  --lr 1e-3 --mock-data --data-order keyed --vocab-size 60 --eval-iters 0 --log-interval 1 --threads 1 --train-iters 20 --save-interval 20""".split()
# Between asking tasks to end and killing them Slurm waits half a minute where KillWait says nothing else.
CONF = """ClusterName=weft
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={ports[0]}
AuthType=auth/none
CredType=cred/none
SlurmUser=root
SlurmdUser=root
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool.%n
SlurmctldPidFile={folder}/controller.pid
SlurmdPidFile={folder}/node.%n.pid
SlurmctldLogFile={folder}/controller.log
SlurmdLogFile={folder}/node.%n.log
ProctrackType=proctrack/pgid
TaskPlugin=task/none
SelectType=select/linear
KillWait=2
ReturnToService=2
SlurmdParameters=config_overrides
NodeName=alpha,beta NodeAddr=127.0.0.1 NodeHostname={host} Port={ports[1]},{ports[2]} CPUs=2
PartitionName=all Nodes=alpha,beta Default=YES State=UP
"""


def missing():
    tools = [tool for tool in ("slurmctld", "slurmd", "sbatch", "srun", "mpirun", "unshare") if shutil.which(tool) is None]
    if tools:
        return f"{', '.join(tools)} is not installed (Debian: slurm-wlm, openmpi-bin)"
    if os.geteuid() != 0:
        return "slurmd must run as root"
    if subprocess.run(["unshare", "-m", "true"], capture_output=True).returncode != 0:
        return "this system gives no mount namespace"
    return None


def free_ports(count):
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [s.getsockname()[1] for s in sockets]
    for s in sockets:
        s.close()
    return ports


class Cluster:
    """A controller and two nodes of one machine; each node has its own folder for PMIx, as two machines have."""

    def __init__(self, folder):
        self.folder = folder
        self.environment = {name: value for name, value in os.environ.items() if not name.startswith(("SLURM", "OMPI", "PMI"))}
        self.environment |= {"SLURM_CONF": str(folder / "slurm.conf")}
        (folder / "state").mkdir()
        (folder / "pmix").mkdir()
        (folder / "slurm.conf").write_text(CONF.format(folder=folder, host=socket.gethostname().split(".")[0], ports=free_ports(3)))
        (folder / "mpi.conf").write_text(f"PMIxCliTmpDirBase={folder}/pmix\n")
        self.daemons = [self.start(["slurmctld", "-D", "-c"])]
        for node in ("alpha", "beta"):
            self.daemons.append(self.start(["unshare", "-m", "sh", "-c",
                                            f"mount -t tmpfs none {folder}/pmix && exec slurmd -D -N {node}"]))

    def start(self, words):
        return subprocess.Popen(words, env=self.environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def run(self, *words):
        return subprocess.run(words, env=self.environment, capture_output=True, text=True, timeout=60)

    def wait_for(self, holds, what):
        late = time.monotonic() + 150
        while not holds():
            if time.monotonic() > late:
                logs = "\n".join(log.read_text()[-2000:] for log in [*self.folder.glob("*.log"), *self.folder.glob("out")])
                sys.exit(f"slurm_test.py: {what} never came\n{logs}")
            time.sleep(0.1)

    def close(self):
        """Jobs first: what a job's steps have to say they say to a controller that still listens, and a node waits for its steps."""
        self.run("scancel", "--user=root")
        late = time.monotonic() + 60
        while self.run("squeue", "-h").stdout.strip() and time.monotonic() < late:
            time.sleep(0.1)
        for daemon in reversed(self.daemons):
            daemon.terminate()
        for daemon in self.daemons:
            try:
                daemon.wait(timeout=30)
            except subprocess.TimeoutExpired:
                daemon.kill()


def submit(cluster, args):
    """The recipe, as people submit it."""
    cluster.environment |= {"WEFT": args.weft, "WEFT_LOGS": str(cluster.folder / "logs")}
    return submitted(cluster, [args.script, *MODEL, "--save", str(cluster.folder / "slurm")])


def submit_one_that_hangs(cluster, args):
    """Its second task stops in step 12; the launcher hears of both tasks by the network, and starts them again."""
    words = [args.weft, "launch", "--launcher", "slurm", "--nnodes", "2", "--nproc-per-node", "1", "--max-restarts", "1", "--hang-limit", "3", "--inject",
             "hang@step=12,rank=1", "train", "gpt", *MODEL, "--tensor-model-parallel-size", "2", "--save-interval", "5", "--save", str(cluster.folder / "hung")]
    return submitted(cluster, ["--nodes=2", "--wrap", shlex.join(words)])


def submit_any_program(cluster, args):
    """Each task finds its seat; the second host alone where a hostfile and --include say so."""
    hosts = cluster.folder / "hosts"
    hosts.write_text("alpha slots=1\nbeta slots=1\n")
    told = "echo $RANK $LOCAL_RANK $WORLD_SIZE $GROUP_RANK $GROUP_WORLD_SIZE $MASTER_ADDR"
    start = [args.weft, "launch", "--launcher", "slurm"]
    both = shlex.join([*start, "--nnodes", "2", "--nproc-per-node", "1", "sh", "-c", told])
    one = shlex.join([*start, "--hostfile", str(hosts), "--include", "beta", "sh", "-c", told + " $SLURMD_NODENAME"])
    return submitted(cluster, ["--nodes=2", "--wrap", f"{both}; {one}"])


def submit_one_that_fails(cluster, args):
    """On the second node: a program of somebody's, and a rank of weft's."""
    start = [args.weft, "launch", "--launcher", "slurm", "--nnodes", "2", "--nproc-per-node", "1"]
    program = shlex.join([*start, "sh", "-c", "[ $RANK = 0 ] || exit 9; sleep 60"])
    ours = shlex.join([*start, "--inject", "kill@step=12,rank=1", "train", "gpt", *MODEL, "--tensor-model-parallel-size", "2"])
    return submitted(cluster, ["--nodes=2", "--wrap", f"{program}; {ours}; true"])[1]


def submit_agents(cluster, args):
    """weft's own agents as tasks of a step, two ranks each; and one agent alone, whose two ranks are no tasks."""
    train = ["--nproc-per-node", "2", "train", "gpt", *MODEL]
    both = ["srun", "--nodes=2", "--ntasks=2", args.weft, "launch", "--nnodes", "2", "--master-port", str(free_ports(1)[0]), *train,
            "--tensor-model-parallel-size", "2", "--save", str(cluster.folder / "agents")]
    one = ["srun", "--nodes=1", "--ntasks=1", args.weft, "launch", "--launcher", "weft", *train, "--save", str(cluster.folder / "agent")]
    return submitted(cluster, ["--nodes=2", "--wrap", f"{shlex.join(both)} && {shlex.join(one)}"])


def submit_one_that_is_told_to_go(cluster, args):
    """Slurm's signal comes to the recipe, training saves, the job queues again, and goes on from there. It has more steps than it can take in the
    time that this test has, so that no machine is too quick or too slow to be told; it is cancelled where the cluster closes."""
    folder = cluster.folder
    cluster.environment |= {"WEFT": args.weft, "WEFT_LOGS": str(folder / "logs_again")}
    steps = ["10000000" if word == "20" else word for word in MODEL]
    job = queued(cluster, [args.script, *steps, "--lr-decay-iters", "100", "--save", str(folder / "again"), "--load", str(folder / "again"), "--allow-fresh-start"], "append")
    said = lambda: "\n".join(path.read_text() for path in (folder / "logs_again").rglob("rank.0.stderr"))
    cluster.wait_for(lambda: "iteration       50/" in said(), "the fiftieth step")
    cluster.run("scancel", "--batch", "--signal=TERM", job)
    cluster.wait_for(lambda: "the job queues again" in (folder / "out").read_text(), "the job's word that it queues again")
    first = sorted(path.name for path in (folder / "again").glob("step_*") if (path / "COMPLETE").exists())
    # A step's daemon outlives its job by a moment and holds the sockets that the same step needs when the job comes again; Slurm itself waits two minutes.
    cluster.wait_for(lambda: not [*folder.glob(f"spool.*/*_{job}.*"), *folder.glob(f"spool.*/*pmix.{job}.*")], "the end of the first round's steps")
    # And a node takes no credential that was made in the second in which it revoked the job's last one.
    cluster.wait_for(lambda: cluster.run("scontrol", "update", f"JobId={job}", "StartTime=now+2").returncode == 0, "a job that waits")
    cluster.wait_for(lambda: "resumed from" in said(), "training that goes on")
    return cluster.run("scontrol", "show", "job", job).stdout, first


def queued(cluster, words, mode):
    cluster.wait_for(lambda: cluster.run("sinfo", "-h", "-t", "idle", "-o", "%D").stdout.strip() == "2", "two idle nodes")
    return cluster.run("sbatch", "--parsable", "--ntasks-per-node=1", f"--output={cluster.folder}/out", f"--open-mode={mode}", *words).stdout.strip()


def ended(cluster, job):
    cluster.wait_for(lambda: "COMPLETED" in (state := cluster.run("scontrol", "show", "job", job).stdout) or "FAILED" in state, "the end of the job")
    return cluster.run("scontrol", "show", "job", job).stdout


def submitted(cluster, words):
    folder = cluster.folder
    job = queued(cluster, words, "truncate")
    return ended(cluster, job), (folder / "out").read_text()


def tensors(folder):
    return {path.name: path.read_bytes() for path in folder.glob("step_*/rank_*.safetensors")}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--weft", required=True)
    parser.add_argument("--script", required=True)
    args = parser.parse_args()
    if why := missing():
        print(f"skipped: {why}")
        return
    with tempfile.TemporaryDirectory(prefix="weft-slurm-") as name:
        folder = pathlib.Path(name)
        cluster = Cluster(folder)
        try:
            state, out = submit(cluster, args)
            state_of_hung, said_of_hung = submit_one_that_hangs(cluster, args)
            state_of_any, said_by_any = submit_any_program(cluster, args)
            said_of_failed = submit_one_that_fails(cluster, args)
            state_of_agents, said_by_agents = submit_agents(cluster, args)
            state_again, saved_first = submit_one_that_is_told_to_go(cluster, args)
        finally:
            cluster.close()
        logs = "\n".join(path.read_text() for path in sorted((folder / "logs").rglob("rank.*")))
        if "COMPLETED" not in state:
            sys.exit(f"slurm_test.py: the job failed\n{state}\n{out}\n{logs}")
        hung = "launch: rank 1 on node 1 (host beta) hangs in step 12 (training): no sign of life for " in said_of_hung
        if "COMPLETED" not in state_of_hung or not hung or "restart 1 of 1" not in said_of_hung:
            sys.exit(f"slurm_test.py: a hang was not named, or not survived\n{state_of_hung}\n{said_of_hung}")
        if "COMPLETED" not in state_of_any or sorted(said_by_any.splitlines()) != ["0 0 1 0 1 beta beta", "0 0 2 0 2 alpha", "1 0 2 1 2 alpha"]:
            sys.exit(f"slurm_test.py: a program does not find its seat\n{state_of_any}\n{said_by_any}")
        there = "first: rank 1 on node 1 (host beta): "
        if not re.search(re.escape(there) + r"exit code 9, .* start; local rank 0\n", said_of_failed) or not re.search(
                re.escape(there) + r"signal 9 \(Killed\), .* start; local rank 0, process [1-9]\d*\n", said_of_failed):
            sys.exit(f"slurm_test.py: a failure's place is not told\n{said_of_failed}")
        if "COMPLETED" not in state_of_agents or not tensors(folder / "agents") or not tensors(folder / "agent"):
            sys.exit(f"slurm_test.py: agents in a step do not train\n{state_of_agents}\n{said_by_agents}")
        if "Restarts=1" not in state_again or len(saved_first) != 1:
            sys.exit(f"slurm_test.py: a job that was told to go did not save once and queue again\n{state_again}\n{saved_first}")
        subprocess.run([args.weft, "train", "gpt", *MODEL, "--ranks", "2", "--save", str(folder / "threads")], check=True,
                       capture_output=True, env=cluster.environment)
        subprocess.run([args.weft, "train", "gpt", *MODEL, "--ranks", "4", "--tensor-model-parallel-size", "2", "--save", str(folder / "four")], check=True,
                       capture_output=True, env=cluster.environment)
        if tensors(folder / "agents") != tensors(folder / "four") or tensors(folder / "agent") != tensors(folder / "threads"):
            sys.exit(f"slurm_test.py: agents' weights are not those of threads\n{said_by_agents}")
        if len(list((folder / "logs").rglob("rank.*.stderr"))) != 2:
            sys.exit(f"slurm_test.py: there are not two tasks' logs\n{out}")
        if not tensors(folder / "slurm") or tensors(folder / "slurm") != tensors(folder / "threads"):
            sys.exit(f"slurm_test.py: the weights are not those of two threads\n{out}\n{logs}")
    print("two tasks on two nodes trained what two threads train; a task that hung was named and started again; any program found its seat; weft's own agents train as tasks; "
          "a job that was told to go saved, queued again and went on")


if __name__ == "__main__":
    main()
