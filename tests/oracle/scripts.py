#!/usr/bin/env python3
"""How many of Megatron-LM's own configurations weft takes: scripts.py WEFT MEGATRON [--launch] [--all] [--only FAMILY]. MEGATRON is a checkout of Megatron-LM, of
which nothing is kept here: the families of tests/functional_tests/test_cases, as its recipes start them, and the scripts of examples/ that start
pretrain_gpt.py, pretrain_bert.py or pretrain_t5.py, run with launchers that only note their arguments. Every one goes through `weft train --dry-run` with files that exist,
and passes, or is refused by a sentence that names a flag. With --launch only the examples go, and all the way: `weft launch` gets what their
torchrun got, program and all, and must say what `weft train` says. Needs PyYAML. Exits 1 below the goal, or where a refusal names no flag."""
import argparse, json, math, os, pathlib, re, subprocess, sys, tempfile

import yaml

GOAL = 0.92
# Of its test cases, and what weft trains for each.
FAMILIES = {"gpt": "gpt", "moe": "gpt", "mixtral": "gpt", "hybrid": "gpt", "nemotron": "gpt", "bert": "bert", "t5": "t5"}
PROGRAM = re.compile(r"pretrain_(gpt|bert|t5|hybrid|mamba)\.py")
TEXT = pathlib.Path(__file__).parents[1] / "golden/text"
TOKENIZERS = {"GPTSentencePieceTokenizer": "toy.model", "Llama2Tokenizer": "toy.model", "SentencePieceTokenizer": "toy.model"}
DIRECTORIES = {"--save", "--load", "--data-cache-path", "--tensorboard-dir", "--pretrained-checkpoint"}


def ranks_of_recipes(root):
    """Of every test case that a recipe starts with a program of pretraining."""
    out = {}
    for file in sorted(root.glob("tests/test_utils/recipes/**/*.yaml")):
        recipe = yaml.safe_load(file.read_text())
        spec = recipe.get("spec", {})
        if not PROGRAM.search(spec.get("script", "")):
            continue
        for product in recipe.get("products") or []:
            for case in product.get("test_case", []):
                out.setdefault((spec.get("model"), case), spec.get("nodes", 1) * spec.get("gpus", 1))
    return out


def words_of(settings):
    """As the test's shell spells them: a true is a switch, a list or a string of several words is several."""
    out = []
    for flag, value in settings.items():
        if value is False or value is None:
            continue
        out.append(flag)
        if value is True:
            continue
        spaced = flag in ("--data-path", "--step-batch-size-schedule", "--pipeline-model-parallel-layout", "--moe-layer-freq")
        if isinstance(value, list):
            out += [str(v) for v in value]
        else:
            word = str(value).replace("${REPEAT}", "1").replace("${TOKENIZER_TYPE}", "HuggingFaceTokenizer")
            out += [word] if spaced else word.strip("[]").split()
    return out


def test_cases(root, family):
    ranks = ranks_of_recipes(root)
    for file in sorted(root.glob(f"tests/functional_tests/test_cases/{family}/*/model_config.yaml")):
        name, config = file.parent.name, yaml.safe_load(file.read_text())
        other_program = config.get("MODE") == "inference" or any(word in name for word in ("inference", "grpo", "flextron"))
        if other_program:
            continue
        runs = []
        for key in [k for k in config if re.fullmatch(r"MODEL_ARGS(_\d+)?", k)]:
            of_run = (config.get("MODEL_ENV_VARS") or {}).get(key, {}).get("GPUS_PER_NODE")
            runs.append(([FAMILIES[family], *words_of(config[key])], of_run or ranks.get((family, name), 8), []))
        yield f"{family} {name}", runs


STUB = """#!/usr/bin/env python3
import json, os, sys
json.dump(sys.argv[1:], open(os.environ["NOTED"], "w"))
"""


