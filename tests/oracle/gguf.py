#!/usr/bin/env python3
"""What llama.cpp makes of the GGUF files that weft writes: gguf.py [--weft build/release/weft] [--llama-cpp DIR] [NAME...]. Random small models of every architecture are saved by
transformers, each with a tokenizer that is trained on the spot; weft makes files of f32, bf16 and q8_0 of them. llama.cpp's logits, its likeliest tokens and its tokens of odd texts must
be transformers', q8_0 must be gguf-py's to the bit, and what weft reads back must be the model's own tensors. With the sources of llama.cpp (--llama-cpp) tensors and keys of its own
converter must be those that weft wrote. Needs: torch, transformers, sentencepiece, gguf, llama-cpp-python."""
import argparse, ctypes, io, json, pathlib, subprocess, sys, tempfile, warnings

warnings.filterwarnings("ignore")
sys.path.pop(0)  # where this file lies, which is called as a module that it needs
import gguf, llama_cpp, numpy, sentencepiece, tokenizers, torch, transformers
from llama_cpp import llama_cpp as L
from safetensors.torch import load_file
from tokenizers import decoders, models, normalizers, pre_tokenizers, processors, trainers

ARGS = argparse.ArgumentParser()
ARGS.add_argument("--weft", default="build/release/weft")
ARGS.add_argument("--llama-cpp", help="llama.cpp's sources, for its converter")
ARGS.add_argument("names", nargs="*")
ARGS = ARGS.parse_args()
WRONG = []
transformers.utils.logging.set_verbosity_error()
transformers.utils.logging.disable_progress_bar()

# ---- tokenizers

