#!/usr/bin/env python3
"""pods_test.py --weft PROGRAM: the commands of a rendered job in what stands for its pods: process 1 of a network of its own, under names that come late.
Two pods start one after the other; one dies and is started again; one is told to go, and saves within its grace. Needs root and iproute2."""
import argparse
import json
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import time

import hosts_test
from hosts_test import ADDRESSES, lay_cable, missing, space
from launch_test import ENVIRONMENT, MODEL, expect, run, steps, tensors, wait_for

JOB = """apiVersion: batch.tensorstack.dev/v1beta1
kind: DeepSpeedJob
metadata: {name: gpt}
spec:
  runPolicy: {backoffLimit: 4}
  config: {slotsPerWorker: 2, run: {python: WORDS}}
  worker: {replicas: 2, template: {spec: {terminationGracePeriodSeconds: 15, containers: [{name: worker, image: i}]}}}
"""


def command(weft, folder, words):
    """What the rendered pods run."""
    (folder / "job.yaml").write_text(JOB.replace("WORDS", json.dumps([str(word) for word in words])))
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


def names_file(index):
    return pathlib.Path(f"/etc/netns/{space(ADDRESSES[index])}/hosts")


def make_names_known():
    for index in (0, 1):
        names_file(index).write_text("127.0.0.1 localhost\n" + "".join(f"{address} gpt-{i}.gpt\n" for i, address in enumerate(ADDRESSES)))


def pod(index, words, folder):
    """Process 1, with a network and a host name of its own."""
    inside = ["ip", "netns", "exec", space(ADDRESSES[index]), "unshare", "-u", "--pid", "--fork", "--kill-child", "--mount-proc", "sh", "-c",
              f'hostname gpt-{index} && exec "$@"', "pod", *words]
    return subprocess.Popen(inside, stdout=subprocess.PIPE, stderr=open(folder / f"pod{index}", "a"), text=True,
                            env=ENVIRONMENT | {"JOB_COMPLETION_INDEX": str(index)})


def process_1(process):
    """The launcher inside: unshare's child."""
    return int(pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()[0])


def said_in(folder, process=None):
    return subprocess.CompletedProcess([], process.returncode if process else None, "", "\n----\n".join(path.read_text() for path in sorted(folder.glob("pod?"))))


def training(folder, length, interval=5):
    return ["pretrain_gpt.py", *MODEL, *length, "--tensor-model-parallel-size", 2, "--save-interval", interval, "--save", folder]


def pods_that_come_late_and_die_complete_the_job(weft, folder):
    length = ["--train-iters", 100]
    words = command(weft, folder, training(folder / "saved", length))
    second = pod(1, words, folder)
    time.sleep(1)
    first = pod(0, words, folder)
    time.sleep(1)
    make_names_known()
    wait_for(lambda: len(steps(folder / "saved")) >= 3, "a checkpoint")
    os.kill(process_1(second), signal.SIGKILL)
    second.communicate()
    again = pod(1, words, folder)
    for one in (first, again):
        one.communicate(timeout=100)
        expect(one.returncode == 0, "both pods end well", said_in(folder, one))
    alone = run([weft, *["train", "gpt", *training(folder / "threads", length)[1:]], "--ranks", 4])
    expect(alone.returncode == 0, "threads train", alone)
    expect(tensors(folder / "saved") == tensors(folder / "threads"), "the weights are those of an unbroken run", said_in(folder))


def a_pod_that_is_told_to_go_saves_within_its_grace(weft, folder):
    make_names_known()
    words = command(weft, folder, training(folder / "saved", ["--train-iters", 100000000, "--lr-decay-iters", 100], 100000000))
    pods = [pod(index, words, folder) for index in (0, 1)]
    wait_for(lambda: "iteration        5/" in (folder / "pod0").read_text() + (folder / "pod1").read_text(), "the fifth step")
    os.kill(process_1(pods[1]), signal.SIGTERM)
    for one in pods:
        one.communicate(timeout=60)
        # After the grace it would be 137.
        expect(one.returncode == 3, "all have saved and stopped", said_in(folder, one))
    expect(len(steps(folder / "saved")) == 1, "one step is saved", said_in(folder))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--weft", required=True)
    args = parser.parse_args()
    hosts_test.TAG = f"weftpod{os.getpid()}"
    if why := missing():
        print(f"skipped: {why}")
        return
    try:
        lay_cable()
        for case in (pods_that_come_late_and_die_complete_the_job, a_pod_that_is_told_to_go_saves_within_its_grace):
            for index in (0, 1):
                names_file(index).parent.mkdir(parents=True, exist_ok=True)
                names_file(index).write_text("127.0.0.1 localhost\n")
                names_file(index).with_name("resolv.conf").write_text("nameserver 127.0.0.1\n")  # where nobody answers
            with tempfile.TemporaryDirectory(prefix="weft-pods-") as name:
                began = time.monotonic()
                case(args.weft, pathlib.Path(name))
            print(f"{case.__name__}: {time.monotonic() - began:.1f} s")
    finally:
        for index, address in enumerate(ADDRESSES):
            shutil.rmtree(names_file(index).parent, ignore_errors=True)
            subprocess.run(["ip", "netns", "del", space(address)], capture_output=True)


if __name__ == "__main__":
    main()
