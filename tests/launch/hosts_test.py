#!/usr/bin/env python3
"""hosts_test.py --weft PROGRAM [CASE...]: two hosts as network namespaces of this machine, with a cable between them. mpirun trains across both and must
give what two threads give; agents meet over the cable, and one that is pulled is noticed. Needs root and iproute2; says what is missing."""
import argparse
import functools
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from launch_test import ENDLESS, ENVIRONMENT, MODEL, expect, is_rank, losses, run, tensors, wait_for

ADDRESSES = ("10.77.0.1", "10.77.0.2")
SIX = ("fd77::1", "fd77::2")  # the same hosts
TAG = f"weft{os.getpid()}"


def missing():
    tools = [tool for tool in ("ip", "unshare", "mpirun") if shutil.which(tool) is None]
    if tools:
        return f"{', '.join(tools)} is not installed (Debian: iproute2, openmpi-bin)"
    made = subprocess.run(["ip", "netns", "add", f"{TAG}.try"], capture_output=True, text=True)
    if made.returncode != 0:
        return f"this system gives no network namespace: {made.stderr.strip()}"
    subprocess.run(["ip", "netns", "del", f"{TAG}.try"], check=True)
    return None


def space(address):
    return f"{TAG}.{address}"


def lay_cable():
    for address in ADDRESSES:
        subprocess.run(["ip", "netns", "add", space(address)], check=True)
    one, other = map(space, ADDRESSES)
    subprocess.run(["ip", "link", "add", "cable", "netns", one, "type", "veth", "peer", "name", "cable", "netns", other], check=True)
    for address in ADDRESSES:
        for words in (["addr", "add", f"{address}/24", "dev", "cable"], ["link", "set", "cable", "up"], ["link", "set", "lo", "up"]):
            subprocess.run(["ip", "-n", space(address), *words], check=True)
    for address, six in zip(ADDRESSES, SIX):
        subprocess.run(["ip", "-n", space(address), "addr", "add", f"{six}/64", "dev", "cable", "nodad"], check=True)


def on(address):
    """What makes a command one of that host: its network, and its name."""
    return ["ip", "netns", "exec", space(address), "unshare", "-u", "sh", "-c", f'hostname {address} && exec "$@"', "on"]


def by_mpirun(folder):
    """The launcher's words for both hosts, whose ssh is a way into a namespace."""
    agent = folder / "agent"
    agent.write_text(f'#!/bin/sh\nhost=$1\nshift\nexec ip netns exec "{TAG}.$host" unshare -u sh -c "hostname $host; $*"\n')
    agent.chmod(0o755)
    (folder / "hosts").write_text("".join(f"{address} slots=1\n" for address in ADDRESSES))
    return ["--hostfile", folder / "hosts", "--launcher", "ssh", "--launcher_args",
            f"--bind-to none --mca plm_rsh_agent {agent} --mca btl tcp,self --mca btl_tcp_if_include 10.77.0.0/24"]


def mpirun_trains_across_both(weft, folder):
    words = ["train", "gpt", *MODEL, "--train-iters", 20, "--tensor-model-parallel-size", 2, "--save-interval", 20, "--save"]
    said = run([*on(ADDRESSES[0]), weft, "launch", *by_mpirun(folder), "--log-dir", folder / "logs", *words, folder / "hosts_saved"])
    expect(said.returncode == 0, "mpirun trains on both hosts", said)
    expect((alone := run([weft, "train", "gpt", *words[2:], folder / "threads", "--ranks", 2])).returncode == 0, "threads train", alone)
    expect(tensors(folder / "hosts_saved") == tensors(folder / "threads"), "the weights are those of two threads", said)


