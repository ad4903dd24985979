#!/usr/bin/env python3
"""Compares weft's samples and mappings of BERT and T5 with megatron-core's own, on random sentences: masked.py WEFT [--cases N] [--seed S].

Needs numpy, torch and megatron-core (`make oracle` installs them)."""
import json, shutil, sys, warnings

warnings.filterwarnings("ignore")
import numpy
import torch
from megatron.core.datasets.bert_dataset import BERTMaskedWordPieceDataset, BERTMaskedWordPieceDatasetConfig
from megatron.core.datasets.blended_megatron_dataset_builder import BlendedMegatronDatasetBuilder
from megatron.core.datasets.indexed_dataset import IndexedDatasetBuilder
from megatron.core.datasets.t5_dataset import T5MaskedWordPieceDataset, T5MaskedWordPieceDatasetConfig
from megatron.core.datasets.utils import get_blend_from_list

from data import drawn, equal_caches, weft

SPLITS = ("train", "valid", "test")
SENTINELS = 100


class Tokenizer:
    """A vocabulary of words and pieces; what --vocab-extra-ids adds stands behind it, as up to Megatron core 0.14."""

    def __init__(self, words, sentinels, identity):
        names = words + (["[BOS]", "[EOS]", *(f"<extra_id_{k}>" for k in range(sentinels))] if sentinels else [])
        self.unique_identifiers, self.vocab_size, self.inv_vocab = identity, len(names), dict(enumerate(names))
        self.pad, self.cls, self.sep, self.mask = (names.index(name) for name in ("[PAD]", "[CLS]", "[SEP]", "[MASK]"))
        self.bos, self.eos = (len(words), len(words) + 1) if sentinels else (self.cls, self.sep)
        self.eod = self.eos
        self.additional_special_tokens_ids = list(range(len(names) - sentinels, len(names)))


def write(prefix, rng, words, bert):
    """Documents of one sentence and of many, some of them too long for a sample, some longer than any is read."""
    builder = IndexedDatasetBuilder(prefix + ".bin", dtype=numpy.uint16)
    usual = rng.choice([3, 12, 40])
    for _ in range(rng.randint(12, 60)):
        lengths = [rng.choice([1, usual, rng.randint(1, 2 * usual)]) for _ in range(rng.choice([0, 1, 2, 3, 9, 20]))]
        if rng.random() < 0.1:
            lengths = [rng.choice([600, 513, 512])] + lengths[1:]
        builder.add_document(torch.tensor([rng.randrange(5, words) for _ in range(sum(lengths))]), lengths)
    for _ in range(10):  # no part is left without a sample
        builder.add_document(torch.tensor([rng.randrange(5, words) for _ in range(9)]), [3, 3, 3])
    builder.finalize(prefix + ".idx")