LETTERS = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}%s| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
CASES = r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+%s|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*%s|\p{N}%s| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
SHORT = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
SPLITS = {  # by llama.cpp's names: expressions, single digits, whether GPT-2's expression follows, whether merges are ignored
    "gpt-2": ([], False, True, False),
    "llama-bpe": ([LETTERS % "{1,3}"], False, False, True),
    "smaug-bpe": ([LETTERS % "{1,3}"], False, False, False),
    "qwen2": ([LETTERS % ""], False, False, False),
    "qwen35": ([r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"], False, False, False),
    "tekken": ([CASES % ("", "", "")], False, False, True),
    "gpt-4o": ([CASES % (SHORT, SHORT, "{1,3}")], False, False, False),
    "starcoder": ([], True, True, False),
    "deepseek-v3": ([r"\p{N}{1,3}", "[一-龥぀-ゟ゠-ヿ]+",
                     r"""[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"""], False, False, False),
}
ODD = ["", " ", "  two  spaces ", "Hello world", "It's you're I'LL we'Ve 'S", "123 4567 89012 3.14", "\n\n\r\n x\t\ty \n", "naïve Ärger ΣΊΣΥΦΟΣ ñandú", "日本語 と 中文 한국어", "🙂🙃 👩‍👩‍👧 é́",
       "<|begin|>text<|end|> <tool>", "def f(x):\n    return x**2  # ok\n", "a" * 40, "ﬁ ½ ² Ⅷ", "!!!??...---", "https://weft.example/a?b=1&c=%20", "\u200b\u00a0nbsp", "ALLCAPS mixedCase snake_case"]


def corpus():
    return [path.read_text() for path in sorted((pathlib.Path(__file__).parents[2] / "docs").glob("*.md"))] + ODD


def byte_level(pre, folder, begin):
    expressions, digits, words, ignores = SPLITS[pre]
    tokenizer = tokenizers.Tokenizer(models.BPE(ignore_merges=ignores))
    steps = [pre_tokenizers.Split(tokenizers.Regex(one), "isolated") for one in expressions]
    steps += [pre_tokenizers.Digits(individual_digits=True)] if digits else []
    steps += [pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=words)]
    tokenizer.pre_tokenizer = steps[0] if len(steps) == 1 else pre_tokenizers.Sequence(steps)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.train_from_iterator(corpus(), trainers.BpeTrainer(vocab_size=700, show_progress=False, initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    tokenizer.add_special_tokens(["<|begin|>", "<|end|>", "<|endoftext|>"])  # the last is added to some by their programs
    tokenizer.add_tokens([tokenizers.AddedToken("<tool>", normalized=False)])
    if begin:
        tokenizer.post_processor = processors.TemplateProcessing(single="<|begin|> $A", special_tokens=[("<|begin|>", tokenizer.token_to_id("<|begin|>"))])
    made = transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, bos_token="<|begin|>", eos_token="<|end|>")
    made.chat_template = "{% for m in messages %}{{ m.content }}{% endfor %}"
    made.save_pretrained(folder)
    return lambda text: made.encode(text)


def pieces(folder, space):
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(sentence_iterator=iter(corpus()), model_writer=model, vocab_size=600, model_type="bpe", byte_fallback=True, normalization_rule_name="identity",
                                             remove_extra_whitespaces=False, add_dummy_prefix=space, character_coverage=0.98, max_sentence_length=100000, minloglevel=2)
    (folder / "tokenizer.model").write_bytes(model.getvalue())
    made = sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())
    return lambda text: [made.bos_id()] + made.encode(text)


def pieces_as_merges(folder, space):
    """The same pieces as transformers stores them: a tokenizer.json of merges, and no scores."""
    ids = pieces(folder, space)
    from transformers.convert_slow_tokenizer import generate_merges
    made = sentencepiece.SentencePieceProcessor(model_file=str(folder / "tokenizer.model"))
    (folder / "tokenizer.model").unlink()
    scored = [(made.id_to_piece(i), made.get_score(i)) for i in range(made.get_piece_size())]
    vocab = {piece: i for i, (piece, _) in enumerate(scored)}
    tokenizer = tokenizers.Tokenizer(models.BPE(vocab, generate_merges(vocab, dict(scored)), unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    tokenizer.normalizer = normalizers.Sequence(([normalizers.Prepend("▁")] if space else []) + [normalizers.Replace(" ", "▁")])
    tokenizer.add_special_tokens(["<unk>", "<s>", "</s>"])
    tokenizer.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 1)])
    tokenizer.save(str(folder / "tokenizer.json"))
    (folder / "tokenizer_config.json").write_text(json.dumps(dict(tokenizer_class="PreTrainedTokenizerFast", bos_token="<s>", eos_token="</s>", unk_token="<unk>")))
    return ids


# ---- models

SIZES = dict(hidden_size=64, num_hidden_layers=3, num_attention_heads=4, num_key_value_heads=2, intermediate_size=96, max_position_embeddings=128, vocab_size=720, initializer_range=0.3)


def config(kind, **more):
    return lambda: getattr(transformers, kind)(**{**SIZES, **more})


