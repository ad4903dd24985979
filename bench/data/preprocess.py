#!/usr/bin/env python3
"""weft preprocess on one core and on two, in turn: preprocess.py WEFT FOLDER [--megabytes N] [--runs N].

Makes its text (bench/text/corpus.py mixed, a JSON line a piece of 4096 characters) and a byte-level BPE of 50,257 words in FOLDER
once. "One core" is the whole program, reading and writing included, bound to one processor."""
import argparse, filecmp, json, os, pathlib, statistics, subprocess, sys, time


def make(weft, folder, megabytes):
    text, lines, words = folder / "mixed.txt", folder / "mixed.jsonl", folder / "bpe"
    if not lines.exists():
        corpus = pathlib.Path(__file__).resolve().parent.parent / "text" / "corpus.py"
        subprocess.run([sys.executable, corpus, "mixed", str(megabytes), text], check=True)
        whole = text.read_text(encoding="utf-8", errors="replace")
        with open(lines, "w") as out:
            for at in range(0, len(whole), 4096):
                out.write(json.dumps({"text": whole[at : at + 4096]}) + "\n")
    if not words.exists():
        subprocess.run([weft, "tokenizer", "train", "--vocab-size", "50257", "--output", words, text], check=True)
    return lines, words


def run(cores, workers, command, prefix):
    start = time.monotonic()
    told = subprocess.run(["taskset", "-c", cores, *command, "--workers", str(workers), "--output-prefix", prefix], check=True, capture_output=True, text=True)
    wall, use = time.monotonic() - start, json.loads(told.stdout)
    return use["input_bytes"] / use["seconds"] / 1e6, use["input_bytes"] / wall / 1e6


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("weft"), parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--megabytes", type=int, default=100), parser.add_argument("--runs", type=int, default=7)
    args = parser.parse_args()
    args.folder.mkdir(parents=True, exist_ok=True)
    weft = os.path.abspath(args.weft)
    lines, words = make(weft, args.folder, args.megabytes)
    command = [weft, "preprocess", "--input", lines, "--tokenizer", f"gpt2:{words}/vocab.json,{words}/merges.txt", "--append-eod", "--json"]
    rows = {"one core, 1 worker": ("0", 1, "one"), "two cores, 1 worker": ("0,1", 1, "aside"), "two cores, 2 workers": ("0,1", 2, "two")}
    rates = {name: [] for name in rows}
    for _ in range(args.runs):
        for name, (cores, workers, prefix) in rows.items():
            rates[name].append(run(cores, workers, command, args.folder / prefix))
    same = all(filecmp.cmp(args.folder / f"one{end}", args.folder / f"two{end}", shallow=False) for end in ("_text_document.bin", "_text_document.idx"))
    print(f"{lines.stat().st_size / 1e6:.0f} MB, the same bytes: {same}")
    one = statistics.median(rate for rate, _ in rates["one core, 1 worker"])
    for name, pairs in rates.items():
        encode = [rate for rate, _ in pairs]
        print(f"  {name:22} MB/s {statistics.median(encode):6.1f} ({min(encode):.1f}-{max(encode):.1f}), with the start and the sync at the end "
              f"{statistics.median(whole for _, whole in pairs):6.1f}; of twice one core {statistics.median(encode) / (2 * one):.0%}", flush=True)


if __name__ == "__main__":
    main()
