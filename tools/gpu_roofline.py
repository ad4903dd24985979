#!/usr/bin/env python3
"""gpu_roofline.py BUILD [--write]: what the GPU's kernels would take at best for GPT-2 124M on an A100 and an H100: a prediction, by no GPU.

Runs the tests of BytesMoved in BUILD (with WEFT_GPU): they count the bytes that an operation moves on the emulated GPU, hold them against the least,
and say what the same operation moves and computes at 16384 tokens of hidden size 768. Time is the longer of bytes by the bandwidth and of operations by
the rate of tensor cores in bf16, as NVIDIA's data sheets have them. --write puts the table into bench/results.
"""
import datetime
import json
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
GPUS = {"A100 80 GB": (312e12, 2.039e12), "H100 SXM": (989e12, 3.35e12)}  # dense bf16 operations and bytes a second
HEAD = """# Times of the GPU's kernels at best, a prediction

By `tools/gpu_roofline.py BUILD --write`. **They are computed: no GPU was measured.** Bytes are what the emulated GPU counted at small shapes, as a multiple of the least
(`tests/backend/cuda_bytes_test.cpp`), carried over to 16384 tokens of GPT-2 124M in bf16 (Adam: of as many elements); operations are those of tensor
cores, the seen half of a causal mask. A time is the longer of both at the rates of the data sheets: {gpus}.
A kernel that is slower than that on a GPU wastes the difference.

| operation | MB moved | of the least | GFLOP | {names} | bound by |
|---|---|---|---|{bars}---|
"""


def recorded(build):
    """name -> its numbers, of every operation."""
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder) / "told.json"
        run = subprocess.run([build / "tests/backend/conformance_gpu_tests", "--gtest_filter=*BytesMoved*", f"--gtest_output=json:{out}"],
                             capture_output=True, text=True)
        if run.returncode != 0:
            sys.exit(run.stdout + run.stderr)
        tests = [test for suite in json.loads(out.read_text())["testsuites"] for test in suite["testsuite"]]
    return {test["name"].rpartition("/")[2]: {key: float(test[key]) for key in ("bytes", "share", "flops")} for test in tests}


def row(name, told):
    times = {gpu: (told["flops"] / flops, told["bytes"] / bandwidth) for gpu, (flops, bandwidth) in GPUS.items()}
    bound = {"operations" if a > b else "bytes" for a, b in times.values()}
    cells = [name, f"{told['bytes'] / 1e6:.1f}", f"{told['share']:.2f}", f"{told['flops'] / 1e9:.1f}" if told["flops"] else "",
             *(f"{max(both) * 1e6:.1f} us" for both in times.values()), " or ".join(sorted(bound))]
    return f"| {' | '.join(cells)} |\n"


def table(told):
    gpus = "; ".join(f"{name} {flops / 1e12:.0f} TFLOP/s, {bandwidth / 1e9:.0f} GB/s" for name, (flops, bandwidth) in GPUS.items())
    return HEAD.format(gpus=gpus, names=" | ".join(GPUS), bars="---|" * len(GPUS)) + "".join(row(*one) for one in told.items())


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    text = table(recorded(pathlib.Path(sys.argv[1]).resolve()))
    print(text, end="")
    if "--write" in sys.argv:
        (ROOT / f"bench/results/gpu_roofline_{datetime.date.today()}.md").write_text(text)


if __name__ == "__main__":
    main()
