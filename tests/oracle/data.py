#!/usr/bin/env python3
"""Compares weft's samples and cached indices with megatron-core's own, on random documents: data.py WEFT [--cases N] [--seed S].

Needs numpy, torch and megatron-core (`make oracle` installs them)."""
import filecmp, json, pathlib, random, subprocess, sys, tempfile, warnings

warnings.filterwarnings("ignore")
import numpy
import torch
from megatron.core.datasets.blended_megatron_dataset_builder import BlendedMegatronDatasetBuilder
from megatron.core.datasets.gpt_dataset import GPTDataset, GPTDatasetConfig
from megatron.core.datasets.indexed_dataset import IndexedDatasetBuilder
from megatron.core.datasets.utils import get_blend_from_list

import recipe


class Tokenizer:
    """As megatron-core's newest tokenizers describe themselves; the vocabulary is 1000 words, the last one ends documents."""

    def __init__(self, identity):
        self.unique_identifiers, self.vocab_size, self.eod, self.pad = identity, 1000, 999, -1


def write(prefix, rng):
    builder = IndexedDatasetBuilder(prefix + ".bin", dtype=numpy.uint16)
    for _ in range(rng.randint(20, 200)):
        tokens = [rng.randrange(999) for _ in range(rng.randint(0, 60))] + [999]
        builder.add_document(torch.tensor(tokens), [len(tokens)])
    builder.finalize(prefix + ".idx")


def weft(binary, flags, split, count):
    command = [binary, "data", "sample", "--of", split, "--index", "0", "--count", str(count), "--json", *flags]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}\n{done.stderr}")
    return [json.loads(line) for line in done.stdout.splitlines()]


def compare(binary, folder, rng, number):
    prefixes = [str(folder / f"{number}_{k}") for k in range(rng.randint(1, 3))]
    for prefix in prefixes:
        write(prefix, rng)
    sequence, batch, steps, seed = rng.randint(4, 64), rng.choice([1, 2, 4]), rng.randint(1, 200), rng.randrange(1, 2**31)
    split, reset = rng.choice(["8,1,1", "70,20,10", "1,1,1"]), [rng.random() < 0.5 for _ in range(3)]
    weighted = len(prefixes) > 1 and rng.random() < 0.7
    data = [word for p in prefixes for word in ([f"{rng.random() + 0.01:.3f}", p] if weighted else [p])]
    if not weighted and len(data) % 2 == 0:
        data = data[:1]  # an even list of prefixes is read in pairs
    caches = folder / f"{number}_ours", folder / f"{number}_theirs"
    flags = ["--data-path", *data, "--split", split, "--seq-length", str(sequence), "--seed", str(seed), "--train-iters", str(steps),
             "--micro-batch-size", "1", "--global-batch-size", str(batch), "--eval-iters", "2", "--eval-interval", "50", "--lr", "1e-3",
             "--num-layers", "1", "--hidden-size", "8", "--num-attention-heads", "1", "--max-position-embeddings", str(sequence),
             "--vocab-size", "1000", "--tokenizer-type", "NullTokenizer", "--data-cache-path", str(caches[0])]
    flags += [flag for flag, on in zip(("--reset-position-ids", "--reset-attention-mask", "--eod-mask-loss"), reset) if on]
    identity = {"class": "megatron.core.tokenizers.text.text_tokenizer.MegatronTokenizerText", "tokenizer_path": None, "vocab_size": "1000"}
    config = GPTDatasetConfig(random_seed=seed, sequence_length=sequence, blend=get_blend_from_list(data), split=split, path_to_cache=str(caches[1]),
                              tokenizer=Tokenizer(identity), reset_position_ids=reset[0], reset_attention_mask=reset[1], eod_mask_loss=reset[2],
                              create_attention_mask=True, mid_level_dataset_surplus=0.005)
    evaluations = (steps // 50 + 1) * 2 * batch
    theirs = BlendedMegatronDatasetBuilder(GPTDataset, [steps * batch, evaluations, 2 * batch], lambda: True, config).build()
    for name, dataset in zip(("train", "valid", "test"), theirs):
        count = min(len(dataset), 25)
        for i, ours in enumerate(weft(binary, flags, name, count)):
            item = dataset[i]
            for field, key in (("tokens", "tokens"), ("labels", "labels"), ("positions", "position_ids"), ("loss_mask", "loss_mask")):
                if ours[field] != [int(x) for x in item[key]]:
                    sys.exit(f"case {number}: {field} of {name} {i} differ\nours   {ours[field]}\ntheirs {item[key].tolist()}\nflags  {' '.join(flags)}")
            segments = torch.tensor(ours.get("segments", [0] * sequence))
            allowed = torch.tril(segments[:, None] == segments[None, :])
            if not torch.equal(~allowed, item["attention_mask"][0]):
                sys.exit(f"case {number}: attention of {name} {i} differs")
    return equal_caches(number, caches, flags)


def equal_caches(case, caches, flags):
    """How many files two folders have, all of them equal to the byte; else the end, and why."""
    ours, theirs = (sorted(p.name for p in folder.iterdir()) for folder in caches)
    equal, wrong, missing = filecmp.cmpfiles(*caches, theirs, shallow=False)
    if wrong or missing or ours != theirs:
        sys.exit(f"case {case}: caches differ: {wrong} missing {missing} only ours {sorted(set(ours) - set(theirs))}\nflags  {' '.join(flags)}")
    return len(equal)


def drawn(compare, cases=20):
    """What compare(weft, folder, draws, number) says of each case that the command line asks for."""
    args = recipe.words(None, cases).parse_args()
    print(f"seed {args.seed}")
    with tempfile.TemporaryDirectory() as folder:
        torch.distributed.init_process_group("gloo", init_method=f"file://{folder}/meeting", rank=0, world_size=1)
        return [compare(args.weft, pathlib.Path(folder), random.Random(args.seed + n), n) for n in range(args.cases)]


def main():
    files = drawn(compare)
    print(f"{len(files)} cases: samples equal, {sum(files)} cache files equal to the byte")


if __name__ == "__main__":
    main()