class Case:
    def __init__(self, folder, rng, number):
        self.rng, self.number, self.bert = rng, number, rng.random() < 0.5
        words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"] + [("##" if rng.random() < 0.4 else "") + f"w{k}" for k in range(rng.choice([20, 200]))]
        (folder / f"{number}_words").write_text("\n".join(words) + "\n")
        identity = {"class": "drawn", "case": number}
        (folder / f"{number}_identity.json").write_text(json.dumps(identity))
        self.tokenizer = Tokenizer(words, 0 if self.bert else SENTINELS, identity)
        prefixes = [str(folder / f"{number}_{k}") for k in range(rng.choice([1, 1, 2, 3]))]
        for prefix in prefixes:
            write(prefix, rng, len(words), self.bert)
        data = [word for p in prefixes for word in ([f"{rng.random() + 0.01:.3f}", p] if len(prefixes) > 1 else [p])]
        self.blend, self.split = get_blend_from_list(data), rng.choice(["8,1,1", "1/1/1", "60, 40"])
        self.sequence, self.batch, self.steps = rng.choice([16, 40, 128]), rng.choice([1, 2, 4]), rng.choice([1, 10, 120])
        self.seed = rng.choice([1, rng.randrange(1, 2**31 - 1), 2**31 - 2])  # one more overflows there
        self.probability, self.short = rng.choice([0.15, 0.15, 0.5, 0.02]), rng.choice([0.1, 0.0, 1.0, 0.4])
        self.head = rng.random() < 0.5
        self.caches = folder / f"{number}_ours", folder / f"{number}_theirs"
        self.flags = ["bert" if self.bert else "t5", "--data-path", *data, "--split", self.split, "--seed", str(self.seed), "--train-iters", str(self.steps),
                      "--micro-batch-size", "1", "--global-batch-size", str(self.batch), "--eval-iters", "2", "--eval-interval", "50", "--lr", "1e-3",
                      "--num-layers", "1", "--hidden-size", "8", "--num-attention-heads", "1", "--max-position-embeddings", "256",
                      "--tokenizer-type", "BertWordPieceLowerCase" if self.bert else "BertWordPieceCase", "--vocab-file", str(folder / f"{number}_words"), "--data-cache-path", str(self.caches[0]),
                      "--mask-prob", str(self.probability), "--short-seq-prob", str(self.short), "--data-cache-tokenizer", str(folder / f"{number}_identity.json")]
        if self.bert:
            self.flags += ["--seq-length", str(self.sequence)] + ([] if self.head else ["--bert-no-binary-head"])
        else:
            self.flags += ["--encoder-seq-length", str(self.sequence), "--decoder-seq-length", "256", "--vocab-extra-ids", str(SENTINELS)]

    def build(self, cache):
        common = dict(random_seed=self.seed, sequence_length=self.sequence, blend=self.blend, split=self.split, path_to_cache=str(cache), tokenizer=self.tokenizer,
                      masking_probability=self.probability, short_sequence_probability=self.short, masking_do_full_word=True,
                      masking_do_permutation=False, masking_use_longer_ngrams=False)
        if self.bert:
            config = BERTMaskedWordPieceDatasetConfig(**common, masking_max_ngram=3, masking_use_geometric_distribution=False, classification_head=self.head)
        else:
            config = T5MaskedWordPieceDatasetConfig(**common, masking_max_ngram=10, masking_use_geometric_distribution=True, sequence_length_decoder=256)
        sizes = [self.steps * self.batch, (self.steps // 50 + 1) * 2 * self.batch, 2 * self.batch]
        return BlendedMegatronDatasetBuilder(BERTMaskedWordPieceDataset if self.bert else T5MaskedWordPieceDataset, sizes, lambda: True, config).build()


def different(case, ours, item):
    pairs = [("labels", "labels"), ("loss_mask", "loss_mask"), ("truncated", "truncated")]
    if case.bert:
        pairs += [("tokens", "text"), ("token_types", "types"), ("encoder_mask", "padding_mask"), ("sentence_order", "is_random")]
    else:
        pairs += [("tokens", "text_dec"), ("encoder_tokens", "text_enc"), ("encoder_mask", "enc_mask"), ("decoder_mask", "dec_mask")]
    for field, key in pairs:
        theirs = numpy.asarray(item[key]).reshape(-1).tolist()
        if ours[field] != theirs:
            return f"{field}\nours   {ours[field]}\ntheirs {theirs}"
    return None


def compare(binary, folder, rng, number):
    case = Case(folder, rng, number)
    theirs = case.build(case.caches[1])
    if rng.random() < 0.3:
        shutil.copytree(case.caches[1], case.caches[0])
    compared = 0
    for name, dataset in zip(SPLITS, theirs):
        if dataset is None:
            continue
        count = min(len(dataset), 12)
        for i, ours in enumerate(weft(binary, case.flags, name, count)):
            if wrong := different(case, ours, dataset[i]):
                sys.exit(f"case {number}: {name} {i} differs in {wrong}\nflags  {' '.join(case.flags)}")
            compared += 1
    return compared, equal_caches(number, case.caches, case.flags)


def main():
    done = drawn(compare)
    print(f"{len(done)} cases: {sum(d[0] for d in done)} samples equal, {sum(d[1] for d in done)} cache files equal to the byte")


if __name__ == "__main__":
    main()
