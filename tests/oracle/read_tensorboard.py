"""Reads back with TensorBoard itself what weft's event writer wrote: read_tensorboard.py PATH/TO/tensorboard_sample."""
import math
import subprocess
import sys
import tempfile

from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

STEPS = range(1, 11)
CURVES = {
    "lm loss": [10.0 / s for s in STEPS],
    "learning-rate": [1e-4 * s for s in STEPS],
    "batch-size": [8.0] * 10,
    "loss-scale": [1.0] * 10,
    "world-size": [1.0] * 10,
    "grad-norm": [math.nan if s == 7 else 1.0 + s for s in STEPS],
}
EVERY_STEP = {"mem-allocated-bytes": 1 << 19, "forward-backward-time": 0.2, "iteration-time": 0.25, "throughput": 4.0}
AT_END = {"lm loss validation": 1.5, "lm loss validation ppl": math.exp(1.5)}


def same(found, wanted):
    return (math.isnan(found) and math.isnan(wanted)) or abs(found - wanted) <= 1e-6 * abs(wanted)


def check(events, tag, steps, values):
    found = events.Scalars(tag)
    assert [e.step for e in found] == list(steps), (tag, [e.step for e in found])
    assert all(same(e.value, v) for e, v in zip(found, values)), (tag, [e.value for e in found])


def main():
    with tempfile.TemporaryDirectory() as directory:
        subprocess.run([sys.argv[1], directory], check=True)
        events = EventAccumulator(directory).Reload()
        for tag, values in CURVES.items():
            check(events, tag, STEPS, values)
            check(events, tag + " vs samples", [8 * s for s in STEPS], values)
        for tag, value in EVERY_STEP.items():
            check(events, tag, STEPS, [value] * 10)
        for tag, value in AT_END.items():
            check(events, tag, [10], [value])
            check(events, tag + " vs samples", [80], [value])
        expected = {*CURVES, *EVERY_STEP, *AT_END}
        expected |= {tag + " vs samples" for tag in (*CURVES, *AT_END)}
        assert set(events.Tags()["scalars"]) == expected, events.Tags()["scalars"]
    print("tensorboard reads every curve back")


if __name__ == "__main__":
    main()
