#!/usr/bin/env python3
"""Tokenizers against the originals: random ones are trained by tokenizers and sentencepiece, and what weft makes of random
text is compared with what they, transformers and tiktoken make of it. Needs: pip install tokenizers transformers tiktoken
sentencepiece. Usage: text.py [--weft build/release/weft] [--rounds N] [--seed S]. Fails at the first difference of each kind."""
import argparse, base64, glob, io, json, os, random, subprocess, sys, tempfile, unicodedata

import sentencepiece
import tiktoken
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

ARGS = argparse.ArgumentParser()
ARGS.add_argument("--weft", default="build/release/weft")
ARGS.add_argument("--rounds", type=int, default=3)
ARGS.add_argument("--seed", type=int, default=1)
ARGS.add_argument("--only", default="")
ARGS = ARGS.parse_args()
RANDOM = random.Random(ARGS.seed)
WRONG = []

TELLING = ("abcdefghijklmnopqrstuvwxyz ABCDEFGH 0123456789 '.,!?-_(){}<>|#@/\\\"\t\r\n\u00a0\u0085\u1680\u2003\u2028\u3000"
           "éÉßİıſΣσςджЖ中文日本ひらカー한글अक्षरعربעברไทยǅʰªº²½Ⅷ\u0301\u0308\u0930\u200d\u00ad\ufffd🙂👩🏽𝔘𐐀ﬁＡ①㍿▁\u200b\ufeff")
WORDS = ("the of and to in is that it was for on are as with they be at one have this from don't I'm we'll it's GPU 3.14 1999 "
         "tokenizer internationalization naïve café Straße ΟΔΟΣ русский текст 中文字 日本語 かな カタカナ 한국어 foo_bar x=1; "
         "</s> <s> [MASK] <|endoftext|> <tag> HTTPServer camelCase 🙂🙂 e\u0301 ½²").split(" ")


def character():
    if RANDOM.random() < 0.9:
        return RANDOM.choice(TELLING)
    while True:
        c = chr(RANDOM.randrange(1, 0x30000))
        # Every library follows another year of Unicode; on the characters of 2002 all agree.
        if unicodedata.ucd_3_2_0.category(c) not in ("Cn", "Cs", "Co"):
            return c


def text():
    kind = RANDOM.random()
    if kind < 0.4:
        return "".join(character() for _ in range(RANDOM.randrange(0, 40)))
    parts = [RANDOM.choice(WORDS) if RANDOM.random() < 0.85 else character() for _ in range(RANDOM.randrange(0, 30))]
    return RANDOM.choice([" ", " ", "  ", ""]).join(parts)


def corpus():
    out = [text() for _ in range(300)]
    for path in sorted(glob.glob("/usr/share/doc/*/copyright"))[:20]:
        out += open(path, encoding="utf-8", errors="ignore").read()[:20000].split("\n\n")
    return out


CORPUS = corpus()


