#!/usr/bin/env python3
"""As data.py, of what users bring beside the usual: data_odd.py WEFT [--cases N] [--seed S]. All types of tokens, empty documents and
sequences, documents of several sequences, odd splits, many epochs, samples of one token, padding, paths for each split by flags and by files,
weights of any size, several and whole validation sets, and caches that one program wrote and the other reads.

Needs numpy, torch and megatron-core (`make oracle` installs them)."""
import json, shutil, sys, warnings

warnings.filterwarnings("ignore")
import numpy
import torch
from megatron.core.datasets.blended_megatron_dataset_builder import BlendedMegatronDatasetBuilder
from megatron.core.datasets.gpt_dataset import GPTDataset, GPTDatasetConfig
from megatron.core.datasets.indexed_dataset import IndexedDatasetBuilder
from megatron.core.datasets.utils import get_blend_from_list

from data import drawn, equal_caches, weft

SPLITS = ("train", "valid", "test")
TYPES = (numpy.uint8, numpy.int8, numpy.int16, numpy.int32, numpy.int64, numpy.uint16)  # of the two others NumPy makes no ids
WORDS = 100
END = WORDS - 1


class Tokenizer:
    def __init__(self, identity, pad):
        self.unique_identifiers, self.vocab_size, self.eod, self.eos, self.pad = identity, WORDS, END, END, pad


def write(prefix, rng):
    """Documents of none, one or several sequences, some of no token."""
    builder = IndexedDatasetBuilder(prefix + ".bin", dtype=rng.choice(TYPES))
    longest = rng.choice([1, 5, 60, 300])
    for _ in range(rng.randint(5, 80)):
        lengths = [rng.choice([0, 1, rng.randint(0, longest)]) for _ in range(rng.choice([0, 1, 1, 1, 3]))]
        builder.add_document(torch.tensor([rng.randrange(WORDS) for _ in range(sum(lengths))]), lengths)
    builder.add_document(torch.tensor([rng.randrange(WORDS) for _ in range(40)]), [40])
    builder.finalize(prefix + ".idx")


def weight(rng):
    return rng.choice([str(rng.randint(1, 50)), f"{rng.random() + 0.01:.4f}", f"{rng.random() + 0.1:.3e}", ".5", "3."])


def mixture(prefixes, rng, weighted):
    """The words of one blend; an even number of bare prefixes is a blend of its own."""
    return [word for p in prefixes for word in ([weight(rng), p] if weighted else [p])]


