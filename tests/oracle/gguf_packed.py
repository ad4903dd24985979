#!/usr/bin/env python3
"""GGUF files of few bits as llama.cpp makes them: gguf_packed.py [--weft build/release/weft] [NAME...]. weft makes a file of f32 of a random model, llama.cpp's own quantizer files of
every mixture of types that weft reads, and weft reads these back: each tensor must be, to the bit, what weft reads of the f32 file where gguf-py put the numbers that it reads of the
same tensor. llama.cpp's logits of the file must be near those that transformers computes of what weft read. Needs: torch, transformers, safetensors, gguf, llama-cpp-python."""
import argparse, ctypes, pathlib, shutil, subprocess, sys, tempfile, warnings

warnings.filterwarnings("ignore")
sys.path.pop(0)  # where this file lies, beside which is one called as a module that it needs
import gguf, numpy, torch, transformers
from llama_cpp import llama_cpp as L
from safetensors.torch import load_file

ARGS = argparse.ArgumentParser()
ARGS.add_argument("--weft", default="build/release/weft")
ARGS.add_argument("names", nargs="*")
ARGS = ARGS.parse_args()
QUIET = L.llama_log_callback(lambda level, text, data: None)
L.llama_log_set(QUIET, ctypes.c_void_p(0))
transformers.utils.logging.set_verbosity_error()
transformers.utils.logging.disable_progress_bar()
# llama.cpp's numbers for mixtures of types, and how far logits may be from those of the same numbers: it rounds what they are multiplied by to eight bits, too.
MIXTURES = {"Q4_0": 2, "Q4_1": 3, "Q8_0": 7, "Q5_0": 8, "Q5_1": 9, "Q2_K": 10, "Q3_K_S": 11, "Q3_K_M": 12, "Q3_K_L": 13, "Q4_K_S": 14, "Q4_K_M": 15, "Q5_K_S": 16, "Q5_K_M": 17, "Q6_K": 18,
            "IQ4_NL": 25, "IQ4_XS": 30}
NEAR = 0.1
SIZES = dict(num_hidden_layers=2, num_attention_heads=4, max_position_embeddings=128, vocab_size=512, initializer_range=0.1)
MODELS = {
    "llama": lambda: transformers.LlamaConfig(hidden_size=256, num_key_value_heads=2, intermediate_size=512, **SIZES),
    "qwen2": lambda: transformers.Qwen2Config(hidden_size=256, num_key_value_heads=4, intermediate_size=288, tie_word_embeddings=True, **SIZES),  # rows of 288 have no blocks of 256
    "gpt2": lambda: transformers.GPT2Config(n_embd=256, n_layer=2, n_head=4, n_positions=128, vocab_size=512),
}


def run(*words):
    done = subprocess.run([ARGS.weft, *map(str, words)], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"weft {' '.join(map(str, words))}: {done.stderr.strip()}")


def quantized(source, to, mixture):
    how = L.llama_model_quantize_default_params()
    how.ftype, how.nthread = mixture, 1
    if L.llama_model_quantize(str(source).encode(), str(to).encode(), ctypes.byref(how)) != 0:
        sys.exit(f"llama.cpp makes no {to.name}")


def spread(source, packed, to):
    """The f32 file, with what gguf-py reads of each tensor of the other one; which types that has."""
    shutil.copy(source, to)
    theirs = {one.name: one for one in gguf.GGUFReader(packed).tensors}
    for one in gguf.GGUFReader(to, "r+").tensors:
        numbers = gguf.quants.dequantize(theirs[one.name].data, theirs[one.name].tensor_type)
        one.data[:] = numbers.reshape(one.data.shape)
    return sorted({one.tensor_type.name for one in theirs.values()})


def logits_of_llama(path, ids):
    model = L.llama_model_load_from_file(str(path).encode(), L.llama_model_default_params())
    how = L.llama_context_default_params()
    how.n_ctx = how.n_batch = how.n_ubatch = 128
    how.flash_attn_type, how.type_k, how.type_v = 0, 0, 0
    context = L.llama_init_from_model(model, how)
    batch = L.llama_batch_init(len(ids), 0, 1)
    batch.n_tokens = len(ids)
    for i, token in enumerate(ids):
        batch.token[i], batch.pos[i], batch.n_seq_id[i], batch.logits[i] = token, i, 1, 1
        batch.seq_id[i][0] = 0
    assert L.llama_decode(context, batch) == 0
    words = L.llama_vocab_n_tokens(L.llama_model_get_vocab(model))
    return numpy.array([numpy.ctypeslib.as_array(L.llama_get_logits_ith(context, i), (words,)).copy() for i in range(len(ids))])


def ask(name, mixture, folder):
    packed, want, found = folder / f"{mixture}.gguf", folder / "want", folder / "found"
    quantized(folder / "f32.gguf", packed, MIXTURES[mixture])
    types = spread(folder / "f32.gguf", packed, folder / "spread.gguf")
    for source, to in ((packed, found), (folder / "spread.gguf", want)):
        shutil.rmtree(to, ignore_errors=True)
        run("checkpoint", "convert", source, to, "--to", "hf", "--dtype", "f32")
    ours, theirs = load_file(found / "model.safetensors"), load_file(want / "model.safetensors")
    same = ours.keys() == theirs.keys() and all(torch.equal(ours[one], theirs[one]) for one in ours)
    ids = [(7 * i * i + 3 * i + 1) % 512 for i in range(40)]
    with torch.no_grad():
        model = transformers.AutoModelForCausalLM.from_pretrained(found, attn_implementation="eager").eval()
        mine = model(torch.tensor([ids])).logits[0].numpy()
    apart = abs(logits_of_llama(packed, ids) - mine).max() / abs(mine).max()
    print(f"{name} {mixture} ({', '.join(types)}): {'the same numbers' if same else 'OTHER NUMBERS'}, logits within {apart:.1g} of the largest", flush=True)
    return same and apart < NEAR


wrong = 0
for name, made in MODELS.items():
    if ARGS.names and name not in ARGS.names:
        continue
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        torch.manual_seed(5)
        transformers.AutoModelForCausalLM.from_config(made()).save_pretrained(folder / "hf")
        run("checkpoint", "convert", folder / "hf", folder / "f32.gguf", "--dtype", "f32")
        wrong += sum(not ask(name, mixture, folder) for mixture in MIXTURES)
sys.exit(f"{wrong} files are read otherwise" if wrong else 0)