def any_program_finds_its_seat_on_both(weft, folder):
    told = "echo $RANK $LOCAL_RANK $WORLD_SIZE $LOCAL_WORLD_SIZE $GROUP_RANK $GROUP_WORLD_SIZE $MASTER_ADDR $(hostname)"
    said = run([*on(ADDRESSES[0]), weft, "launch", *by_mpirun(folder), "sh", "-c", told])
    expect(said.returncode == 0 and sorted(said.stdout.splitlines()) == [f"{i} 0 2 1 {i} 2 {ADDRESSES[0]} {ADDRESSES[i]}" for i in (0, 1)], "each its own", said)
    said = run([*on(ADDRESSES[0]), weft, "launch", *by_mpirun(folder), "--num_nodes", 1, "--num_gpus", 1, "sh", "-c", told])
    expect(said.returncode == 0 and said.stdout == f"0 0 1 1 0 1 {ADDRESSES[0]} {ADDRESSES[0]}\n", "the first host alone", said)


def a_rank_that_hangs_on_another_host_is_named(weft, folder):
    """mpirun's ranks tell the launcher over the cable what they do."""
    said = run([*on(ADDRESSES[0]), weft, "launch", *by_mpirun(folder), "--max-restarts", 1, "--hang-limit", 3, "--inject", "hang@step=12,rank=1",
                "train", "gpt", *MODEL, "--train-iters", 20, "--tensor-model-parallel-size", 2, "--save-interval", 5, "--save", folder / "saved"])
    expect(said.returncode == 0 and "restart 1 of 1" in said.stderr, "it goes on", said)
    expect("hangs in step 12 (training): no sign of life for 3." in said.stderr and f"launch: rank 1 on node 1 (host {ADDRESSES[1]}) hangs" in said.stderr,
           "the rank that hangs is named, and where it is", said)
    expect("launch:   rank 0 waits in " in said.stderr and " for rank 1, in step 12 (training)" in said.stderr, "and where the other waits", said)
    left = [path for path in pathlib.Path("/proc").glob("[0-9]*/cmdline") if str(folder).encode() in read_bytes(path)]
    expect(not left, f"and nothing is left: {left}", said)


def a_rank_that_fails_on_another_host_is_told_with_its_place(weft, folder):
    """By the hostfile, by mpirun's own words, and by what the rank itself said before."""
    there = f"first: rank 1 on node 1 (host {ADDRESSES[1]}): "
    said = run([*on(ADDRESSES[0]), weft, "launch", *by_mpirun(folder), "sh", "-c", "[ $RANK = 0 ] || exit 9; sleep 60"])
    expect(said.returncode == 9 and re.search(re.escape(there) + r"exit code 9, .* after the start; local rank 0\n", said.stderr), "an exit code", said)
    said = run([*on(ADDRESSES[0]), weft, "launch", *by_mpirun(folder), "sh", "-c", "[ $RANK = 0 ] || kill -9 $$; sleep 60"])
    expect(said.returncode == 137 and there + "signal 9 (Killed)" in said.stderr, "a signal", said)
    said = run([*on(ADDRESSES[0]), weft, "launch", *by_mpirun(folder), "--inject", "kill@step=12,rank=1", "train", "gpt", *MODEL, "--train-iters", 20,
                "--tensor-model-parallel-size", 2])
    expect(said.returncode == 137 and re.search(re.escape(there) + r"signal 9 \(Killed\), .* after the start; local rank 0, process [1-9]\d*\n", said.stderr),
           "a rank of weft's, with its process", said)


def read_bytes(path):
    try:
        return path.read_bytes()
    except OSError:
        return b""


