#!/usr/bin/env python3
"""pods_test.py --weft PROGRAM: the commands of a rendered job in what stands for its pods: process 1 of a network of its own, on a bridge with a name server
that learns their names late. Two and four of them start one after the other, die, are started again, are told to go and save within their grace, and shrink
from four to two. The server is dnsmasq where there is one. Needs root and iproute2."""
import argparse
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import hosts_test
from hosts_test import missing, space
from launch_test import ENVIRONMENT, MODEL, expect, run, steps, tensors, wait_for

JOB = """apiVersion: batch.tensorstack.dev/v1beta1
kind: DeepSpeedJob
metadata: {name: gpt}
spec:
  runPolicy: {backoffLimit: 4}
  ELASTIC
  config: {slotsPerWorker: SLOTS, run: {python: WORDS}}
  worker: {replicas: PODS, template: {spec: {terminationGracePeriodSeconds: 15, containers: [{name: worker, image: i}]}}}
"""
SERVER = "10.78.0.254"
MOST_PODS = 4


def address(index):
    return f"10.78.0.{index + 1}"


def ip(*words):
    subprocess.run(["ip", *words], check=True)


class Cluster:
    """A bridge, a name server on it, and as many places for pods."""

    def __init__(self, folder):
        self.folder, self.names, self.server, self.pods = folder, folder / "names", None, []
        self.names.mkdir()

    def __enter__(self):
        ip("netns", "add", space(SERVER))
        ip("-n", space(SERVER), "link", "add", "bridge", "type", "bridge")
        ip("-n", space(SERVER), "addr", "add", f"{SERVER}/24", "dev", "bridge")
        for device in ("lo", "bridge"):
            ip("-n", space(SERVER), "link", "set", device, "up")
        for index in range(MOST_PODS):
            self.lay_cable(index)
        words = ["dnsmasq", "--keep-in-foreground", "--no-resolv", "--no-hosts", "--pid-file=", "--user=root", "--bind-interfaces", f"--listen-address={SERVER}", f"--hostsdir={self.names}"]
        if not shutil.which("dnsmasq"):
            words = [sys.executable, str(pathlib.Path(__file__).with_name("names.py")), SERVER, str(self.names)]
        self.server = subprocess.Popen(["ip", "netns", "exec", space(SERVER), *words], stderr=subprocess.DEVNULL)
        return self

    def lay_cable(self, index):
        here = space(address(index))
        ip("netns", "add", here)
        ip("link", "add", "eth0", "netns", here, "type", "veth", "peer", "name", f"pod{index}", "netns", space(SERVER))
        ip("-n", space(SERVER), "link", "set", f"pod{index}", "master", "bridge", "up")
        ip("-n", here, "addr", "add", f"{address(index)}/24", "dev", "eth0")
        for device in ("lo", "eth0"):
            ip("-n", here, "link", "set", device, "up")
        etc = pathlib.Path(f"/etc/netns/{here}")
        etc.mkdir(parents=True)
        (etc / "resolv.conf").write_text(f"nameserver {SERVER}\n")
        (etc / "hosts").write_text(f"127.0.0.1 localhost\n{address(index)} gpt-{index}\n")

    def __exit__(self, *_):
        for process in (*self.pods, self.server):
            if process and process.poll() is None:
                process.kill()
                process.wait()
        for where in (SERVER, *map(address, range(MOST_PODS))):
            subprocess.run(["ip", "netns", "del", space(where)], capture_output=True)
            shutil.rmtree(f"/etc/netns/{space(where)}", ignore_errors=True)

    def make_known(self, *indices):
        for index in indices:
            (self.names / f"gpt-{index}").write_text(f"{address(index)} gpt-{index}.gpt\n")

    def pod(self, index, words):
        """Process 1, with a network and a host name of its own."""
        inside = ["ip", "netns", "exec", space(address(index)), "unshare", "-u", "--pid", "--fork", "--kill-child", "--mount-proc", "sh", "-c",
                  f'hostname gpt-{index} && exec "$@"', "pod", *words]
        # An elastic job waits so long for more nodes; 30 s are for clusters.
        more = {"JOB_COMPLETION_INDEX": str(index), "PET_RDZV_CONF": "last_call_timeout=3"}
        self.pods.append(subprocess.Popen(inside, stdout=subprocess.PIPE, stderr=open(self.folder / f"pod{index}", "a"), text=True, env=ENVIRONMENT | more))
        return self.pods[-1]

    def said(self, process=None):
        logs = "\n----\n".join(path.read_text() for path in sorted(self.folder.glob("pod?")))
        return subprocess.CompletedProcess([], process.returncode if process else None, "", logs)


