#!/usr/bin/env python3
"""large.py limit WEFT DIRECTORY [STEPS] | large.py beside WEFT DIRECTORY [ROUNDS] | large.py disk DIRECTORY: training whose states, and weights, lie in files of DIRECTORY.

limit: GPT-2 XL (1.56 billion parameters) on four ranks of one process that may hold 12 GiB (RLIMIT_DATA): ZeRO-3, bf16, sums of gradients in bf16,
states in files. Tells for each step how long it and its update took, what the disk read and wrote, and how long that would take at the
rates that the disk has alone, which are measured first. beside: GPT-2 124M with states in memory, in files with 3 and with 32 windows in
memory, and with weights in files too, one after the other in each round. disk: what several threads get out of the disk at once, each with a call
of 4 MiB under way: whether more calls at a time, as io_uring would have, could help."""
import json
import mmap
import os
import pathlib
import resource
import statistics
import subprocess
import sys
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).parents[2]
LIMIT = 12 << 30
LARGE = f"""--config {ROOT}/examples/gpt2_1.5b.yaml --mock-data --data-order keyed --ranks 4 --threads 1 --zero-stage 3 --main-grads-dtype bf16 --micro-batch-size 1
  --global-batch-size 4 --seq-length 256 --max-position-embeddings 256 --recompute-granularity full --eval-iters 0 --lr-warmup-iters 0 --log-interval 1
  --timing-log-level 1 --optimizer-cpu-offload""".split()
SMALL = """--num-layers 12 --hidden-size 768 --num-attention-heads 12 --seq-length 256 --max-position-embeddings 256 --vocab-size 50304 --bf16
  --attention-dropout 0 --hidden-dropout 0 --lr 1e-4 --mock-data --data-order keyed --eval-iters 0 --log-interval 1 --threads 2
  --micro-batch-size 4 --global-batch-size 8 --train-iters 5""".split()


def disk_rates(directory, total=2 << 30, block=4 << 20):
    """Bytes a second that one thread reads and writes past the kernel's cache."""
    room = mmap.mmap(-1, block)
    room.write(os.urandom(block))
    with tempfile.NamedTemporaryFile(dir=directory) as file:
        fd = os.open(file.name, os.O_RDWR | os.O_DIRECT)
        os.posix_fallocate(fd, 0, total)
        rates = []
        for act in (os.pwritev, os.pwritev, os.preadv):  # blocks are new the first time
            start = time.perf_counter()
            for at in range(0, total, block):
                act(fd, [room], at)
            rates.append(total / (time.perf_counter() - start))
        os.close(fd)
    return rates[2], rates[1]


def disk(directory, total=2 << 30, block=4 << 20):
    """Five turns of each, medians."""
    with tempfile.NamedTemporaryFile(dir=directory) as file:
        fd = os.open(file.name, os.O_RDWR | os.O_DIRECT)
        os.posix_fallocate(fd, 0, total)

        def rate(act, threads):
            def some(first):
                room = mmap.mmap(-1, block)
                for at in range(first * block, total, threads * block):
                    act(fd, [room], at)
            all_threads = [threading.Thread(target=some, args=(i,)) for i in range(threads)]
            start = time.perf_counter()
            for thread in all_threads:
                thread.start()
            for thread in all_threads:
                thread.join()
            return total / (time.perf_counter() - start) / 1e6
        rate(os.pwritev, 1)  # blocks are new
        print("| threads | reads, MB/s | writes, MB/s |\n|---|---|---|")
        took = {(act, n): [] for n in (1, 2, 4, 8) for act in (os.preadv, os.pwritev)}
        for _ in range(5):
            for act, n in took:
                took[act, n].append(rate(act, n))
        for n in (1, 2, 4, 8):
            told = [f"{statistics.median(t):.0f} ({min(t):.0f} to {max(t):.0f})" for t in (took[os.preadv, n], took[os.pwritev, n])]
            print(f"| {n} | {told[0]} | {told[1]} |")
        os.close(fd)