YARN = dict(rope_type="yarn", factor=4.0, original_max_position_embeddings=32, rope_theta=10000.0)
LLAMA3 = dict(rope_type="llama3", factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0, original_max_position_embeddings=32, rope_theta=5000.0)
ENDS = dict(bos_token_id=1, eos_token_id=2, pad_token_id=None)  # as the pieces' tokenizers have them
MODELS = {
    "llama2": (config("LlamaConfig"), "pieces"),
    "llama2_merges": (config("LlamaConfig", attention_bias=True, mlp_bias=True), "merges"),
    "llama3": (config("LlamaConfig", rope_parameters=LLAMA3, tie_word_embeddings=True), "llama-bpe"),
    "llama_linear": (config("LlamaConfig", head_dim=32, rope_parameters=dict(rope_type="linear", factor=2.0, rope_theta=10000.0)), "smaug-bpe"),
    "mistral": (config("MistralConfig", sliding_window=None), "tekken"),
    "mixtral": (config("MixtralConfig", num_local_experts=4, num_experts_per_tok=2, sliding_window=None), "pieces"),
    "qwen2": (config("Qwen2Config", tie_word_embeddings=True), "qwen2"),
    "qwen2_yarn": (config("Qwen2Config", rope_parameters=YARN), "qwen35"),
    "qwen3": (config("Qwen3Config", head_dim=32), "qwen2"),
    "qwen2_moe": (config("Qwen2MoeConfig", num_experts=4, num_experts_per_tok=2, moe_intermediate_size=48, shared_expert_intermediate_size=64, tie_word_embeddings=False), "qwen2"),
    "qwen3_moe": (config("Qwen3MoeConfig", num_experts=4, num_experts_per_tok=2, moe_intermediate_size=64, head_dim=32, norm_topk_prob=True), "qwen2"),
    "gemma": (config("GemmaConfig", head_dim=32, **ENDS), "bare_pieces"),
    "gemma2": (config("Gemma2Config", head_dim=32, query_pre_attn_scalar=32, sliding_window=16, **ENDS), "bare_pieces"),
    "gemma3": (config("Gemma3TextConfig", head_dim=32, query_pre_attn_scalar=32, sliding_window=16, num_hidden_layers=7, **ENDS), "bare_pieces"),
    "phi3": (config("Phi3Config", sliding_window=None, rope_parameters=dict(rope_type="default", rope_theta=10000.0, partial_rotary_factor=0.5), **ENDS), "pieces"),
    "olmo2": (config("Olmo2Config", **{**ENDS, "eos_token_id": None}), "llama-bpe"),
    "granite": (config("GraniteConfig", attention_multiplier=0.3, embedding_multiplier=5.0, residual_multiplier=0.4, logits_scaling=3.0), "starcoder"),
    "glm4": (config("Glm4Config", head_dim=32, attention_bias=True, pad_token_id=0), "smaug-bpe"),
    "gpt2": (lambda: transformers.GPT2Config(n_embd=64, n_layer=3, n_head=4, n_positions=128, vocab_size=720, initializer_range=0.3), "gpt-2"),
}


def biased(model):
    """Biases and gains begin as zeros and ones, of which a wrong place would not be seen."""
    with torch.no_grad():
        for name, p in model.named_parameters():
            if p.ndim == 1:
                p.add_(torch.randn_like(p) * 0.2)
    return model.eval()


# ---- llama.cpp

QUIET = L.llama_log_callback(lambda level, text, data: SAID.append(text.decode(errors="replace")) if level >= 3 else None)
SAID = []
L.llama_log_set(QUIET, ctypes.c_void_p(0))


class Llama:
    def __init__(self, path):
        SAID.clear()
        self.model = L.llama_model_load_from_file(str(path).encode(), L.llama_model_default_params())
        if not self.model:
            raise RuntimeError("llama.cpp refuses it: " + "".join(SAID).strip())
        self.vocab = L.llama_model_get_vocab(self.model)
        how = L.llama_context_default_params()
        how.n_ctx = how.n_batch = how.n_ubatch = 128
        how.flash_attn_type, how.type_k, how.type_v = 0, 0, 0  # keys and values in f32
        how.swa_full = True
        self.context = L.llama_init_from_model(self.model, how)

    def logits(self, ids):
        L.llama_memory_clear(L.llama_get_memory(self.context), True)
        batch = L.llama_batch_init(len(ids), 0, 1)
        batch.n_tokens = len(ids)
        for i, token in enumerate(ids):
            batch.token[i], batch.pos[i], batch.n_seq_id[i], batch.logits[i] = token, i, 1, 1
            batch.seq_id[i][0] = 0
        assert L.llama_decode(self.context, batch) == 0
        words = L.llama_vocab_n_tokens(self.vocab)
        out = numpy.array([numpy.ctypeslib.as_array(L.llama_get_logits_ith(self.context, i), (words,)).copy() for i in range(len(ids))])
        L.llama_batch_free(batch)
        return out

    def tokens(self, text):
        raw = text.encode()
        room = (L.llama_token * (len(raw) + 8))()
        return list(room[:L.llama_tokenize(self.vocab, raw, len(raw), room, len(room), True, True)])


