#!/usr/bin/env python3
"""slurm_test.py --weft PROGRAM --script deploy/slurm/train.sbatch: starts a real slurmctld and two slurmd on this machine, submits the
script, and compares what two tasks on two node names trained with what two threads train. Needs root, slurm-wlm and mpirun; says what is missing."""
import argparse
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import tempfile
import time

MODEL = """--num-layers 1 --hidden-size 16 --num-attention-heads 2 --seq-length 16 --micro-batch-size 2 --global-batch-size 4
  --lr 1e-3 --mock-data --data-order keyed --vocab-size 60 --eval-iters 0 --log-interval 1 --threads 1 --train-iters 20 --save-interval 20""".split()
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
        late = time.monotonic() + 60
        while not holds():
            if time.monotonic() > late:
                logs = "\n".join(log.read_text()[-2000:] for log in self.folder.glob("*.log"))
                sys.exit(f"slurm_test.py: {what} never came\n{logs}")
            time.sleep(0.1)

    def close(self):
        for daemon in reversed(self.daemons):
            daemon.terminate()
        for daemon in self.daemons:
            daemon.wait()


def submit(cluster, args):
    folder = cluster.folder
    cluster.wait_for(lambda: cluster.run("sinfo", "-h", "-t", "idle", "-o", "%D").stdout.strip() == "2", "two idle nodes")
    cluster.environment |= {"WEFT": args.weft, "WEFT_LOGS": str(folder / "logs")}
    job = cluster.run("sbatch", "--parsable", "--ntasks-per-node=1", f"--output={folder}/out", args.script, *MODEL, "--save",
                      str(folder / "slurm")).stdout.strip()
    cluster.wait_for(lambda: "COMPLETED" in (state := cluster.run("scontrol", "show", "job", job).stdout) or "FAILED" in state,
                     "the end of the job")
    return cluster.run("scontrol", "show", "job", job).stdout, (folder / "out").read_text()


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
        finally:
            cluster.close()
        logs = "\n".join(path.read_text() for path in sorted((folder / "logs").rglob("rank.*")))
        if "COMPLETED" not in state:
            sys.exit(f"slurm_test.py: the job failed\n{state}\n{out}\n{logs}")
        subprocess.run([args.weft, "train", "gpt", *MODEL, "--ranks", "2", "--save", str(folder / "threads")], check=True,
                       capture_output=True, env=cluster.environment)
        if len(list((folder / "logs").rglob("rank.*.stderr"))) != 2:
            sys.exit(f"slurm_test.py: there are not two tasks' logs\n{out}")
        if not tensors(folder / "slurm") or tensors(folder / "slurm") != tensors(folder / "threads"):
            sys.exit(f"slurm_test.py: the weights are not those of two threads\n{out}\n{logs}")
    print("two tasks on two nodes trained what two threads train")


if __name__ == "__main__":
    main()
