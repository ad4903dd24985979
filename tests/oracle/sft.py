#!/usr/bin/env python3
"""Compares weft's samples of conversations with those of Megatron-LM's own SFTDataset and SFTTokenizer, on random conversations and a tokenizer
trained on the spot: sft.py WEFT --megatron CHECKOUT [--cases N] [--seed S].

Needs a checkout of Megatron-LM, whose wheels come without the data set, beside torch, transformers, tokenizers and datasets (`make oracle
MEGATRON=CHECKOUT` installs them)."""
import argparse, importlib.metadata, importlib.util, json, os, pathlib, random, subprocess, sys, tempfile, warnings

warnings.filterwarnings("ignore")
FORMATS = ("nemotron-h-aligned", "nemotron-nano-v2", "identity", "default")
MARKS = ["<unk>", "<s>", "</s>", "<SPECIAL_10>", "<SPECIAL_11>", "<SPECIAL_12>", "<SPECIAL_233>", "<|im_start|>", "<|im_end|>"]
CHATML = ("{% for m in messages %}{{ '<|im_start|>' + m['role'] + '\\n' + m['content'] + '<|im_end|>\\n' }}{% endfor %}"
          "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}")
WORDS = "the of and to in is that for it as was with be by on not he his but at are this have from or had an they which one you were".split()
ODD = ["naïve", "北京", "🙂", "x=1;\n  y=2", "/think", "/no_think", "  ", "3.14159", "<b>", "\"quoted\"", "don't", "\ttab", "Ω≈ç"]


def sentence(rng, least=1):
    return " ".join(rng.choice(ODD if rng.random() < 0.15 else WORDS) for _ in range(rng.randint(least, 14)))


def answer(rng):
    """Megatron cuts off what surrounds an answer, and cannot do without a word."""
    return f"{rng.choice(WORDS)} {sentence(rng)}"


def conversation(rng, named, with_system):
    messages = [{"role": "system", "content": sentence(rng) if rng.random() < 0.8 else ""}] if with_system else []
    begin = "<s>" if named == "identity" else ""  # without which words of two messages become one
    for _ in range(rng.randint(1, 4)):
        messages.append({"role": "user", "content": begin + sentence(rng)})
        if named != "nemotron-h-aligned" and rng.random() < 0.15:
            messages.append({"role": "tool", "content": begin + sentence(rng)})
        messages.append({"role": "assistant", "content": begin + answer(rng)})
    return messages


def write(path, rng, named):
    with open(path, "w", encoding="utf-8") as out:
        for _ in range(rng.randint(8, 40)):
            first = conversation(rng, named, rng.random() < 0.7)
            packed = [m for _ in range(rng.choice([0, 0, 1, 2])) for m in conversation(rng, named, True)]
            out.write(json.dumps({"messages": first + packed}, ensure_ascii=rng.random() < 0.5) + "\n")


def make_tokenizer(folder, rng):
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer, tokenizer.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    trainer = trainers.BpeTrainer(vocab_size=rng.randint(300, 600), special_tokens=MARKS, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False)
    tokenizer.train_from_iterator([sentence(rng, 8) + "\nSystem\nUser\nAssistant\nassistant\n" for _ in range(200)], trainer)
    if rng.random() < 0.5:  # what is put around a text, a template writes itself
        tokenizer.post_processor = processors.TemplateProcessing(single="<s> $A </s>", special_tokens=[("<s>", 1), ("</s>", 2)])
    folder.mkdir()
    tokenizer.save(str(folder / "tokenizer.json"))
    config = {"tokenizer_class": "PreTrainedTokenizerFast", "unk_token": "<unk>", "bos_token": "<s>", "eos_token": "<|im_end|>"}
    if rng.random() < 0.5:
        config["pad_token"] = "<unk>"
    (folder / "tokenizer_config.json").write_text(json.dumps(config))
    (folder / "chat_template.jinja").write_text(CHATML)


def ours(binary, flags, split, count):
    command = [binary, "data", "sample", "--of", split, "--index", "0", "--count", str(count), "--json", *flags]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}\n{done.stderr}")
    return [json.loads(line) for line in done.stdout.splitlines()]


def documents_of(item, length):
    """Of each token the number of its conversation, from where they begin and end."""
    ends = [int(x) for x in item["cu_seqlens"]]
    ends = ends[1:ends.index(length, 1) + 1]
    return [number for number, (a, b) in enumerate(zip([0, *ends], ends)) for _ in range(b - a)]


def different(sample, item, length):
    mask = [int(x) for x in item["loss_mask"]]
    theirs = {"tokens": item["tokens"].tolist(), "positions": item["position_ids"].tolist(), "loss_mask": mask,
              "segments": documents_of(item, length), "labels": [int(x) if m else None for x, m in zip(item["labels"], mask)]}
    labels = [x if m else None for x, m in zip(sample["labels"], sample["loss_mask"])]
    for field, value in theirs.items():
        mine = labels if field == "labels" else sample[field]
        if mine != value:
            return f"{field}\nours   {mine}\ntheirs {value}"
    return None


