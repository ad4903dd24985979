#!/usr/bin/env python3
"""Samples by difficulty against DeepSpeed itself: difficulty.py WEFT. Its DataAnalyzer and weft make the same index of one data set, byte
for byte, and its DeepSpeedDataSampler and weft draw the same samples, step by step, for one rank and for four. `--write FOLDER` writes the
index and the steps that the tests compare with (tests/golden/data/difficulty). Wants numpy, torch and deepspeed."""
import argparse, json, os, pathlib, shutil, subprocess, sys, tempfile

os.environ["DS_ACCELERATOR"] = "cpu"
import numpy as np
import torch
import deepspeed
from deepspeed.runtime.data_pipeline.data_sampling.data_analyzer import DataAnalyzer
from deepspeed.runtime.data_pipeline.data_sampling.data_sampler import DeepSpeedDataSampler

SAMPLES, BATCH, STEPS = 120, 8, 60


class OneProcess:
    def size(self):
        return 1


# The sampler speaks to other ranks; here is one.
deepspeed.comm.barrier = lambda group=None: None
deepspeed.comm.broadcast = lambda tensor, src, group=None: None


def difficulty_of_samples():
    """A difficulty for each sample: many share one, and none is 5."""
    values = np.random.RandomState(7).geometric(0.15, SAMPLES)
    return np.where(values == 5, 6, values).astype(np.int64)


class Numbers(torch.utils.data.Dataset):
    def __init__(self, values):
        self.values = values

    def __len__(self):
        return len(self.values)

    def __getitem__(self, i):
        return self.values[i]


def analyze(values, name, folder):
    analyzer = DataAnalyzer(Numbers(values), batch_size=10, metric_names=[name], metric_functions=[lambda data: np.asarray(data, dtype=np.int64)],
                            metric_types=["single_value_per_sample"], metric_dtypes=[np.int64], save_path=str(folder))
    analyzer.run_map()
    analyzer.run_reduce()


def metric(folder, name, by, curve, least, most, clusters="schedule_based", samples="index_to_sample"):
    config = {"difficulty_type": by, "clustering_type": clusters, "min_difficulty": least, "max_difficulty": most, "schedule_type": curve[0],
              "schedule_config": curve[1]}
    if clusters == "schedule_based":
        config |= {"index_to_sample_path": f"{folder}/{name}/{name}_{samples}", "index_to_metric_path": f"{folder}/{name}/{name}_index_to_metric"}
    return config


ROOT = ("fixed_root", {"total_curriculum_step": 40, "difficulty_step": 1, "root_degree": 2})
LINE = ("fixed_linear", {"total_curriculum_step": 30, "difficulty_step": 2})
STAIRS = ("fixed_discrete", {"difficulty": [3, 7, 30], "max_step": [6, 20]})
SEQLEN = ("fixed_linear", {"total_curriculum_step": 50, "difficulty_step": 8})


def cases(folder):
    """Of each case its metrics, and the seed."""
    return {
        "by_value": ({"rare": metric(folder, "rare", "value", ROOT, 2, 30)}, 1234),
        "by_percentile": ({"rare": metric(folder, "rare", "percentile", LINE, 10, 100)}, 99),
        "merged": ({"rare": metric(folder, "rare", "percentile", ROOT, 1, 100, samples="index_to_sample_percentile_merged")}, 1234),
        "in_stairs": ({"rare": metric(folder, "rare", "value", STAIRS, 3, 30)}, 5),
        "beside_lengths": ({"rare": metric(folder, "rare", "percentile", LINE, 10, 97),
                            "seqlen_truncate": metric(folder, "", "value", SEQLEN, 8, 128, clusters="single_cluster")}, 1234),
        "two": ({"rare": metric(folder, "rare", "value", LINE, 4, 30), "long": metric(folder, "long", "percentile", ROOT, 20, 100)}, 77),
        "single": ({"seqlen_truncate": metric(folder, "", "value", SEQLEN, 8, 128, clusters="single_cluster")}, 3),
    }