class Case:
    def __init__(self, folder, rng, number):
        self.rng, self.number = rng, number
        self.prefixes = [str(folder / f"{number}_{k}") for k in range(rng.choice([1, 1, 2, 3, 5, 9]))]
        for prefix in self.prefixes:
            write(prefix, rng)
        self.sequence, self.batch, self.steps = rng.choice([1, 2, 7, 16, 33]), rng.choice([1, 2, 4]), rng.choice([1, 3, 20, 150])
        self.seed = rng.randrange(1, 2**31)
        self.caches = folder / f"{number}_ours", folder / f"{number}_theirs"
        self.identity = {"class": "drawn", "case": str(number), "path": "naïve \"words\""}
        (folder / f"{number}_identity.json").write_text(json.dumps(self.identity))
        self.pad = rng.choice([-1, -1, 0, 7, END])
        self.partial = rng.random() < 0.5
        self.whole = rng.random() < 0.3
        self.several = False
        self.reset = [rng.random() < 0.5 for _ in range(3)]
        self.flags = ["--seq-length", str(self.sequence), "--seed", str(self.seed), "--train-iters", str(self.steps), "--micro-batch-size", "1",
                      "--global-batch-size", str(self.batch), "--eval-iters", "2", "--eval-interval", "50", "--lr", "1e-3", "--num-layers", "1",
                      "--hidden-size", "8", "--num-attention-heads", "1", "--max-position-embeddings", str(self.sequence), "--vocab-size", str(WORDS),
                      "--tokenizer-type", "NullTokenizer", "--data-cache-path", str(self.caches[0]), "--null-tokenizer-pad-id", str(self.pad),
                      "--data-cache-tokenizer", str(folder / f"{number}_identity.json")]
        names = ("--reset-position-ids", "--reset-attention-mask", "--eod-mask-loss")
        self.flags += [flag for flag, on in zip(names, self.reset) if on]
        self.flags += ["--keep-last-partial-validation-sequence"] * self.partial + ["--full-validation"] * self.whole
        self.blends(folder)

    def blends(self, folder):
        rng = self.rng
        self.split, self.blend, self.per_split = None, None, None
        weighted = rng.random() < 0.6 and not self.whole
        form = rng.choice(["path", "file", "flags", "json"])
        if form in ("path", "file"):
            self.split = rng.choice(["969, 30, 1", "1/1/1", "0.5,0.25,0.25", "33.3,33.3,33.4", "7, 2, 1", "80,20", "100"])
            words = mixture(self.prefixes, rng, weighted)
            self.blend = get_blend_from_list(words)
            if form == "path":
                self.flags += ["--data-path", *words]
            else:
                (folder / f"{self.number}_args").write_text(f"\n{'  '.join(words)}\n")
                self.flags += ["--data-args-path", str(folder / f"{self.number}_args")]
            self.flags += ["--split", self.split]
            return
        lists = [mixture(rng.sample(self.prefixes, rng.randint(1, len(self.prefixes))), rng, weighted) for _ in SPLITS]
        lists[1:] = [None if rng.random() < 0.2 else one for one in lists[1:]]
        if form == "flags":
            self.flags += [word for name, one in zip(SPLITS, lists) if one for word in (f"--{name}-data-path", *one)]
        else:
            path = folder / f"{self.number}_lists.json"
            path.write_text(json.dumps({name: " ".join(one) if one and rng.random() < 0.5 else one for name, one in zip(SPLITS, lists)}))
            self.flags += ["--per-split-data-args-path", str(path)]
        self.per_split = [get_blend_from_list(one) for one in lists]
        self.several = self.per_split[1] is not None and rng.random() < 0.4
        self.flags += ["--multiple-validation-sets"] * self.several

    def build(self, cache):
        config = GPTDatasetConfig(random_seed=self.seed, sequence_length=self.sequence, blend=self.blend, blend_per_split=self.per_split, split=self.split,
                                  path_to_cache=str(cache), tokenizer=Tokenizer(self.identity, self.pad), reset_position_ids=self.reset[0],
                                  reset_attention_mask=self.reset[1], eod_mask_loss=self.reset[2], create_attention_mask=True,
                                  mid_level_dataset_surplus=0.005, drop_last_partial_validation_sequence=not self.partial,
                                  multiple_validation_sets=self.several, full_validation=self.whole)
        evaluations = None if self.whole else (self.steps // 50 + 1) * 2 * self.batch
        sizes = [self.steps * self.batch, evaluations, 2 * self.batch]
        return BlendedMegatronDatasetBuilder(GPTDataset, sizes, lambda: True, config).build()


def possible(case):
    """What Megatron would loop or fail on, weft refuses: parts without enough tokens for a sample."""
    from megatron.core.datasets.indexed_dataset import IndexedDataset
    from megatron.core.datasets.blended_megatron_dataset_config import convert_split_vector_to_split_matrix, parse_and_normalize_split
    matrix = convert_split_vector_to_split_matrix(parse_and_normalize_split(case.split)) if case.split else [(0, 1.0)] * 3
    for k, portion in enumerate(matrix):
        blend = case.blend if case.split else case.per_split[k]
        if portion is None or blend is None:
            continue
        for prefix in blend[0]:
            held = IndexedDataset(prefix)  # its arrays die with it
            lengths = held.sequence_lengths
            begin, end = (int(round(b * float(len(lengths)))) for b in portion)
            if lengths[begin:end].sum() < case.sequence + 1:
                return False
    return True


def different(case, ours, item):
    for field, key in (("tokens", "tokens"), ("labels", "labels"), ("positions", "position_ids"), ("loss_mask", "loss_mask")):
        if ours[field] != [int(x) for x in item[key]]:
            return f"{field}\nours   {ours[field]}\ntheirs {item[key].tolist()}"
    segments = torch.tensor(ours.get("segments", [0] * case.sequence))
    allowed = torch.tril(segments[:, None] == segments[None, :])
    return None if torch.equal(~allowed, item["attention_mask"][0]) else "attention"


def compare(binary, folder, rng, number):
    case = Case(folder, rng, number)
    while not possible(case):
        case = Case(folder, rng, number)
    try:
        theirs = case.build(case.caches[1])
    except AssertionError:
        if not case.partial:
            raise
        return 0, 0  # what is left for a last, partial sample lies behind an empty sequence, which Megatron does not count with
    from_theirs = rng.random() < 0.3
    if from_theirs:
        shutil.copytree(case.caches[1], case.caches[0])
    compared = 0
    for name, dataset in zip(SPLITS, theirs):
        if dataset is None:
            continue
        dataset = dataset[0] if isinstance(dataset, list) else dataset
        picked = sorted({0, len(dataset) - 1, *(rng.randrange(len(dataset)) for _ in range(3))})
        for i in picked:
            # What the first sample leaves in the shared mask is theirs alone.
            for one in getattr(dataset, "datasets", [dataset]):
                one.masks_and_position_ids_are_cached = False
            item = dataset[i]
            flags = [*case.flags, "--index", str(i)]
            if wrong := different(case, weft(binary, flags, name, 1)[0], item):
                sys.exit(f"case {number}: {name} {i} differs in {wrong}\nflags  {' '.join(flags)}")
            compared += 1
    equal = equal_caches(number, case.caches, case.flags)
    before = {p: p.stat().st_mtime_ns for p in case.caches[0].iterdir()}
    case.build(case.caches[0])
    if before != {p: p.stat().st_mtime_ns for p in case.caches[0].iterdir()}:
        sys.exit(f"case {number}: Megatron does not take the cache for its own")
    return compared, equal


def main():
    done = drawn(compare)
    print(f"{len(done)} cases: {sum(d[0] for d in done)} samples equal, {sum(d[1] for d in done)} cache files equal to the byte and read by both")


if __name__ == "__main__":
    main()
