#!/usr/bin/env python3
"""Indices, samples and keyed order against megatron-core in turn: indices.py BENCH_DATA FOLDER [--runs N].

Needs numpy, torch and megatron-core 0.16.1. Makes the token files it needs in FOLDER (the .bin files have holes instead of tokens),
prints a table and checks that both sides left the same bytes in their caches."""
import argparse, filecmp, json, os, pathlib, shutil, statistics, subprocess, sys, time

import numpy

MEGATRON = r'''
import json, resource, sys, tempfile, time
t = time.time()
import torch
from megatron.core.datasets.blended_megatron_dataset_builder import BlendedMegatronDatasetBuilder
from megatron.core.datasets.gpt_dataset import GPTDataset, GPTDatasetConfig
from megatron.core.datasets.utils import get_blend_from_list
from megatron.core.tokenizers import MegatronTokenizer
sequence, samples, cache, *data = sys.argv[1:]
torch.distributed.init_process_group("gloo", init_method=f"file://{tempfile.mkdtemp()}/meeting", rank=0, world_size=1)
peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
before, imported = peak(), time.time() - t
config = GPTDatasetConfig(random_seed=1234, sequence_length=int(sequence), blend=get_blend_from_list(data), split="1,0,0",
    path_to_cache=cache, tokenizer=MegatronTokenizer.from_pretrained(metadata_path={"library": "null"}, vocab_size=65000),
    reset_position_ids=False, reset_attention_mask=False, eod_mask_loss=False, create_attention_mask=False, mid_level_dataset_surplus=0.005)
t = time.time()
train = BlendedMegatronDatasetBuilder(GPTDataset, [int(samples), 0, 0], lambda: True, config).build()[0]
seconds = time.time() - t
print(json.dumps({"seconds": seconds, "peak_mib": peak(), "grown_mib": peak() - before, "samples": len(train), "import": imported}))
'''


def make(prefix, documents, low, high):
    if prefix.with_suffix(".idx").exists():
        return
    lengths = numpy.random.default_rng(documents).integers(low, high + 1, documents, dtype=numpy.int32)
    pointers = numpy.zeros(documents, dtype=numpy.int64)
    numpy.cumsum(lengths[:-1], out=pointers[1:])
    with open(prefix.with_suffix(".idx"), "wb") as out:
        out.write(b"MMIDIDX\0\0" + (1).to_bytes(8, "little") + b"\x08")
        out.write(documents.to_bytes(8, "little") + (documents + 1).to_bytes(8, "little"))
        for array in (lengths, pointers * 2, numpy.arange(documents + 1, dtype=numpy.int64)):
            array.tofile(out)
    with open(prefix.with_suffix(".bin"), "wb") as out:
        out.truncate(int(lengths.sum(dtype=numpy.int64)) * 2)


def ask(command):
    start = time.time()
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(done.stderr[-3000:])
    return {**json.loads(done.stdout.strip().splitlines()[-1]), "process": time.time() - start}


def same(ours, theirs):
    names = sorted(p.name for p in theirs.iterdir())
    if names != sorted(p.name for p in ours.iterdir()):
        sys.exit(f"different names: {names} and {sorted(p.name for p in ours.iterdir())}")
    _, wrong, missing = filecmp.cmpfiles(ours, theirs, names, shallow=False)
    if wrong or missing:
        sys.exit(f"different bytes: {wrong + missing}")
    return len(names)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("bench"), parser.add_argument("folder", type=pathlib.Path), parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--cases", default="A,B,blend")
    args = parser.parse_args()
    args.folder.mkdir(parents=True, exist_ok=True)
    a, b = args.folder / "A", args.folder / "B"
    make(a, 5_000_000, 2000, 5000), make(b, 20_000_000, 50, 500)
    cases = {"A": (2048, [str(a)]), "B": (1024, [str(b)]), "blend": (2048, ["0.7", str(a), "0.3", str(b)])}
    for name in args.cases.split(","):
        sequence, data = cases[name]
        rows = {"weft": [], "megatron-core": [], "weft warm": [], "megatron-core warm": []}
        ours, theirs = args.folder / "cache_weft", args.folder / "cache_megatron"
        for _ in range(args.runs):
            for folder in (ours, theirs):
                shutil.rmtree(folder, ignore_errors=True)
            weft = [args.bench, "index", str(sequence), "10000000", str(ours), *data]
            megatron = [sys.executable, "-W", "ignore", "-c", MEGATRON, str(sequence), "10000000", str(theirs), *data]
            rows["weft"].append(ask(weft)), rows["megatron-core"].append(ask(megatron))
            rows["weft warm"].append(ask(weft)), rows["megatron-core warm"].append(ask(megatron))
        print(f"{name}: {same(ours, theirs)} cache files equal")
        for who, results in rows.items():
            print(f"  {who:20}" + "  ".join(f"{key} {statistics.median(r[key] for r in results):.4g}" for key in ("seconds", "process", "peak_mib", "grown_mib")), flush=True)
    print("keyed", ask([args.bench, "keyed", "2048", "1000000000", "none", str(a)]))


if __name__ == "__main__":
    main()