def command(weft, folder, words, pods=2, slots=2, elastic=""):
    """What the rendered pods run."""
    file = JOB.replace("ELASTIC", elastic).replace("SLOTS", str(slots)).replace("PODS", str(pods))
    (folder / "job.yaml").write_text(file.replace("WORDS", json.dumps([str(word) for word in words])))
    said = run([weft, "job", "render", folder / "job.yaml"])
    expect(said.returncode == 0, "the job is rendered", said)
    lines = said.stdout.splitlines()
    at = next(i for i, line in enumerate(lines) if line.strip() in ("command:", "- command:"))
    out = []
    for line in lines[at + 1:]:
        if not line.strip().startswith("- "):
            break
        word = line.strip()[2:]
        out.append(json.loads(word) if word.startswith('"') else word)
    return [str(weft), *out[1:]]


def process_1(process):
    """The launcher inside: unshare's child."""
    return int(pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()[0])


def die(process):
    os.kill(process_1(process), signal.SIGKILL)
    process.communicate()


def training(folder, length, interval=5, more=("--tensor-model-parallel-size", 2)):
    return ["pretrain_gpt.py", *MODEL, *length, *more, "--save-interval", interval, "--save", folder]


def end_well(cluster, pods):
    for one in pods:
        one.communicate(timeout=150)
        expect(one.returncode == 0, "pods end well", cluster.said(one))


def expect_weights_of_threads(weft, cluster, words, ranks):
    """The same weights, so the same losses."""
    folder = cluster.folder
    alone = run([weft, "train", "gpt", *words[1:-1], folder / "threads", "--ranks", ranks])
    expect(alone.returncode == 0, "threads train", alone)
    expect(tensors(folder / "saved") == tensors(folder / "threads"), "the weights are those of an unbroken run", cluster.said())


def pods_that_come_late_and_die_complete_the_job(weft, cluster, count=2, slots=2):
    words = training(cluster.folder / "saved", ["--train-iters", 100])
    each = command(weft, cluster.folder, words, count, slots)
    pods = {}
    for index in reversed(range(count)):  # the one that all meet at comes last
        pods[index] = cluster.pod(index, each)
        time.sleep(0.5)
    cluster.make_known(*range(count))
    wait_for(lambda: len(steps(cluster.folder / "saved")) >= 3, "a checkpoint")
    die(pods[count - 1])
    pods[count - 1] = cluster.pod(count - 1, each)
    end_well(cluster, pods.values())
    expect_weights_of_threads(weft, cluster, words, 4)


def four_of_them_do(weft, cluster):
    pods_that_come_late_and_die_complete_the_job(weft, cluster, 4, 1)


def two_pods_shrink_to_one(weft, cluster):
    """In exact mode, where no number of ranks changes a bit. One dies, and nobody starts it again."""
    words = training(cluster.folder / "saved", ["--train-iters", 200], 5, ["--exact", "--micro-batch-size", 1])
    each = command(weft, cluster.folder, words, 2, 2, "elastic: {enabled: true, minReplicas: 1, maxReplicas: 2}")
    cluster.make_known(*range(2))
    pods = [cluster.pod(index, each) for index in range(2)]
    wait_for(lambda: len(steps(cluster.folder / "saved")) >= 3, "a checkpoint")
    os.kill(process_1(pods[1]), signal.SIGKILL)
    end_well(cluster, pods[:1])
    expect_weights_of_threads(weft, cluster, words, 2)


def a_pod_that_is_told_to_go_saves_within_its_grace(weft, cluster):
    folder = cluster.folder
    cluster.make_known(0, 1)
    each = command(weft, folder, training(folder / "saved", ["--train-iters", 100000000, "--lr-decay-iters", 100], 100000000))
    pods = [cluster.pod(index, each) for index in (0, 1)]
    wait_for(lambda: "iteration        5/" in (folder / "pod0").read_text() + (folder / "pod1").read_text(), "the fifth step")
    os.kill(process_1(pods[1]), signal.SIGTERM)
    for one in pods:
        one.communicate(timeout=60)
        # After the grace it would be 137.
        expect(one.returncode == 3, "all have saved and stopped", cluster.said(one))
    expect(len(steps(folder / "saved")) == 1, "one step is saved", cluster.said())


CASES = (pods_that_come_late_and_die_complete_the_job, four_of_them_do, two_pods_shrink_to_one, a_pod_that_is_told_to_go_saves_within_its_grace)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--weft", required=True)
    parser.add_argument("cases", nargs="*")
    args = parser.parse_args()
    hosts_test.TAG = f"weftpod{os.getpid()}"
    if why := missing():
        print(f"skipped: {why}")
        return
    for case in CASES:
        if args.cases and case.__name__ not in args.cases:
            continue
        began = time.monotonic()
        with tempfile.TemporaryDirectory(prefix="weft-pods-") as name, Cluster(pathlib.Path(name)) as cluster:
            case(args.weft, cluster)
        print(f"{case.__name__}: {time.monotonic() - began:.1f} s")


if __name__ == "__main__":
    main()
