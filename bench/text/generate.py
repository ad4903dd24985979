#!/usr/bin/env python3
"""generate.py WEFT DIRECTORY [MODEL [ROUNDS [DTYPE]]]: text from models of random weights, by weft and by transformers, which keep keys and values alike.

MODEL is gpt2 (124M) or qwen3 (0.6B); DTYPE is f32 or bf16. A round runs weft and then transformers, on a prompt of 512 tokens, once for FEW and once for MANY
tokens, greedily: what a token takes is the difference, and what reading the prompt takes is what is left. Tells medians, and the bytes of weights that a token
reads over what the memory gives (a sum of as many bytes, by torch). DIRECTORY gets the models. Needs torch and transformers."""
import json
import os
import pathlib
import statistics
import subprocess
import sys
import time

PROMPT, FEW, MANY, THREADS = 512, 4, 68, 2


def made(directory, name):
    import torch
    import transformers as t
    path = pathlib.Path(directory) / name
    if (path / "model.safetensors").exists():
        return path
    torch.manual_seed(7)
    if name == "gpt2":
        model = t.GPT2LMHeadModel(t.GPT2Config(n_positions=1024, bos_token_id=None, eos_token_id=None))
    else:
        model = t.Qwen3ForCausalLM(t.Qwen3Config(
            vocab_size=151936, hidden_size=1024, intermediate_size=3072, num_hidden_layers=28, num_attention_heads=16, num_key_value_heads=8, head_dim=128,
            max_position_embeddings=4096, tie_word_embeddings=True, bos_token_id=None, eos_token_id=None))
    model.save_pretrained(path)
    return path


def prompt_of(words):
    return [(7 * i * i + 3 * i) % (words - 2) + 1 for i in range(PROMPT)]


def by_weft(weft, path, words, dtype):
    seconds = []
    for tokens in (FEW, MANY):
        out = subprocess.run([weft, "generate", path, "--tokenizer", f"null:{words}", "--prompt", " ".join(map(str, prompt_of(words))), "--tokens", str(tokens),
                              "--greedy", "--json", "--threads", str(THREADS), "--precision", dtype], check=True, capture_output=True, text=True).stdout
        said = json.loads(out)
        if len(said["text"].split()) != tokens:
            sys.exit(f"weft said {len(said['text'].split())} tokens, not {tokens}")
        seconds.append(said["seconds"])
    return seconds


def by_transformers(path, words, dtype):
    """In a process of its own, as weft is."""
    out = subprocess.run([sys.executable, __file__, "--peer", path, str(words), dtype], check=True, capture_output=True, text=True).stdout
    return json.loads(out.splitlines()[-1])


def peer(path, words, dtype):
    import torch
    import transformers as t
    torch.set_num_threads(THREADS)
    model = t.AutoModelForCausalLM.from_pretrained(path, dtype=torch.bfloat16 if dtype == "bf16" else torch.float32).eval()
    ids = torch.tensor([prompt_of(int(words))])
    seconds = []
    with torch.no_grad():
        for tokens in (2, FEW, MANY):
            start = time.perf_counter()
            out = model.generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=tokens, min_new_tokens=tokens, do_sample=False, pad_token_id=0)
            seconds.append(time.perf_counter() - start)
            assert out.shape[1] == PROMPT + tokens
    print(json.dumps(seconds[1:]))


def memory_rate(size):
    import torch
    torch.set_num_threads(THREADS)
    x = torch.zeros(size // 4)
    times = []
    for _ in range(5):
        start = time.perf_counter()
        x.sum()
        times.append(time.perf_counter() - start)
    return size / min(times)


def main():
    weft, directory = sys.argv[1:3]
    name, rounds, dtype = (sys.argv[3:] + ["gpt2", "5", "f32"][len(sys.argv) - 3:])[:3]
    path = made(directory, name)
    words = json.loads((path / "config.json").read_text())["vocab_size"]
    found = {"weft": [], "transformers": []}
    for _ in range(int(rounds)):
        found["weft"].append(by_weft(weft, path, words, dtype))
        found["transformers"].append(by_transformers(path, words, dtype))
    size = os.path.getsize(path / "model.safetensors") // (2 if dtype == "bf16" else 1)
    floor = size / memory_rate(size)
    print(f"{name}, {dtype}, a prompt of {PROMPT} tokens, {rounds} rounds; weights of {size / 2**20:.0f} MiB, read in {1000 * floor:.1f} ms")
    for who, runs in found.items():
        each = [(many - few) / (MANY - FEW) for few, many in runs]
        first = [few - FEW * one for (few, _), one in zip(runs, each)]
        print(f"{who:13} {1000 * statistics.median(each):7.1f} ms a token ({1000 * min(each):.1f} to {1000 * max(each):.1f}), {100 * floor / statistics.median(each):3.0f} % of "
              f"reading the weights; the prompt {statistics.median(first):.2f} s ({min(first):.2f} to {max(first):.2f})")


if __name__ == "__main__":
    peer(*sys.argv[2:]) if sys.argv[1:2] == ["--peer"] else main()