def weft(verb, flags, lines):
    done = subprocess.run([ARGS.weft, "tokenizer", verb, "--jsonl", *flags], input="".join(json.dumps(l) + "\n" for l in lines),
                          capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(done.stderr.strip())
    return [json.loads(line) for line in done.stdout.split("\n")[:-1]]


def compare(name, flags, encode, decode, texts, show=""):
    try:
        ours = [line["ids"] for line in weft("encode", flags, [{"text": t} for t in texts])]
        theirs = [encode(t) for t in texts]
        for t, mine, yours in zip(texts, ours, theirs):
            if mine != yours:
                raise RuntimeError(f"text {t!r}\n  weft   {mine}\n  theirs {yours}")
        if decode is not None:
            back = [line["text"] for line in weft("decode", flags, [{"ids": ids} for ids in theirs])]
            for ids, mine in zip(theirs, back):
                if mine != decode(ids):
                    raise RuntimeError(f"ids {ids}\n  weft   {mine!r}\n  theirs {decode(ids)!r}")
        print(f"{name}: {len(texts)} texts equal", flush=True)
    except RuntimeError as error:
        WRONG.append(name)
        print(f"{name}: DIFFERS {show}\n  {error}", flush=True)


def any_of(*options):
    return RANDOM.choice(options)()


def normalizer():
    plain = [normalizers.NFC, normalizers.NFD, normalizers.NFKC, normalizers.NFKD, normalizers.Lowercase, normalizers.StripAccents,
             normalizers.Strip, normalizers.Nmt, lambda: normalizers.Prepend("▁"), lambda: normalizers.Replace(" ", "▁"),
             lambda: normalizers.Replace(Regex(r"\s+"), " "), lambda: normalizers.Replace(Regex("[0-9]"), "#"),
             lambda: normalizers.BertNormalizer(lowercase=RANDOM.random() < 0.5, strip_accents=RANDOM.choice([None, True, False]),
                                                clean_text=RANDOM.random() < 0.5, handle_chinese_chars=RANDOM.random() < 0.5)]
    if RANDOM.random() < 0.3:
        return None
    if RANDOM.random() < 0.5:
        return any_of(*plain)
    return normalizers.Sequence([any_of(*plain) for _ in range(3)])


def behavior():
    return RANDOM.choice(["removed", "isolated", "merged_with_previous", "merged_with_next", "contiguous"])


def empty_pattern():
    """One that matches no letter, here or everywhere."""
    return RANDOM.choice(["", Regex(""), Regex("^"), Regex("$"), Regex(r"\b"), Regex(r"(?=\p{Lu})"), Regex(r"(?<=\p{P})"), Regex(r"\p{N}*")])


def pre_tokenizer():
    plain = [pre_tokenizers.BertPreTokenizer, pre_tokenizers.Whitespace, pre_tokenizers.WhitespaceSplit,
             lambda: pre_tokenizers.Punctuation(behavior()), lambda: pre_tokenizers.Digits(RANDOM.random() < 0.5),
             lambda: pre_tokenizers.CharDelimiterSplit("e"),
             lambda: pre_tokenizers.Metaspace(prepend_scheme=RANDOM.choice(["always", "never", "first"]), split=RANDOM.random() < 0.7),
             lambda: pre_tokenizers.Split(" ", behavior()), lambda: pre_tokenizers.Split(empty_pattern(), behavior(), RANDOM.random() < 0.5), lambda: pre_tokenizers.Split(Regex(r"\w+|\s"), behavior(), RANDOM.random() < 0.5),
             lambda: pre_tokenizers.Split(Regex(r"\p{L}+|\p{N}{1,3}|[^\s\p{L}\p{N}]+"), behavior(), RANDOM.random() < 0.5),
             lambda: pre_tokenizers.ByteLevel(add_prefix_space=RANDOM.random() < 0.5, use_regex=RANDOM.random() < 0.5)]
    if RANDOM.random() < 0.5:
        return any_of(*plain)
    return pre_tokenizers.Sequence([any_of(*plain) for _ in range(2)])


def decoder():
    return any_of(lambda: None, decoders.ByteLevel, lambda: decoders.WordPiece(cleanup=RANDOM.random() < 0.5), decoders.Metaspace,
                  lambda: decoders.BPEDecoder("</w>"), decoders.CTC,
                  lambda: decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]))


BYTES = [f"<0x{b:02X}>" for b in range(256)]


