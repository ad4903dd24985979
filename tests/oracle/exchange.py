#!/usr/bin/env python3
"""Models of transformers through weft and back: random small ones of every family weft reads are converted to a checkpoint and
exported again, transformers loads what weft wrote, and its logits must be those of the original; and weft goes on from a
prompt as transformers' likeliest tokens do. Needs: pip install torch transformers accelerate.
Usage: exchange.py [--weft build/release/weft] [--rounds N] [--seed S]"""
import argparse, copy, json, pathlib, random, subprocess, sys, tempfile

import torch
import transformers

ARGS = argparse.ArgumentParser()
ARGS.add_argument("--weft", default="build/release/weft")
ARGS.add_argument("--rounds", type=int, default=3)
ARGS.add_argument("--seed", type=int, default=0)
ARGS = ARGS.parse_args()
MAKE = pathlib.Path(__file__).parents[1] / "golden/exchange/make.py"
WRONG = []
transformers.utils.logging.set_verbosity_error()
transformers.utils.logging.disable_progress_bar()


def run(*words):
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"{words[:3]}: {done.stderr.strip()}")
    return done.stdout


def is_encoder(directory):
    return "bert" in json.loads((directory / "config.json").read_text())["model_type"]


def load(directory):
    """The model, and what its directory lacks or has too much of."""
    said = json.loads((directory / "config.json").read_text())
    kind = getattr(transformers, said["architectures"][0])
    config = kind.config_class.from_pretrained(directory)
    untied = said.get("is_encoder_decoder") and not said.get("tie_word_embeddings", True)
    if untied:
        config.tie_word_embeddings = config.scale_decoder_outputs = False  # newer versions overwrite what was said
    way = "sdpa" if said.get("alibi") else "eager"  # the other adds what a Falcon's scores fall by twice
    model, info = kind.from_pretrained(directory, config=config, dtype=torch.float32, attn_implementation=way, output_loading_info=True)
    odd = {*info["missing_keys"], *info["unexpected_keys"]}
    for stack in ("encoder", "decoder") if untied else ():
        getattr(model, stack).embed_tokens = model.shared  # some versions make three embeddings of one then
        odd.discard(f"{stack}.embed_tokens.weight")
    return model.eval(), odd


def answer(model, ids, source=None):
    with torch.no_grad():
        return model(torch.tensor([ids])) if source is None else model(torch.tensor([source]), decoder_input_ids=torch.tensor([ids]))


def logits(model, ids, source=None):
    out = answer(model, ids, source)
    return (out.prediction_logits if hasattr(out, "prediction_logits") else out.logits)[0]


def moved_by_rounding(model, ids, source=None):
    """How far the logits move, at most of four times, where weights go to the next float: what layers that remember make of any rounding."""
    before, after = logits(model, ids, source), []
    for seed in range(4):
        torch.manual_seed(seed)
        other = copy.deepcopy(model)
        with torch.no_grad():
            for weight in other.parameters():
                weight.mul_(1 + 2**-23 * (2 * torch.rand_like(weight) - 1))
        after.append((logits(other, ids, source) - before).abs().max())
    return max(after)


def check(what, same):
    if not same:
        WRONG.append(what)
        print("DIFFERS", what)


def likeliest(model, last, ids, count, source=None):
    """Greedy tokens, as far as no two are so near that rounding decides; none ends the text."""
    out = []
    for _ in range(count):
        row = logits(model, ids + out, source)[-1]
        two = row.topk(2)
        if two.values[0] - two.values[1] < 1e-3 or int(two.indices[0]) in last:
            break
        out.append(int(two.indices[0]))
    return out


def ends(directory):
    text = transformers.AutoConfig.from_pretrained(directory).get_text_config()
    end = text.eos_token_id
    return (end if isinstance(end, list) else [end]) + [text.vocab_size - 1]  # the null tokenizer's last id


def saved_by_this_version(directory, scratch, name):
    """Not every version says of an output of its own what another reads."""
    kind = getattr(transformers, json.loads((directory / "config.json").read_text())["architectures"][0])
    again = scratch / f"{name}_saved"
    kind.from_pretrained(directory, dtype=torch.float32).save_pretrained(again)
    (again / "logits.json").write_text((directory / "logits.json").read_text())
    return again


def through(directory, scratch, name):
    expected = json.loads((directory / "logits.json").read_text())
    there, back = scratch / f"{name}_weft", scratch / f"{name}_back"
    few_bits = "quantization_config" in json.loads((directory / "config.json").read_text())
    print(name, run(ARGS.weft, "checkpoint", "convert", *(["--dtype", "f32"] if few_bits else []), directory, there).splitlines()[-1])
    run(ARGS.weft, "checkpoint", "convert", "--dtype", "f32", "--shard-bytes", random.choice([8000, 5000000]), there, back)
    found, odd = load(back)
    check(f"{name}: tensors {odd}", not odd)
    theirs, source = torch.tensor(expected["logits"]), expected.get("source")
    apart, largest = (logits(found, expected["prompt"], source) - theirs).abs().max(), theirs.abs().max()
    check(f"{name}: logits of the export differ by {apart / largest:.3g} of the largest",
          apart < 1e-5 * largest or apart < 2 * moved_by_rounding(found, expected["prompt"], source))
    if "order" in expected:
        theirs, ours = torch.tensor(expected["order"]), answer(found, expected["prompt"]).seq_relationship_logits[0]
        apart = (ours - theirs).abs().max() / theirs.abs().max()
        check(f"{name}: logits of the sentence order of the export differ by {apart:.3g} of the largest", apart < 1e-5)
    if is_encoder(directory):
        return
    model = found if few_bits else load(directory)[0]  # which transformers reads by packages of GPUs
    if source is None:
        wanted, prompt = likeliest(model, ends(directory), expected["prompt"], 8), expected["prompt"]
    else:
        # The text that is read ends in 1, which weft adds where it is not there, and what is said begins with 0.
        wanted, prompt = likeliest(model, ends(directory), [0], 8, source), source[:-1]
    said = json.loads(run(ARGS.weft, "generate", directory, "--tokenizer", f"null:{model.config.get_text_config().vocab_size}", "--prompt",
                          " ".join(map(str, prompt)), "--tokens", 8, "--greedy", "--json"))["text"]
    check(f"{name}: goes on {said}, not {wanted}", [int(word) for word in said.split()][:len(wanted)] == wanted)


for round in range(ARGS.rounds):
    seed = ARGS.seed or random.randrange(2, 10**6)
    with tempfile.TemporaryDirectory() as scratch:
        scratch = pathlib.Path(scratch)
        subprocess.run([sys.executable, str(MAKE), str(scratch), str(seed)], check=True, capture_output=True)
        for directory in sorted(path for path in scratch.iterdir() if (path / "logits.json").exists()):
            through(directory, scratch, f"seed {seed}: {directory.name}")
            if directory.name in ("bert_untied", "t5_gated", "t5_untied"):
                through(saved_by_this_version(directory, scratch, directory.name), scratch, f"seed {seed}: {directory.name} as it is saved here")
print(f"exchange: {ARGS.rounds} rounds, {len(WRONG)} differences")
sys.exit(1 if WRONG else 0)
