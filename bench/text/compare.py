#!/usr/bin/env python3
"""Encoding and training against tokenizers and tiktoken, in turn: compare.py encode|train FOLDER BENCH WEFT [TEXT ...]. Encoding is one
thread's, in processor time; training uses RAYON_NUM_THREADS threads on both sides and tells the clock's and the processor's seconds.
FOLDER holds english-10.txt, source-10.txt (and mixed-100.txt for training) as corpus.py writes them, and gpt2/ and cl100k/ as
`weft tokenizer train --vocab-size 50257` writes them."""
import json, os, resource, subprocess, sys, time

os.environ["RAYON_NUM_THREADS"] = os.environ.get("RAYON_NUM_THREADS", "1")
os.environ["TOKENIZERS_PARALLELISM"] = "false" if os.environ["RAYON_NUM_THREADS"] == "1" else "true"


def alphabet():
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [b for b in range(256) if b not in printable]
    return {chr(c): b for b, c in [*((b, b) for b in printable), *((b, 256 + k) for k, b in enumerate(others))]}


def rate(run, docs, rounds):
    size, rates = sum(len(d.encode()) for d in docs), []
    for k in range(rounds + 1):
        start = time.process_time()
        run(docs)
        rates.append(size / (time.process_time() - start) / 1e6)
    rates = sorted(rates[1:])
    return rates[len(rates) // 2], rates[0], rates[-1]


def encode(folder, bench, megabytes=2, rounds=5):
    import tiktoken
    from tiktoken_ext import openai_public
    from tokenizers import Tokenizer
    cl100k = open(openai_public.__file__).read().split('"name": "cl100k_base",')[1].split('"""')[1]
    letters = alphabet()
    for text in sys.argv[5:] or ("english-10.txt", "source-10.txt"):
        raw = open(f"{folder}/{text}", "rb").read()[: megabytes * 1000000]
        docs = [raw[k : k + 4096].decode("utf-8", "ignore") for k in range(0, len(raw), 4096)]
        open(f"{folder}/part.txt", "wb").write(raw)
        for name, pattern in (("gpt2", openai_public.r50k_pat_str), ("cl100k", cl100k)):
            out = subprocess.run([bench, f"hf:{folder}/{name}", f"{folder}/part.txt", "5"], capture_output=True, text=True, check=True).stdout
            weft = [float(w) for w in out.splitlines()[-1].replace(",", "").split() if w.replace(".", "").isdigit()]
            vocab = json.load(open(f"{folder}/{name}/vocab.json"))
            tokens = sorted((bytes(letters[c] for c in t), i) for t, i in vocab.items() if t != "<|endoftext|>")
            encoding = tiktoken.Encoding(name, pat_str=pattern, mergeable_ranks=dict(tokens), special_tokens={})
            tik = rate(lambda d: [encoding.encode_ordinary(t) for t in d], docs, rounds)
            theirs = Tokenizer.from_file(f"{folder}/{name}/tokenizer.json")
            hf = rate(lambda d: [theirs.encode(t) for t in d], docs, rounds)
            print(f"{text[:-7]:8} {name:7} weft {weft[0]:6.1f} ({weft[1]:.1f}-{weft[2]:.1f})  tokenizers {hf[0]:5.2f} ({hf[1]:.2f}-{hf[2]:.2f})  "
                  f"tiktoken {tik[0]:6.2f} ({tik[1]:.2f}-{tik[2]:.2f})  ratios {weft[0] / hf[0]:.1f} {weft[0] / tik[0]:.2f}", flush=True)


def train(folder, weft):
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers
    for text in sys.argv[5:] or ["english-10.txt"]:
        clock, start = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
        subprocess.run([weft, "tokenizer", "train", "--vocab-size", "32000", "--workers", os.environ["RAYON_NUM_THREADS"],
                        "--output", f"{folder}/trained", f"{folder}/{text}"], check=True)
        ours, our_clock = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - start, time.perf_counter() - clock
        theirs = Tokenizer(models.BPE())
        theirs.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        clock, start = time.perf_counter(), time.process_time()
        theirs.train([f"{folder}/{text}"], trainers.BpeTrainer(vocab_size=32000, min_frequency=2, show_progress=False,
                                                               initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
                                                               special_tokens=["<|endoftext|>"]))
        hf, hf_clock = time.process_time() - start, time.perf_counter() - clock
        print(f"{text}: by the clock weft {our_clock:.2f} s, tokenizers {hf_clock:.2f} s, {hf_clock / our_clock:.1f} times; "
              f"of the processor weft {ours:.2f} s, tokenizers {hf:.2f} s, {hf / ours:.1f} times", flush=True)


if __name__ == "__main__":
    encode(sys.argv[2], sys.argv[3]) if sys.argv[1] == "encode" else train(sys.argv[2], sys.argv[4])