def examples(root, scratch):
    stubs, noted = scratch / "stubs", scratch / "noted.json"
    stubs.mkdir()
    for kind in ("gpt", "bert", "t5"):
        (scratch / f"pretrain_{kind}.py").touch()
    (scratch / "checkpoints").mkdir()
    for name in ("torchrun", "python", "srun", "sbatch", "uv"):
        (stubs / name).write_text(STUB)
        (stubs / name).chmod(0o755)
    for script in sorted(root.glob("examples/**/*.sh")):
        if not PROGRAM.search(script.read_text()) or "modelopt" in str(script) or script.name == "SRUN.sh":
            continue  # those take their model from a file that is not there
        noted.unlink(missing_ok=True)
        given = [str(scratch / f) for f in ("checkpoints", "logs", "tokenizer.model", "data")]
        if "gpt3" in script.name or "bert" in script.name or "t5" in script.name:
            given = [given[0], given[1], "vocab.json", "merges.txt", given[3]]
        if "mixtral" in script.name:
            given = [given[0], given[2], given[3]]
        if "gptoss" in str(script):
            given = ["--checkpoint-path", given[0], "--tensorboard-logs-path", given[1]]
        env = dict(PATH=f"{stubs}:/usr/bin:/bin", HOME=str(scratch), NOTED=str(noted))
        subprocess.run(["bash", str(script), *given], cwd=scratch, env=env, capture_output=True, timeout=20)
        if not noted.exists():
            print(f"not started by its script: {script.relative_to(root)}")
            continue
        words = json.loads(noted.read_text())
        at = next((i for i, w in enumerate(words) if PROGRAM.search(w)), None)
        if at is None:
            print(f"not counted: {script.relative_to(root)} hands its words to another program")
            continue
        launcher = dict(zip(words[:at], words[1:at]))
        ranks = int(launcher.get("--nproc_per_node", 8)) * int(launcher.get("--nnodes", 1))
        # A quoted "--flag value" is one word to bash.
        flat = [w.strip("'") for word in words[at + 1:] for w in (word.split() if word.startswith("--") else [word])]
        flat = [w.strip('"') for w in flat]
        kind = PROGRAM.search(words[at])[1]
        yield "example " + str(script.relative_to(root / "examples")), [([kind if kind in ("bert", "t5") else "gpt", *flat], ranks, words[:at + 1])]


def with_files(words, scratch):
    """The same with files that exist; a value follows its flag."""
    out, i = [], 0
    usual = "BertWordPieceLowerCase" if words[0] == "bert" else "GPT2BPETokenizer"
    kind = next((words[k + 1] for k, w in enumerate(words[:-1]) if w == "--tokenizer-type"), usual)
    while i < len(words):
        flag = words[i]
        out.append(flag)
        i += 1
        if flag in DIRECTORIES and i < len(words):
            out.append(str(scratch / flag.strip("-")))
            (scratch / flag.strip("-")).mkdir(exist_ok=True)
            i += 1
        elif flag in ("--vocab-file", "--merge-file"):
            pieces = "toy_wordpiece_vocab.txt" if kind.startswith("BertWordPiece") else "toy_bpe_vocab.json"
            out.append(str(TEXT / (pieces if flag == "--vocab-file" else "toy_bpe_merges.txt")))
            i += 1
        elif flag == "--tokenizer-model":
            if kind == "TikTokenizer":
                (scratch / "ranks.tiktoken").write_text("".join(f"{__import__('base64').b64encode(bytes([b])).decode()} {b}\n" for b in range(256)))
                out.append(str(scratch / "ranks.tiktoken"))
            elif kind == "HuggingFaceTokenizer":
                words_of_it = {"<|endoftext|>": 0, **{chr(ord("a") + i): i + 1 for i in range(26)}}
                (scratch / "tokenizer.json").write_text(json.dumps({"version": "1.0", "model": {"type": "BPE", "vocab": words_of_it, "merges": []}, "added_tokens": [
                    dict(id=0, content="<|endoftext|>", single_word=False, lstrip=False, rstrip=False, normalized=False, special=True)]}))
                out.append(str(scratch / "tokenizer.json"))
            else:
                out.append(str(TEXT / TOKENIZERS.get(kind, "toy.model")))
            i += 1
    if "--use-checkpoint-args" in out:
        out.append("--allow-fresh-start")  # as Megatron does: there is none
    return out