def model():
    size = RANDOM.choice([300, 600, 1500])
    kind = RANDOM.choice(["BPE", "BPE", "WordPiece", "Unigram", "WordLevel"])
    special = ["<unk>", "</s>", "[CLS]", "[SEP]", "[MASK]"]
    if kind == "BPE":
        fallback = RANDOM.random() < 0.4
        affix = RANDOM.choice([{}, {}, {"end_of_word_suffix": "</w>"}, {"continuing_subword_prefix": "##"}])
        made = models.BPE(unk_token=RANDOM.choice(["<unk>", None]), fuse_unk=RANDOM.random() < 0.5, byte_fallback=fallback, **affix)
        return made, trainers.BpeTrainer(vocab_size=size + 256 * fallback, special_tokens=special + (BYTES if fallback else []),
                                         show_progress=False, limit_alphabet=RANDOM.choice([40, 200]), **affix)
    if kind == "WordPiece":
        return models.WordPiece(unk_token="<unk>", max_input_chars_per_word=RANDOM.choice([8, 100])), trainers.WordPieceTrainer(
            vocab_size=size, special_tokens=special, show_progress=False, limit_alphabet=60)
    if kind == "WordLevel":
        return models.WordLevel(unk_token="<unk>"), trainers.WordLevelTrainer(vocab_size=size, special_tokens=special, show_progress=False)
    return models.Unigram(), trainers.UnigramTrainer(vocab_size=size, special_tokens=special + (BYTES if RANDOM.random() < 0.4 else []),
                                                     unk_token="<unk>", show_progress=False)


def random_huggingface(folder, number):
    made, trainer = model()
    tokenizer = Tokenizer(made)
    tokenizer.normalizer, tokenizer.pre_tokenizer = normalizer() or tokenizer.normalizer, pre_tokenizer()
    try:
        tokenizer.train_from_iterator(CORPUS, trainer)
    except Exception as error:
        return print(f"huggingface {number}: not trained: {error}")
    tokenizer.decoder = decoder() or tokenizer.decoder
    tokenizer.add_tokens([AddedToken("<tag>", single_word=RANDOM.random() < 0.5, lstrip=RANDOM.random() < 0.5, rstrip=RANDOM.random() < 0.5,
                                     normalized=RANDOM.random() < 0.5), AddedToken("camelCase", normalized=RANDOM.random() < 0.5),
                          AddedToken("of", single_word=True)])
    tokenizer.add_special_tokens(["<|endoftext|>"])
    if RANDOM.random() < 0.5 and tokenizer.token_to_id("[CLS]") is not None:
        tokenizer.post_processor = processors.TemplateProcessing(
            single="[CLS] $A [SEP]", special_tokens=[(t, tokenizer.token_to_id(t)) for t in ("[CLS]", "[SEP]")])
    path = os.path.join(folder, f"hf{number}.json")
    tokenizer.save(path)
    parts = {k: v for k, v in json.load(open(path)).items() if k in ("normalizer", "pre_tokenizer", "decoder")}
    name = f"huggingface {number} {type(made).__name__}"
    compare(name, ["--tokenizer", f"hf:{path}"], lambda t: tokenizer.encode(t).ids,
            lambda ids: tokenizer.decode(ids, skip_special_tokens=False), [text() for _ in range(300)], f"({path}: {json.dumps(parts)})")