# ---- what is asked

def run(*words):
    done = subprocess.run([ARGS.weft, *map(str, words)], capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"weft {' '.join(map(str, words[:3]))}: {done.stderr.strip()}")


def check(name, what, holds, more=""):
    if not holds:
        WRONG.append(f"{name}: {what} {more}")


def greedy(next_logits, ids, count=12):
    for _ in range(count):
        ids = ids + [int(next_logits(ids)[-1].argmax())]
    return ids


def compare_logits(name, model, folder, tolerance):
    ids = [(7 * i * i + 3 * i + 1) % 720 for i in range(40)]
    theirs = lambda tokens: model(torch.tensor([tokens])).logits[0].numpy()
    with torch.no_grad():
        want = theirs(ids)
        llama = Llama(folder / "f32.gguf")
        apart = abs(llama.logits(ids) - want).max() / abs(want).max()
        check(name, "llama.cpp's logits differ", apart < tolerance, f"by {apart:.2g} of the largest")
        check(name, "likeliest tokens differ", greedy(llama.logits, ids[:5]) == greedy(theirs, ids[:5]))
        for type, most in (("bf16", 0.4), ("q8_0", 1)):  # what is rounded a little goes to other experts, and llama.cpp rounds what q8_0 is multiplied by, too
            rounded = abs(Llama(folder / f"{type}.gguf").logits(ids) - want).max() / abs(want).max()
            check(name, f"{type}: llama.cpp's logits differ", rounded < most, f"by {rounded:.2g} of the largest")
    return llama, apart


def compare_tokens(name, llama, ids_of):
    for text in ODD:
        want, found = ids_of(text), llama.tokens(text)
        check(name, f"tokens of {text!r} differ:", text == "" or found == want, f"{found}, expected {want}")


def compare_blocks(name, folder):
    full = {one.name: one for one in gguf.GGUFReader(folder / "f32.gguf").tensors}
    for one in gguf.GGUFReader(folder / "q8_0.gguf").tensors:
        if one.tensor_type == gguf.GGMLQuantizationType.Q8_0:
            want = gguf.quants.quantize(full[one.name].data, gguf.GGMLQuantizationType.Q8_0)
            check(name, f"{one.name}: q8_0 is not gguf-py's", numpy.array_equal(one.data, want))


def compare_back(name, folder):
    run("checkpoint", "convert", folder / "f32.gguf", folder / "back", "--to", "hf")
    want, found = load_file(folder / "hf/model.safetensors"), load_file(folder / "back/model.safetensors")
    for tensor in sorted({*want, *found}):
        near = 2**-23 if "gemma" in name and tensor.endswith("norm.weight") else 0  # a file holds gains and one more
        same = tensor in want and tensor in found and torch.allclose(want[tensor], found[tensor], rtol=0, atol=near)
        tied = tensor == "lm_head.weight" and tensor not in found
        check(name, f"{tensor} is not what it was", same or tied)


CONVERTER = """
import sys; sys.path.insert(0, sys.argv[1]); sys.path.insert(1, sys.argv[1] + "/gguf-py"); sys.argv[1:] = sys.argv[2:]
pre = sys.argv.pop()
from conversion.base import TextModel
TextModel.get_vocab_base_pre = lambda self, tokenizer: pre
import convert_hf_to_gguf; convert_hf_to_gguf.main()
"""
OURS_ALONE = {"general.name"}
# A number, whatever the tokenizer says; and what stretches nothing.
SAID_FOR_NOTHING = {"tokenizer.ggml.eot_token_id", "phi3.rope.scaling.original_context_length"}


