#!/usr/bin/env python3
"""save_stall.py WEFT [flags]: what a checkpoint costs a run, in steps' time. One run saves in the foreground, one in the background; each is compared with its own steps far from a save."""
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile

INTERVAL, STEPS = 100, 320
MODEL = """--num-layers 4 --hidden-size 128 --num-attention-heads 4 --seq-length 64 --micro-batch-size 4 --global-batch-size 4
  --vocab-size 2000 --lr 1e-3 --mock-data --data-order keyed --eval-iters 0 --log-interval 1""".split()


def milliseconds(weft, how, extra):
    """Of every step, and the bytes of a checkpoint."""
    with tempfile.TemporaryDirectory(prefix="weft-stall-") as name:
        folder = pathlib.Path(name)
        subprocess.run([weft, "train", "gpt", *MODEL, "--train-iters", str(STEPS), "--save", name + "/saved", "--save-interval",
                        str(INTERVAL), "--log-jsonl", name + "/log.jsonl", *how, *extra], check=True, capture_output=True)
        size = sum(path.stat().st_size for path in folder.glob("saved/step_00000100/*"))
        return [json.loads(line)["milliseconds"] for line in (folder / "log.jsonl").read_text().splitlines()], size


def main():
    weft, *extra = sys.argv[1:]
    print("| saving | median step, ms | steps beside a save, ms more in all | of an interval of 100 steps | MiB saved |")
    print("|---|---|---|---|---|")
    for name, how in ("in the foreground", []), ("in the background", ["--async-save"]):
        steps, size = milliseconds(weft, how, extra)
        # Half an interval behind each save is touched by it at most; the other half is what a step takes.
        far = [steps[at + i] for at in (100, 200) for i in range(50, 100)]
        median = statistics.median(far)
        # Steps count from 1: what is saved after step 100 delays what stands at index 100.
        stalls = [sum(steps[at:at + 50]) - 50 * median for at in (100, 200)]
        usual = [sum(far[i:i + 50]) - 50 * median for i in (0, 50)]
        mean = statistics.mean(stalls) - statistics.mean(usual)
        print(f"| {name} | {median:.1f} | {mean:.0f} ({', '.join(f'{s:.0f}' for s in stalls)}; without a save "
              f"{', '.join(f'{s:.0f}' for s in usual)}) | {mean / median:.2f} % | {size / 2**20:.0f} |")


if __name__ == "__main__":
    main()
