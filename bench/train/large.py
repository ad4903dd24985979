#!/usr/bin/env python3
"""large.py limit WEFT DIRECTORY [STEPS] | large.py beside WEFT DIRECTORY [ROUNDS] | large.py step WEFT DIRECTORY SAMPLES [ROUNDS [BUFFERS]] | large.py disk DIRECTORY:
training whose states, and weights, lie in files of DIRECTORY.

limit: GPT-2 XL (1.56 billion parameters) on four ranks of one process that may hold 12 GiB (RLIMIT_DATA): ZeRO-3, bf16, sums of gradients in bf16,
states in files. Tells for each step how long it and its update took, what the disk read and wrote, and how long that would take at the
rates that the disk has alone, which are measured first. beside: GPT-2 124M with states in memory, in files with 3 and with 32 windows in
memory, and with weights in files too, one after the other in each round. step: GPT-2 124M in f32, so many samples of 256 tokens a step, states in memory
and in files that the kernel keeps nothing of: each 20 ms it is told to forget them, as on a machine without memory to spare. Tells a step's seconds, what
its disk read and wrote, how long that takes alone, one thread reading and another writing, and the step's share of the larger of its two limits. disk: what several threads get out of the disk at once, each with a call
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


STEP = """--num-layers 12 --hidden-size 768 --num-attention-heads 12 --seq-length 256 --max-position-embeddings 256 --vocab-size 50304 --attention-dropout 0
  --hidden-dropout 0 --lr 1e-4 --mock-data --data-order keyed --eval-iters 0 --log-interval 1 --threads 2 --train-iters 9""".split()


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


def both_seconds(directory, read, written, block=4 << 20):
    """How long a thread that reads so many bytes and one that writes so many take, at the same time and past the kernel's cache."""
    with tempfile.NamedTemporaryFile(dir=directory) as file:
        fd = os.open(file.name, os.O_RDWR | os.O_DIRECT)
        size = (max(read, written) + block - 1) // block * block  # calls past the cache begin at whole blocks
        os.posix_fallocate(fd, 0, 2 * size)

        def all_of(act, start, total):
            room = mmap.mmap(-1, block)
            room.write(os.urandom(block))
            for at in range(0, total // block * block, block):
                act(fd, [room], start + at)
        all_of(os.pwritev, 0, size)
        all_of(os.pwritev, size, size)
        threads = [threading.Thread(target=all_of, args=(os.preadv, 0, read)), threading.Thread(target=all_of, args=(os.pwritev, size, written))]
        start = time.perf_counter()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        took = time.perf_counter() - start
        os.close(fd)
        return took


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


def forget(pid, directory):
    """The kernel's copy of the files without a name that a process has open in a directory."""
    for link in pathlib.Path(f"/proc/{pid}/fd").iterdir():
        try:
            name = os.readlink(link)
            if name.startswith(directory) and name.endswith("(deleted)"):
                fd = os.open(link, os.O_RDONLY)
                os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
                os.close(fd)
        except OSError:
            pass  # it has just closed it


def forgetful(weft, directory, samples, more):
    """Of each step but the first three (states are new, and nothing is read): seconds, bytes read and written."""
    with tempfile.TemporaryDirectory(prefix="weft-large-") as name:
        log, out = pathlib.Path(name) / "log.jsonl", pathlib.Path(name) / "out"
        command = [weft, "train", "gpt", *STEP, "--micro-batch-size", samples, "--global-batch-size", samples, "--log-jsonl", str(log), *more]
        process = subprocess.Popen(command, stdout=out.open("w"), stderr=subprocess.STDOUT)
        over = threading.Event()

        def keep_forgetting():
            while not over.wait(0.02):
                try:
                    forget(process.pid, os.path.realpath(directory))
                except OSError:
                    return
        if more:
            threading.Thread(target=keep_forgetting).start()
        steps = [(record["milliseconds"] / 1000, bytes_moved or (0, 0)) for record, bytes_moved in steps_of(process, log)]
        over.set()
        if process.wait():
            sys.exit(out.read_text())
        return steps[3:-1]  # the last one makes its update, too


def step(weft, directory, samples, rounds="3", buffers="3"):
    print("| states in memory, s | in files | read, GB | written, GB | its disk alone, s | of the larger |\n|---|---|---|---|---|---|")
    shares = []
    for _ in range(int(rounds)):
        compute = statistics.median(s for s, _ in forgetful(weft, directory, samples, []))
        steps = forgetful(weft, directory, samples, ["--optimizer-cpu-offload", "--offload-directory", directory, "--offload-buffers", buffers])
        took = statistics.median(s for s, _ in steps)
        read, written = (int(statistics.mean(m[i] for _, m in steps)) for i in (0, 1))
        disk = both_seconds(directory, read, written)
        shares.append(took / max(compute, disk))
        print(f"| {compute:.2f} | {took:.2f} | {read / 1e9:.2f} | {written / 1e9:.2f} | {disk:.2f} | {shares[-1]:.2f} |", flush=True)
    print(f"median share of the larger: {statistics.median(shares):.3f}")


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
    {"limit": limit, "beside": beside, "step": step, "disk": disk}[sys.argv[1]](*sys.argv[2:])