def compare(binary, megatron, folder, rng, number):
    make_tokenizer(folder / f"{number}_words", rng)
    named = FORMATS[number % len(FORMATS)]
    tokenizer = megatron["tokenizer"].from_pretrained(tokenizer_path=str(folder / f"{number}_words"), metadata_path={"library": "sft"}, prompt_format=named)
    paths = [str(folder / f"{number}_{k}.jsonl") for k in range(rng.randint(1, 3))]
    for path in paths:
        write(path, rng, named)
    length, batch, steps, seed = rng.choice([16, 40, 64, 128, 256]), rng.choice([1, 2, 4]), rng.randint(1, 60), rng.randrange(1, 2**31)
    split = rng.choice(["8,1,1", "70,20,10", "1,1,1"])
    data = [word for p in paths for word in ([f"{rng.random() + 0.05:.3f}", p] if len(paths) > 1 else [p])]
    flags = ["--sft", "--sft-tokenizer-prompt-format", named, "--tokenizer-type", "SFTTokenizer", "--tokenizer-model", str(folder / f"{number}_words"),
             "--data-path", *data, "--split", split, "--seq-length", str(length), "--seed", str(seed), "--train-iters", str(steps),
             "--micro-batch-size", "1", "--global-batch-size", str(batch), "--eval-iters", "2", "--eval-interval", "50", "--lr", "1e-3",
             "--num-layers", "1", "--hidden-size", "8", "--num-attention-heads", "1", "--max-position-embeddings", str(length)]
    config = megatron["config"](random_seed=seed, sequence_length=length, blend=megatron["blend"](data), split=split, tokenizer=tokenizer,
                                path_to_cache=str(folder / f"{number}_cache"), reset_position_ids=False, reset_attention_mask=False, eod_mask_loss=False,
                                create_attention_mask=False, mid_level_dataset_surplus=0.005, context_parallel_size=1)
    evaluations = (steps // 50 + 1) * 2 * batch
    theirs = megatron["builder"](megatron["dataset"], [steps * batch, evaluations, 2 * batch], lambda: True, config).build()
    compared = 0
    for name, dataset in zip(("train", "valid", "test"), theirs):
        for i, sample in enumerate(ours(binary, flags, name, min(len(dataset), 40))):
            if wrong := different(sample, dataset[i], length):
                sys.exit(f"case {number}: {name} {i} differs in {wrong}\nflags  {' '.join(flags)}")
            compared += 1
    return compared


def loaded(name, path):
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def megatron_from(checkout):
    sys.path.insert(0, str(checkout))
    # What is compiled comes from the wheel.
    compiled = next(pathlib.Path(importlib.metadata.distribution("megatron-core").locate_file("megatron/core/datasets")).glob("helpers_cpp*"))
    sys.modules["megatron.core.datasets.helpers_cpp"] = loaded("helpers_cpp", compiled)
    from megatron.core.datasets.blended_megatron_dataset_builder import BlendedMegatronDatasetBuilder
    from megatron.core.datasets.gpt_dataset import GPTDatasetConfig
    from megatron.core.datasets.utils import get_blend_from_list
    from megatron.core.tokenizers import MegatronTokenizer
    # By its file: the package around it wants what no oracle needs.
    data = loaded("sft_dataset", checkout / "megatron/training/datasets/sft_dataset.py")
    return {"builder": BlendedMegatronDatasetBuilder, "config": GPTDatasetConfig, "blend": get_blend_from_list, "tokenizer": MegatronTokenizer,
            "dataset": data.SFTDataset}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("weft"), parser.add_argument("--megatron", type=pathlib.Path, required=True)
    parser.add_argument("--cases", type=int, default=20), parser.add_argument("--seed", type=int, default=None)
    args = parser.parse_args()
    seed = random.randrange(2**32) if args.seed is None else args.seed
    print(f"seed {seed}")
    with tempfile.TemporaryDirectory() as folder:
        os.environ["HF_HOME"], os.environ["HF_HUB_OFFLINE"] = folder, "1"
        import torch
        import datasets
        datasets.disable_progress_bars()
        torch.distributed.init_process_group("gloo", init_method=f"file://{folder}/meeting", rank=0, world_size=1)
        megatron = megatron_from(args.megatron)
        samples = sum(compare(args.weft, megatron, pathlib.Path(folder), random.Random(seed + n), n) for n in range(args.cases))
    print(f"{args.cases} cases: {samples} samples equal")


if __name__ == "__main__":
    main()