def a_name_that_is_a_loopback_address_at_home_is_found_from_elsewhere(weft, folder):
    """Debian gives a host's own name the address 127.0.1.1: ranks beside rank 0 come from there, and others must not look for them at home."""
    etc = [pathlib.Path(f"/etc/netns/{space(address)}") for address in ADDRESSES]
    for place, leads_to in zip(etc, ("127.0.1.1", ADDRESSES[0])):
        place.mkdir(parents=True)
        (place / "hosts").write_text(f"127.0.0.1 localhost\n{leads_to} first\n")
    try:
        words = [weft, "train", "gpt", *MODEL, "--train-iters", 5, "--micro-batch-size", 1, "--global-batch-size", 6, "--save-interval", 5, "--save"]
        ranks = []
        for rank in range(3):
            seat = {"RANK": rank, "WORLD_SIZE": 3, "LOCAL_RANK": rank % 2, "LOCAL_WORLD_SIZE": 2 - rank // 2, "MASTER_ADDR": "first", "MASTER_PORT": 29555}
            ranks.append(subprocess.Popen([str(word) for word in [*on(ADDRESSES[rank // 2]), *words, folder / "names"]], stdout=subprocess.PIPE,
                                          stderr=subprocess.PIPE, text=True, env=ENVIRONMENT | {name: str(value) for name, value in seat.items()}))
        for said in map(ended, ranks):
            expect(said.returncode == 0, "all three meet", said)
        expect((alone := run([*words, folder / "threads", "--ranks", 3])).returncode == 0, "threads train", alone)
        expect(tensors(folder / "names") == tensors(folder / "threads"), "the weights are those of three threads", alone)
    finally:
        for place in etc:
            shutil.rmtree(place)


def agent(weft, rank, script, more=(), space_of=None):
    meets = [] if {"--master-addr", "--rdzv-endpoint"} & set(more) else ["--master-addr", ADDRESSES[0]]
    words = [*on(ADDRESSES[rank if space_of is None else space_of]), weft, "launch", "--nnodes", "2", "--node-rank", str(rank), *meets, "--nproc-per-node",
             "2", "--rdzv-conf", "keep_alive_interval=1,keep_alive_max_attempt=4,join_timeout=20", *more, "sh", "-c", script]
    return subprocess.Popen([str(word) for word in words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=ENVIRONMENT)


def agents_meet_and_train_over_ipv6(weft, folder):
    """The place is a number in brackets or not; where no rank is given, whoever has that address serves."""
    told = "echo $RANK of $WORLD_SIZE at $MASTER_ADDR"
    both = [agent(weft, rank, told, ["--master-addr", f"[{SIX[0]}]"]) for rank in (1, 0)]
    for rank, said in zip((1, 0), map(ended, both)):
        expect(said.returncode == 0 and sorted(said.stdout.splitlines()) == [f"{2 * rank + i} of 4 at {SIX[0]}" for i in (0, 1)], "by a number", said)
    both = [agent(weft, -1, told, ["--rdzv-endpoint", f"[{SIX[0]}]:29611"], space_of=rank) for rank in (1, 0)]
    said = [ended(one) for one in both]
    expect(all(one.returncode == 0 for one in said), "whoever has the address serves", said[0])
    words = ["train", "gpt", *MODEL, "--train-iters", 20, "--tensor-model-parallel-size", 2, "--save-interval", 20, "--save"]
    both = [subprocess.Popen([str(word) for word in [*on(ADDRESSES[rank]), weft, "launch", "--nnodes", 2, "--node-rank", rank, "--master-addr", SIX[0],
                                                     "--nproc-per-node", 1, *words, folder / "six"]],
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=ENVIRONMENT) for rank in (1, 0)]
    for said in map(ended, both):
        expect(said.returncode == 0, "ranks connect", said)
    expect((alone := run([weft, *words, folder / "threads", "--ranks", 2])).returncode == 0, "threads train", alone)
    expect(tensors(folder / "six") == tensors(folder / "threads"), "the weights are those of two threads", alone)


def a_rank_tells_its_launcher_over_ipv6(weft, folder):
    said = run([*on(ADDRESSES[0]), weft, "launch", *by_mpirun(folder), "--local-addr", f"[{SIX[0]}]", "--hang-limit", 3, "--inject", "hang@step=12,rank=1",
                "train", "gpt", *MODEL, "--train-iters", 20, "--tensor-model-parallel-size", 2])
    expect(f"launch: rank 1 on node 1 (host {ADDRESSES[1]}) hangs in step 12 (training)" in said.stderr, "the rank that hangs is named", said)


def ranks_of(address):
    """Processes whose network is that host's."""
    network = os.stat(f"/run/netns/{space(address)}").st_ino
    out = []
    for path in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            if is_rank(int(path.name)) and (path / "ns/net").stat().st_ino == network:
                out.append(int(path.name))
        except OSError:
            pass
    return out


def read_until(stream, said, words):
    """Lines go to `said` until one has these words; without one there is nothing more to test."""
    for line in stream:
        said.append(line)
        if words in line:
            return
    sys.exit(f"hosts_test.py: never '{words}'\n{''.join(said)}")


def a_rank_whose_machine_no_longer_answers_is_missed(weft, folder):
    """By the launcher of mpirun, long before it hangs for too long; but a rank that is stopped hangs, as its machine answers for it."""
    words = [*on(ADDRESSES[0]), weft, "launch", *by_mpirun(folder), "--hang-limit", 300, "train", "gpt", *ENDLESS, "--tensor-model-parallel-size", 2]
    said = []
    with subprocess.Popen([str(word) for word in words], stderr=subprocess.PIPE, text=True, env=ENVIRONMENT) as one:
        until = functools.partial(read_until, one.stderr, said)
        until("iteration       10/")
        there = wait_for(lambda: ranks_of(ADDRESSES[1]), "a rank on the other host")
        os.kill(there[0], signal.SIGSTOP)
        time.sleep(13)
        os.kill(there[0], signal.SIGCONT)
        until("iteration ")
        subprocess.run(["ip", "-n", space(ADDRESSES[1]), "link", "set", "cable", "down"], check=True)
        began = time.monotonic()
        until("its machine is gone or cut off")
        missed = time.monotonic() - began
        said.append(one.communicate()[1])
        over = time.monotonic() - began
    whole = subprocess.CompletedProcess([], one.returncode, "", "".join(said))
    expect(whole.returncode == 1 and re.search(rf"first: rank 1 on node 1 \(host {ADDRESSES[1]}\) does not answer for 1\d s: its machine is gone or cut off, ", whole.stderr),
           "it says so", whole)
    early = rf"^launch: rank 1 on node 1 \(host {ADDRESSES[1]}\) does not answer for 1\d s: its machine is gone or cut off; the others still work$"
    told = len(re.findall(early, whole.stderr, re.MULTILINE))
    expect(told <= 1 and whole.stderr.count("does not answer") == 1 + told, "once, and not of the rank that was stopped", whole)
    expect(over < 30, f"soon, and not after {missed} and {over} s", whole)
    subprocess.run(["ip", "-n", space(ADDRESSES[1]), "link", "set", "cable", "up"], check=True)
    wait_for(lambda: not ranks_of(ADDRESSES[1]), "the end of the rank behind the cut")
    print(f"a machine that is cut off from mpirun's launcher is missed after {missed:.1f} s, and all has ended there after {over:.1f} s")


def holds_signals_back(process):
    """As the launcher does, which hears them through a descriptor; before it is one it is a shell."""
    place = pathlib.Path(f"/proc/{process}")
    if read_bytes(place / "cmdline").split(b"\0")[1:2] != [b"launch"]:
        return False
    masks = re.search(rb"SigBlk:\s*([0-9a-f]+)", read_bytes(place / "status"))
    return masks is not None and int(masks[1], 16) >> (signal.SIGTERM - 1) & 1


# Takes what is asked, and answers nothing.
SILENT = "import socket, time; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.bind(('127.0.0.1', 53)); print(flush=True); time.sleep(100)"


def a_name_server_that_never_answers_holds_no_agent_up(weft, folder):
    """It gives up in the time that it was given, and hears a signal at once, where the system itself would ask for 10 s and more."""
    etc = pathlib.Path(f"/etc/netns/{space(ADDRESSES[1])}")
    etc.mkdir(parents=True)
    (etc / "resolv.conf").write_text("nameserver 127.0.0.1\noptions timeout:30 attempts:2\n")
    server = subprocess.Popen([*on(ADDRESSES[1]), sys.executable, "-c", SILENT], stdout=subprocess.PIPE)
    try:
        server.stdout.readline()
        more = ["--master-addr", "first.example", "--rdzv-conf", "join_timeout=2"]
        for rank in (1, -1):
            began = time.monotonic()
            said = ended(agent(weft, rank, "true", more, space_of=1))
            took = time.monotonic() - began
            expect(said.returncode == 1 and "launch: nobody answers at first.example port 29500 for 2 s: host first.example is not known yet: no name server answers"
                   in said.stderr, "it says what is missing", said)
            expect(took < (10 if rank == 1 else 20), f"in its time, and not after {took} s", said)
        waiting = agent(weft, 1, "true", ["--master-addr", "first.example"], space_of=1)
        wait_for(lambda: holds_signals_back(waiting.pid), "an agent that hears signals")
        began = time.monotonic()
        waiting.terminate()
        said = ended(waiting)
        took = time.monotonic() - began
        expect(said.returncode == 143 and took < 10, f"a signal ends it, and not after {took} s", said)
        print(f"a name server that never answers: given up after 2 s are over, and ended by a signal after {took:.1f} s")
    finally:
        server.kill()
        server.wait()
        shutil.rmtree(etc)


def ended(process):
    out, err = process.communicate(timeout=60)
    return subprocess.CompletedProcess([], process.returncode, out, err)


def agents_meet_and_agree(weft, folder):
    both = [ended(agent) for agent in [agent(weft, rank, "echo $RANK of $WORLD_SIZE on $GROUP_RANK at $MASTER_ADDR") for rank in (1, 0)]]
    for rank, said in zip((1, 0), both):
        expect(said.returncode == 0, "an agent ends well", said)
        expect(sorted(said.stdout.splitlines()) == [f"{2 * rank + i} of 4 on {rank} at 10.77.0.1" for i in (0, 1)], "its workers", said)


def one_worker_that_fails_ends_all(weft, folder):
    both = [ended(agent) for agent in [agent(weft, rank, "[ $RANK = 3 ] && { echo oh >&2; exit 9; }; exec sleep 60") for rank in (0, 1)]]
    for said in both:
        expect(said.returncode == 9, "every node returns the worker's code", said)
        expect(said.stderr.count("first: rank 3 on node 1 (host 10.77.0.2): exit code 9") == 1 and "    oh\n" in said.stderr,
               "and tells once who failed", said)


def a_cable_that_is_pulled_is_noticed(weft, folder):
    agents = [agent(weft, rank, "echo up; exec sleep 60") for rank in (0, 1)]
    for one in agents:
        one.stdout.readline()
    subprocess.run(["ip", "-n", space(ADDRESSES[1]), "link", "set", "cable", "down"], check=True)
    began = time.monotonic()
    said = ended(agents[0])
    seconds = time.monotonic() - began
    expect(said.returncode == 1 and "first: node 1 (host 10.77.0.2): silent for 4 s" in said.stderr, "the first node says so", said)
    expect(seconds < 60, f"soon, and not after {seconds} s", said)
    print(f"a pulled cable ends the job after {seconds:.1f} s")
    agents[1].terminate()
    other = ended(agents[1])
    expect(other.returncode == 143, "the other one, whether it has noticed or not, stops its workers and ends", other)
    subprocess.run(["ip", "-n", space(ADDRESSES[1]), "link", "set", "cable", "up"], check=True)


def training_agent(weft, rank, folder, nodes, length):
    words = [*on(ADDRESSES[rank]), weft, "launch", "--nnodes", nodes, "--node-rank", rank, "--master-addr", ADDRESSES[0], "--nproc-per-node", 2,
             "--max-restarts", 3, "--rdzv-conf", "keep_alive_interval=1,keep_alive_max_attempt=4,join_timeout=30,last_call_timeout=30",
             "train", "gpt", *MODEL, "--exact", *length, "--tensor-model-parallel-size", 2, "--save-interval", 10, "--save", folder,
             "--log-jsonl", f"{folder}.jsonl"]
    return subprocess.Popen([str(word) for word in words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=ENVIRONMENT)


def unbroken(weft, folder, length):
    said = run([weft, "train", "gpt", *MODEL, "--exact", *length, "--tensor-model-parallel-size", 2, "--ranks", 4, "--save-interval", 10, "--save", folder, "--log-jsonl",
                f"{folder}.jsonl"])
    expect(said.returncode in (0, 3), "threads train", said)


def agents_train_without_mpi(weft, folder):
    both = [ended(one) for one in [training_agent(weft, rank, folder / "agents", 2, ["--train-iters", 20]) for rank in (1, 0)]]
    for said in both:
        expect(said.returncode == 0, "an agent ends well", said)
    unbroken(weft, folder / "threads", ["--train-iters", 20])
    expect(tensors(folder / "agents") == tensors(folder / "threads"), "the weights are those of four threads", both[1])


def fewer_nodes_go_on_and_one_that_comes_back_is_taken_in(weft, folder):
    """Data parallelism 2, then 1, then 2: in exact mode the losses are those of an unbroken run."""
    first, second = [training_agent(weft, rank, folder / "saved", "1:2", ENDLESS[len(MODEL):]) for rank in (0, 1)]
    said = []
    until = functools.partial(read_until, first.stderr, said)
    until("iteration       40/")
    os.kill(second.pid, signal.SIGKILL)
    began = time.monotonic()
    until("going on with those that are left")
    noticed = time.monotonic() - began
    until("resumed from")
    until("iteration ")
    went_on = time.monotonic() - began
    expect(went_on < 60, f"it goes on soon, and not after {went_on} s", subprocess.CompletedProcess([], 0, "", "".join(said)))
    third = training_agent(weft, 1, folder / "saved", "1:2", ENDLESS[len(MODEL):])
    until("to go on with one node more")
    until("resumed from")
    until("iteration ")
    subprocess.run(["ip", "-n", space(ADDRESSES[1]), "link", "set", "cable", "down"], check=True)
    began = time.monotonic()
    until("silent for 4 s")
    cut = time.monotonic() - began
    until("resumed from")
    until("iteration ")
    expect(time.monotonic() - began < 60, "after a pulled cable too", subprocess.CompletedProcess([], 0, "", "".join(said)))
    third.kill()
    third.communicate()
    second.communicate()
    subprocess.run(["ip", "-n", space(ADDRESSES[1]), "link", "set", "cable", "up"], check=True)
    first.terminate()
    rest = ended(first)
    said.append(rest.stderr)
    expect(rest.returncode == 3, "it stops in order", subprocess.CompletedProcess([], rest.returncode, "", "".join(said)))
    done = list(losses(folder / "saved.jsonl"))
    unbroken(weft, folder / "whole", [*ENDLESS[len(MODEL):], "--exit-interval", max(step for step, _ in done)])
    expected = dict(losses(folder / "whole.jsonl"))
    for step, loss in done:
        expect(loss == expected[step], f"step {step} has loss and norm {loss}, {expected[step]} unbroken", rest)
    expect({step for step, _ in done} == set(expected), "every step is there", rest)
    print(f"an agent's death is told after {noticed:.2f} s and a step done after {went_on:.2f} s; a cut cable is told after {cut:.2f} s")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--weft", required=True)
    parser.add_argument("cases", nargs="*")
    args = parser.parse_args()
    if why := missing():
        print(f"skipped: {why}")
        return
    try:
        lay_cable()
        for case in (mpirun_trains_across_both, any_program_finds_its_seat_on_both, a_rank_that_hangs_on_another_host_is_named,
                     a_rank_that_fails_on_another_host_is_told_with_its_place, a_name_that_is_a_loopback_address_at_home_is_found_from_elsewhere,
                     agents_meet_and_agree, agents_meet_and_train_over_ipv6, a_rank_tells_its_launcher_over_ipv6,
                     a_rank_whose_machine_no_longer_answers_is_missed, a_name_server_that_never_answers_holds_no_agent_up, one_worker_that_fails_ends_all, a_cable_that_is_pulled_is_noticed,
                     agents_train_without_mpi, fewer_nodes_go_on_and_one_that_comes_back_is_taken_in):
            if args.cases and case.__name__ not in args.cases:
                continue
            with tempfile.TemporaryDirectory(prefix="weft-hosts-") as name:
                began = time.monotonic()
                case(args.weft, pathlib.Path(name))
            print(f"{case.__name__}: {time.monotonic() - began:.1f} s")
    finally:
        for address in ADDRESSES:
            subprocess.run(["ip", "netns", "del", space(address)], capture_output=True)


if __name__ == "__main__":
    main()