def ranks_for(words, ranks):
    """As many as the layout can use: a stub starts one machine's, and some examples are for several."""
    def degree(*flags):
        product = 1
        for flag in flags:
            product *= int(words[words.index(flag) + 1]) if flag in words else 1
        return product

    tensor, stages = degree("--tensor-model-parallel-size"), degree("--pipeline-model-parallel-size")
    shared = int(words[words.index("--expert-tensor-parallel-size") + 1]) if "--expert-tensor-parallel-size" in words else tensor
    experts = degree("--expert-model-parallel-size") * shared if "--num-experts" in words else 1
    unit = stages * math.lcm(tensor * degree("--context-parallel-size"), experts)
    return ranks if ranks % unit == 0 else unit


def launched(launcher, ranks):
    """What torchrun was told, its program last, on one machine that has all the ranks."""
    named = [i for i, word in enumerate(launcher) if word in ("torchrun", "torch.distributed.run")]  # "uv run torchrun", "python -m …"
    out = launcher[named[-1] + 1:] if named else list(launcher)
    for i, word in enumerate(out[:-1]):
        if word in ("--nproc_per_node", "--nproc-per-node"):
            out[i + 1] = str(ranks)
        if word == "--nnodes":
            out[i + 1] = "1"
    return out


def refusal(weft, words, ranks, launcher):
    """None where it passes. Without a launcher the plan is made for a rank of so many."""
    env = {k: v for k, v in os.environ.items() if k not in ("RANK", "WORLD_SIZE")}
    start = ["launch", *launched(launcher, ranks)] if launcher else ["train", words[0]]
    done = subprocess.run([weft, *start, *words[1:], "--dry-run"], capture_output=True, text=True,
                          env=env if launcher else env | dict(WORLD_SIZE=str(ranks), RANK="0"), timeout=300)
    return None if done.returncode == 0 else done.stderr.strip() or f"status {done.returncode} without a word"


def difference(weft, words, ranks, launcher):
    """None where weft launch passes what weft train does, and else says the same."""
    alone, through = refusal(weft, words, ranks, []), refusal(weft, words, ranks, launcher)
    return None if alone == through else f"--launch says {through}, and weft train {alone}"


def main():
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("weft", type=pathlib.Path)
    asked.add_argument("megatron", type=pathlib.Path)
    asked.add_argument("--launch", action="store_true", help="examples alone, through weft launch")
    asked.add_argument("--all", action="store_true", help="name those that pass too")
    asked.add_argument("--only", choices=FAMILIES, help="the test cases of one family alone")
    asked = asked.parse_args()
    passed, refused, silent = 0, {}, []
    with tempfile.TemporaryDirectory() as folder:
        scratch = pathlib.Path(folder)
        root = asked.megatron.resolve()
        families = [] if asked.launch else [asked.only] if asked.only else FAMILIES
        cases = [case for family in families for case in test_cases(root, family)]
        for name, runs in [*cases, *([] if asked.only else examples(root, scratch))]:
            judge, weft = difference if asked.launch else refusal, str(asked.weft.resolve())
            said = [judge(weft, with_files(words, scratch), ranks_for(words, ranks), launcher if asked.launch else []) for words, ranks, launcher in runs]
            why = next((s for s in said if s), None)
            passed += why is None
            if asked.all and why is None:
                print("pass", name)
            if why:
                refused.setdefault(why.replace(folder, ""), []).append(name)
                if "--" not in why:
                    silent.append(name)
    total = passed + sum(map(len, refused.values()))
    for why, names in sorted(refused.items(), key=lambda item: -len(item[1])):
        print(f"{len(names):3} refused: {why}\n      {', '.join(names)}")
    what = "say through weft launch what weft train says" if asked.launch else "pass"
    print(f"{passed} of {total} {what}: {100 * passed / total:.1f} %, the goal is {100 * GOAL:.0f} %")
    if silent:
        print("refused by a sentence that names no flag:", *silent)
    return 0 if passed >= GOAL * total and not silent else 1


if __name__ == "__main__":
    sys.exit(main())