def moved(pid):
    """What the disk read and wrote for a process."""
    lines = dict(line.split(": ") for line in pathlib.Path(f"/proc/{pid}/io").read_text().splitlines())
    return int(lines["read_bytes"]), int(lines["write_bytes"])


def steps_of(process, log):
    """(its record, what the disk read and wrote in it) for each step."""
    seen, before = 0, None
    while process.poll() is None:
        try:
            now = moved(process.pid)
        except (ProcessLookupError, PermissionError):
            break
        lines = log.read_text().splitlines() if log.exists() else []
        for line in lines[seen:]:
            yield json.loads(line), None if before is None else tuple(b - a for a, b in zip(before, now))
            before = now
        seen = len(lines)
        time.sleep(0.05)


def limit(weft, directory, steps="3"):
    read_rate, write_rate = disk_rates(directory)
    print(f"disk alone: reads {read_rate / 1e6:.0f} MB/s, writes {write_rate / 1e6:.0f} MB/s")
    with tempfile.TemporaryDirectory(prefix="weft-large-") as name:
        log, out = pathlib.Path(name) / "log.jsonl", pathlib.Path(name) / "out"
        command = [weft, "train", "gpt", *LARGE, "--offload-directory", directory, "--train-iters", steps, "--log-jsonl", str(log)]
        process = subprocess.Popen(command, stdout=out.open("w"), stderr=subprocess.STDOUT,
                                   preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_DATA, (LIMIT, LIMIT)))
        print("| step | seconds | disk read, GB | written, GB | seconds at the disk's rates |\n|---|---|---|---|---|")
        for record, bytes_moved in steps_of(process, log):
            disk = "| | |" if bytes_moved is None else (
                f"| {bytes_moved[0] / 1e9:.1f} | {bytes_moved[1] / 1e9:.1f} | {bytes_moved[0] / read_rate + bytes_moved[1] / write_rate:.1f} |")
            print(f"| {record['iteration']} | {record['milliseconds'] / 1000:.1f} {disk}", flush=True)
        if process.wait():
            sys.exit(out.read_text())
        print(*(line.strip() for line in out.read_text().splitlines() if "optimizer" in line or "forward-backward" in line), sep="\n")
        print(f"most memory: {resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / (1 << 20):.2f} GiB of {LIMIT >> 30}")


def small_seconds(weft, *more):
    """A step, the first two left out: files are new in them."""
    with tempfile.TemporaryDirectory(prefix="weft-large-") as name:
        log = pathlib.Path(name) / "log.jsonl"
        run = subprocess.run([weft, "train", "gpt", *SMALL, "--log-jsonl", str(log), *more], capture_output=True, text=True)
        if run.returncode:
            sys.exit(run.stderr)
        return statistics.median(json.loads(line)["milliseconds"] / 1000 for line in log.read_text().splitlines()[2:])


def beside(weft, directory, rounds="3"):
    files = ["--optimizer-cpu-offload", "--offload-directory", directory]
    ways = {"in memory": [], "in files": files, "in files, 32 windows here": files + ["--offload-buffers", "32"],
            "in files, weights too": files + ["--offload-weights"]}
    took = [{name: small_seconds(weft, *more) for name, more in ways.items()} for _ in range(int(rounds))]
    print(f"| states | seconds a step, median of {rounds} rounds | of those in memory (least to most) |\n|---|---|---|")
    for name in ways:
        shares = sorted(t[name] / t["in memory"] for t in took)
        print(f"| {name} | {statistics.median(t[name] for t in took):.2f} | {statistics.median(shares):.3f} ({shares[0]:.3f} to {shares[-1]:.3f}) |")


if __name__ == "__main__":
    {"limit": limit, "beside": beside, "disk": disk}[sys.argv[1]](*sys.argv[2:])