def byte_level(folder):
    for name in ("gpt2", "cl100k", "o200k", "v2"):
        out = os.path.join(folder, name)
        with open(os.path.join(folder, "corpus.jsonl"), "w") as file:
            file.writelines(json.dumps({"text": t}) + "\n" for t in CORPUS)
        subprocess.run([ARGS.weft, "tokenizer", "train", "--vocab-size", "2000", "--pattern", name, "--output", out, file.name],
                       check=True, capture_output=True)
        theirs = Tokenizer.from_file(os.path.join(out, "tokenizer.json"))
        texts = [text() for _ in range(500)]
        compare(f"byte-level {name}", ["--tokenizer", f"hf:{out}"], lambda t: theirs.encode(t).ids,
                lambda ids: theirs.decode(ids, skip_special_tokens=False), texts)
        if name == "gpt2":
            compare("gpt2 files", ["--tokenizer", f"gpt2:{out}/vocab.json,{out}/merges.txt"], lambda t: theirs.encode(t).ids, None, texts)
            trained = Tokenizer(models.BPE())
            trained.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
            trained.train_from_iterator(CORPUS, trainers.BpeTrainer(
                vocab_size=2000, min_frequency=2, show_progress=False, special_tokens=["<|endoftext|>"],
                initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
            same = json.loads(trained.to_str())["model"]["merges"] == json.load(open(f"{out}/tokenizer.json"))["model"]["merges"]
            print("training: merges", "equal" if same else "DIFFER", flush=True)
            if not same:
                WRONG.append("training")


def byte_alphabet():
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [b for b in range(256) if b not in printable]
    return {chr(c): b for b, c in [*((b, b) for b in printable), *((b, 256 + k) for k, b in enumerate(others))]}


def tiktokens(folder):
    from tiktoken_ext import openai_public
    alphabet = byte_alphabet()
    vocab = json.load(open(os.path.join(folder, "gpt2", "vocab.json")))
    tokens = [bytes(alphabet[c] for c in t) for t in vocab if t != "<|endoftext|>"]
    tokens = [bytes([b]) for b in range(256)] + [t for t in tokens if len(t) > 1]
    ranks = {t: k for k, t in enumerate(tokens)}
    patterns = {"r50k": openai_public.r50k_pat_str}
    source = open(openai_public.__file__).read()
    patterns["cl100k"] = source.split('"name": "cl100k_base",')[1].split('"""')[1]
    path = os.path.join(folder, "ranks.tiktoken")
    with open(path, "w") as file:
        file.writelines(f"{base64.b64encode(t).decode()} {k}\n" for t, k in ranks.items())
    for name, pattern in patterns.items():
        encoding = tiktoken.Encoding(name, pat_str=pattern, mergeable_ranks=ranks, special_tokens={"<|endoftext|>": len(ranks)})
        compare(f"tiktoken {name}", ["--tokenizer", f"tiktoken:{path}", "--tiktoken-pattern", name],
                lambda t: encoding.encode(t, allowed_special="all"), encoding.decode, [text() for _ in range(500)])


def sentencepieces(folder):
    for kind in ("unigram", "bpe"):
        for extra in ({}, {"byte_fallback": True, "normalization_rule_name": "identity", "remove_extra_whitespaces": False}):
            stream = io.BytesIO()
            sentencepiece.SentencePieceTrainer.train(sentence_iterator=iter([t for t in CORPUS if t.strip()]), model_writer=stream, vocab_size=900,
                                                     model_type=kind, character_coverage=0.98, minloglevel=2, hard_vocab_limit=False, **extra)
            path = os.path.join(folder, f"{kind}{len(extra)}.model")
            open(path, "wb").write(stream.getvalue())
            theirs = sentencepiece.SentencePieceProcessor(model_proto=stream.getvalue())
            compare(f"sentencepiece {kind} {extra}", ["--tokenizer", f"spm:{path}"], theirs.encode, theirs.decode,
                    [text().replace("\x00", "") for _ in range(300)])


def berts(folder):
    from transformers import BertTokenizerFast
    made = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    made.normalizer, made.pre_tokenizer = normalizers.BertNormalizer(), pre_tokenizers.BertPreTokenizer()
    made.train_from_iterator(CORPUS, trainers.WordPieceTrainer(vocab_size=1500, show_progress=False, limit_alphabet=200,
                                                               special_tokens=["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]))
    path = os.path.join(folder, "vocab.txt")
    vocab = made.get_vocab()
    open(path, "w").write("".join(t + "\n" for t in sorted(vocab, key=vocab.get)))
    for name, lower in (("bert", True), ("bert-cased", False)):
        theirs = BertTokenizerFast(vocab=vocab, do_lower_case=lower) if not hasattr(BertTokenizerFast, "vocab_file") else BertTokenizerFast(path, do_lower_case=lower)
        compare(name, ["--tokenizer", f"{name}:{path}"], lambda t: theirs(t, add_special_tokens=False).input_ids, None,
                [text() for _ in range(500)])


NAMES = ("bos", "eos", "unk", "sep", "pad", "cls", "mask")


def some_token():
    return RANDOM.choice(["<tag>", "camelCase", "of", "[MASK]", "<s>", "</s>", "HTTPServer", "<|endoftext|>", "GPU", "Straße", "the", "[CLS]"])


def flags_of(content):
    one = {"content": content, **{flag: RANDOM.random() < 0.3 for flag in ("lstrip", "rstrip", "single_word", "special")}}
    return {**one, "normalized": RANDOM.random() < 0.5}


def names_beside():
    """What the files beside a tokenizer.json say of its tokens: {file: content}."""
    config = {"tokenizer_class": "PreTrainedTokenizerFast", "clean_up_tokenization_spaces": False}
    files = {"tokenizer_config.json": config}
    named = {f"{name}_token": RANDOM.choice([some_token(), {"__type": "AddedToken", **flags_of(some_token())}]) for name in RANDOM.sample(NAMES, 3)}
    if RANDOM.random() < 0.6:
        config.update(named)
        config["added_tokens_decoder"] = {str(RANDOM.randrange(5000)): flags_of(some_token()) for _ in range(RANDOM.randrange(4))}
    else:
        files["special_tokens_map.json"] = {k: v if isinstance(v, str) else {w: x for w, x in v.items() if w not in ("__type", "special")} for k, v in named.items()}
        if RANDOM.random() < 0.5:
            files["added_tokens.json"] = {some_token(): 5000 + number for number in range(3)}
    if RANDOM.random() < 0.4:
        config[RANDOM.choice(["additional_special_tokens", "extra_special_tokens"])] = sorted({some_token() for _ in range(2)})
    if RANDOM.random() < 0.2:
        config["image_token"] = some_token()
    if RANDOM.random() < 0.2 and "added_tokens_decoder" in config:
        config["split_special_tokens"] = True
    return files


def random_names(folder, number):
    from transformers import AutoTokenizer
    made, trainer = model()
    tokenizer = Tokenizer(made)
    tokenizer.normalizer, tokenizer.pre_tokenizer = RANDOM.choice([None, normalizers.Lowercase()]) or tokenizer.normalizer, pre_tokenizers.WhitespaceSplit()
    try:
        tokenizer.train_from_iterator(CORPUS, trainer)
    except Exception as error:
        return print(f"names {number}: not trained: {error}")
    # Where ids have holes tokenizers gives a new token the id of another.
    if max(tokenizer.get_vocab().values()) >= tokenizer.get_vocab_size():
        return None
    for content in sorted({some_token() for _ in range(RANDOM.randrange(4))}):
        said = flags_of(content)
        said.pop("content")
        (tokenizer.add_special_tokens if said["special"] else tokenizer.add_tokens)([AddedToken(content, **said)])
    own = os.path.join(folder, f"named{number}")
    os.makedirs(own)
    tokenizer.save(os.path.join(own, "tokenizer.json"))
    files = names_beside()
    for name, content in files.items():
        json.dump(content, open(os.path.join(own, name), "w"))
    theirs = AutoTokenizer.from_pretrained(own)
    compare(f"names {number} {type(made).__name__}", ["--tokenizer", f"hf:{own}"], lambda t: theirs(t).input_ids,
            None, [text() for _ in range(200)], f"({own}: {json.dumps(files)})")
    said = json.loads(subprocess.run([ARGS.weft, "tokenizer", "inspect", "--json", "--tokenizer", f"hf:{own}"], capture_output=True, text=True, check=True).stdout)
    if said["vocabulary"] != len(theirs):
        WRONG.append(f"names {number}")
        print(f"names {number}: weft has {said['vocabulary']} tokens, transformers {len(theirs)}: {json.dumps(files)}")


def main():
    with tempfile.TemporaryDirectory() as made:
        folder = os.environ.get("KEEP", made)
        steps = {"byte-level": byte_level, "tiktoken": tiktokens, "sentencepiece": sentencepieces, "bert": berts}
        for name, step in steps.items():
            if ARGS.only in ("", name) or (ARGS.only == "tiktoken" and name == "byte-level"):
                step(folder)
        for number in range(ARGS.rounds * 10 if ARGS.only in ("", "huggingface") else 0):
            random_huggingface(folder, number)
        for number in range(ARGS.rounds * 10 if ARGS.only in ("", "names") else 0):
            random_names(folder, number)
    if WRONG:
        sys.exit(f"different: {', '.join(WRONG)}")


if __name__ == "__main__":
    main()