def steps_of(metrics, seed, folder):
    config = {"seed": seed, "data_sampling": {"num_epochs": 1000, "curriculum_learning": {
        "enabled": True, "data_cluster_path": str(folder), "curriculum_metrics": metrics}}}
    sampler = DeepSpeedDataSampler(config, SAMPLES, 2, 0, 1, OneProcess(), BATCH // 2, 0)
    steps = []
    for _ in range(STEPS):
        sampler.get_next_global_batch()
        steps.append([int(x) for x in sampler.batch])
        sampler.batch = []
    return steps


def word_of(name, config):
    """The metric as a flag of weft's."""
    keys = {"index_to_sample_path": "samples", "index_to_metric_path": "values", "difficulty_type": "by", "clustering_type": "clusters",
            "schedule_type": "curve", "min_difficulty": "least", "max_difficulty": "most"}
    inner = {"total_curriculum_step": "steps", "difficulty_step": "multiple", "root_degree": "root", "difficulty": "levels", "max_step": "until"}
    pairs = [f"{keys[k]}={v}" for k, v in config.items() if k in keys]
    pairs += [f"{inner[k]}={'/'.join(map(str, v)) if isinstance(v, list) else v}" for k, v in config["schedule_config"].items()]
    return f"{name}:{','.join(pairs)}"


def write(folder):
    folder = pathlib.Path(folder)
    analyze(difficulty_of_samples(), "rare", folder)
    analyze(np.arange(SAMPLES, dtype=np.int64)[::-1] * 37 % 300, "long", folder)
    out = {}
    for name, (metrics, seed) in cases(folder).items():
        with tempfile.TemporaryDirectory() as clusters:
            steps = steps_of(metrics, seed, clusters)
        words = [word_of(metric, config).replace(f"={folder}/", "=FOLDER/") for metric, config in metrics.items()]
        out[name] = {"metrics": words, "seed": seed, "steps": steps}
    generator = np.random.default_rng(42)
    numbers = list(range(10))
    generator.shuffle(numbers)
    array = np.arange(20, dtype=np.int64)
    generator.shuffle(array)
    out["generator"] = {"list": numbers, "array": array.tolist(), "random": generator.random(4).tolist(), "values": difficulty_of_samples().tolist()}
    (folder / "steps.json").write_text(json.dumps(out) + "\n")
    for name in ("rare", "long"):  # what single threads wrote is merged by now
        shutil.rmtree(folder / name / "worker0_thread0")
        for part in (folder / name).glob("*_thread0.*"):
            part.unlink()


# ---- against the program: the words of a GPT's samples

FLAGS = ["--num-layers", "1", "--hidden-size", "8", "--num-attention-heads", "1", "--seq-length", "16", "--micro-batch-size", "2", "--global-batch-size",
         str(BATCH), "--lr", "1e-3", "--train-iters", str(STEPS), "--eval-iters", "0", "--split", "1,0,0", "--tokenizer-type", "NullTokenizer", "--vocab-size",
         "96"]


def corpus(weft, folder):
    """Documents of some words, rare ones among them, as token files."""
    random = np.random.RandomState(3)
    rows = [{"text": " ".join(str(min(94, x)) for x in random.geometric(random.uniform(0.05, 0.4), random.randint(10, 60)))} for _ in range(80)]
    (folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    subprocess.run([weft, "preprocess", "--input", "rows.jsonl", "--output-prefix", "corpus", "--tokenizer-type", "NullTokenizer", "--vocab-size", "96",
                    "--append-eod"], cwd=folder, check=True, capture_output=True)
    return ["--data-path", next(p.name[:-4] for p in folder.glob("corpus*.bin"))]


def said(weft, folder, *words):
    run = subprocess.run([weft, *words], cwd=folder, capture_output=True, text=True)
    if run.returncode != 0:
        sys.exit(f"{' '.join(words)}\n{run.stderr}")
    return run.stdout


def texts_of(weft, folder, data, count):
    one_epoch = ["--difficulty-metrics", "all:clusters=single_cluster,curve=fixed_linear,least=1,most=2,steps=2"]
    lines = said(weft, folder, "data", "sample", "--index", "0", "--count", str(count), "--json", *FLAGS, *data, *one_epoch).splitlines()
    rows = [json.loads(line) for line in lines]
    return [row["tokens"] + row["labels"][-1:] for row in rows]


def rarity_of(texts, words):
    """As analyze_data.py's metric_vocab_rarity."""
    counts = torch.bincount(torch.tensor(texts).view(-1), minlength=words).numpy()
    counts[counts == 0] = 1
    rare = torch.tensor(np.log(counts / sum(counts)) * -1, dtype=torch.double)
    return np.array([int(torch.sum(rare[torch.tensor(row)]).item()) for row in texts], dtype=np.int64)


def compare_index(weft, folder, data):
    made = said(weft, folder, "data", "difficulty", "--metric", "vocab_rarity", "--to", "ours", *FLAGS, *data)
    samples = int(made.split()[2])
    texts = texts_of(weft, folder, data, samples)
    analyze(rarity_of(texts, 128 + 1), "vocab_rarity", folder / "theirs")
    for part in ("index_to_sample", "index_to_metric", "index_to_sample_percentile_merged", "sample_to_metric"):
        for end in ("bin", "idx"):
            name = f"vocab_rarity/vocab_rarity_{part}.{end}"
            if (folder / "ours" / name).read_bytes() != (folder / "theirs" / name).read_bytes():
                sys.exit(f"difficulty: {name} is another file than DeepSpeed's")
    return samples


def compare_steps(weft, folder, data, samples):
    global SAMPLES
    SAMPLES = samples
    config = metric(folder / "theirs", "vocab_rarity", "percentile", LINE, 10, 100, samples="index_to_sample_percentile_merged")
    with tempfile.TemporaryDirectory() as clusters:
        theirs = steps_of({"vocab_rarity": config}, 1234, clusters)
    # Where a cluster is smaller than what is taken of it, DeepSpeed's batch is short, and ours is not.
    whole = next((step for step, drawn in enumerate(theirs) if len(drawn) < BATCH), STEPS)
    if whole < 10:
        sys.exit(f"difficulty: DeepSpeed's batch is short in step {whole + 1} already")
    for step in (1, 2, 9, whole):
        ours = said(weft, folder, "data", "sample", "--step", str(step), "--json", *FLAGS, *data, "--difficulty-metrics", word_of("vocab_rarity", config))
        if [json.loads(line)["index"] for line in ours.splitlines()] != theirs[step - 1]:
            sys.exit(f"difficulty: step {step} reads other samples than DeepSpeed's sampler draws")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("weft", nargs="?")
    parser.add_argument("--write")
    given = parser.parse_args()
    if given.write:
        return write(given.write)
    with tempfile.TemporaryDirectory() as place:
        folder = pathlib.Path(place)
        data = corpus(pathlib.Path(given.weft).resolve(), folder)
        samples = compare_index(str(pathlib.Path(given.weft).resolve()), folder, data)
        compare_steps(str(pathlib.Path(given.weft).resolve()), folder, data, samples)
        print(f"difficulty: index and order of {samples} samples are DeepSpeed's {deepspeed.__version__}")


if __name__ == "__main__":
    main()