def compare_converter(name, folder, pre):
    done = subprocess.run([sys.executable, "-c", CONVERTER, ARGS.llama_cpp, str(folder / "hf"), "--outfile", str(folder / "theirs.gguf"), "--outtype", "f32", pre], capture_output=True, text=True)
    if done.returncode:
        return check(name, "llama.cpp's converter fails:", False, done.stderr.strip()[-300:])
    want, found = gguf.GGUFReader(folder / "theirs.gguf"), gguf.GGUFReader(folder / "f32.gguf")
    theirs, ours = ({one.name: one for one in reader.tensors} for reader in (want, found))
    check(name, "tensors of llama.cpp's converter are others:", theirs.keys() == ours.keys(), str(theirs.keys() ^ ours.keys()))
    for tensor in theirs.keys() & ours.keys():
        same = numpy.array_equal(theirs[tensor].data, ours[tensor].data) if tensor != "rope_freqs.weight" else numpy.allclose(theirs[tensor].data, ours[tensor].data, rtol=1e-6)
        check(name, f"{tensor} is not that of llama.cpp's converter", same)
    for key, field in want.fields.items():
        if key.startswith("GGUF.") or key.startswith("general.") or key in OURS_ALONE | SAID_FOR_NOTHING:
            continue
        mine = found.get_field(key)
        same = mine is not None and (numpy.allclose(mine.contents(), field.contents()) if "scores" in key else mine.contents() == field.contents())
        check(name, f"{key} of llama.cpp's converter is", same, f"{str(field.contents())[:120]}, ours {str(mine.contents())[:120] if mine else 'missing'}")


def ask(name, made, tokenizer, folder):
    torch.manual_seed(len(name))
    model = biased(transformers.AutoModelForCausalLM.from_config(made(), attn_implementation="eager"))
    model.save_pretrained(folder / "hf")
    if name == "gpt2":  # whose other name for its places llama.cpp's converter wants
        said = json.loads((folder / "hf/config.json").read_text())
        (folder / "hf/config.json").write_text(json.dumps({**said, "n_ctx": said["n_positions"]}))
    ids_of = {"pieces": pieces, "bare_pieces": lambda to, _: pieces(to, False), "merges": pieces_as_merges}.get(tokenizer, lambda to, begin: byte_level(tokenizer, to, begin))(folder / "hf", True)
    for type in ("f32", "bf16", "q8_0"):
        run("checkpoint", "convert", folder / "hf", folder / f"{type}.gguf", "--dtype", type)
    llama, apart = compare_logits(name, model, folder, 3e-3 if "gpt2" in name or "gemma" in name else 1e-4)
    compare_tokens(name, llama, ids_of)
    compare_blocks(name, folder)
    compare_back(name, folder)
    if ARGS.llama_cpp and tokenizer != "merges" and name != "glm4":  # of which the converter wants its own tokenizer
        compare_converter(name, folder, tokenizer)
    print(f"{name}: logits within {apart:.1g} of the largest", flush=True)


for name, (made, tokenizer) in MODELS.items():
    if ARGS.names and name not in ARGS.names:
        continue
    with tempfile.TemporaryDirectory() as folder:
        try:
            ask(name, made, tokenizer, pathlib.Path(folder))
        except Exception as error:
            WRONG.append(f"{name}: {type(error).__name__}: {str(error)[:600]}")
for pre in SPLITS if not ARGS.names else ():
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        biased(transformers.AutoModelForCausalLM.from_config(config("LlamaConfig", num_hidden_layers=1)())).save_pretrained(folder / "hf")
        ids_of = byte_level(pre, folder / "hf", pre in ("llama-bpe", "tekken"))
        try:
            run("checkpoint", "convert", folder / "hf", folder / "one.gguf")
            compare_tokens(f"splits of {pre}", Llama(folder / "one.gguf"), ids_of)
        except Exception as error:
            WRONG.append(f"splits of {pre}: {error}")
print("\n".join(WRONG) or "llama.cpp computes what transformers does, and its converter writes what weft does")
sys.exit(1 if WRONG else 0)
