#!/usr/bin/env python3
"""published_test.py --weft PROGRAM [JOB...]: nine published job files are read whole, rendered as every kind, and run small with their ranks as threads."""
import argparse
import pathlib
import tempfile
import time

import published_jobs
from launch_test import expect, run


def is_read_whole(weft, name, folder):
    """Not made small: every setting of both files counts."""
    more, _ = published_jobs.deepspeed_file(name)
    model, pods, ranks, flag, *_ = published_jobs.JOBS[name]
    stage = published_jobs.MODELS[model][-1]
    words = [f"--deepspeed_config={folder / more}" if word.startswith("--deepspeed_config") else word for word in published_jobs.flags(name)]
    words = [word for word in words if not word.startswith(("--data-path", "--vocab-file", "--merge-file"))]  # which nobody has here
    said = run([weft, "train", "gpt", *words, "--mock-data", "--vocab-size", 50257, "--ranks", pods * ranks, "--dry-run", "--no-memory-check"])
    expect(said.returncode == 0, f"{name} is read", said)
    expect((f"no effect here: --zero-stage {flag} " in said.stdout + said.stderr) == (flag != stage), f"{name}: the file's stage counts, and that is said where it is another", said)
    expect(f"parallel.zero {stage}" in " ".join(said.stdout.split()), f"{name}: stage {stage} counts", said)


def is_rendered(weft, name, path, more):
    for kind in ("job", "jobset", "trainjob", "mpijob"):
        said = run([weft, "job", "render", "--kind", kind, "--image", "weft:1", "--file", path.parent / more, path])
        expect(said.returncode == 0, f"{name} is rendered as {kind}", said)
        expect(f"--deepspeed_config=/etc/weft/files/{more}" in said.stdout, f"{name}: its file is named where it lies", said)


def runs_small(weft, name, path, folder):
    said = run([weft, "job", "run", "--small", "--runs", folder / "runs", path])
    expect(said.returncode == 0, f"{name} runs", said)
    model, pods, ranks, _, pp, tp = published_jobs.JOBS[name]
    stage = published_jobs.MODELS[model][-1]
    told = said.stdout + said.stderr
    expect("iteration        3/       3" in told, f"{name} makes three steps", said)
    expect(f"--nproc-per-node {pods * ranks} " in said.stderr, f"{name} has all its ranks", said)
    small = (folder / "runs" / f"gpt-{model}" / f"gpt-{model}-ds-config.json").read_text()
    expect(f'"stage": {stage}' in small and "train_batch_size" not in small, f"{name} keeps its stage and not its batch", said)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--weft", required=True)
    parser.add_argument("jobs", nargs="*")
    args = parser.parse_args()
    for name in args.jobs or published_jobs.JOBS:
        with tempfile.TemporaryDirectory(prefix="weft-published-") as inside:
            began, folder = time.monotonic(), pathlib.Path(inside)
            path = published_jobs.write(name, folder)
            is_read_whole(args.weft, name, folder)
            is_rendered(args.weft, name, path, published_jobs.deepspeed_file(name)[0])
            runs_small(args.weft, name, path, folder)
        print(f"{name}: {time.monotonic() - began:.1f} s")


if __name__ == "__main__":
    main()
