#!/usr/bin/env python3
"""GGUF files as llama.cpp's own Python package writes them: make.py, beside which it writes. all_kinds.gguf has every kind of value and number; its numbers are in all_kinds.json, as
gguf-py reads them. packed.gguf has two rows of random blocks of each type of few bits, and beside each what gguf-py reads of it. llama3.gguf and gpt2_q8_0.gguf are the models of ../llama3 and ../gpt2, permuted and turned here by numpy. Needs: gguf 0.17 or newer, safetensors."""
import json, pathlib

import gguf, numpy
from safetensors.numpy import load_file

HERE = pathlib.Path(__file__).parent
TYPES = {"f32": gguf.GGMLQuantizationType.F32, "f16": gguf.GGMLQuantizationType.F16, "bf16": gguf.GGMLQuantizationType.BF16, "q8_0": gguf.GGMLQuantizationType.Q8_0}


def finish(writer):
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def put(writer, name, values, kind):
    values = numpy.ascontiguousarray(values, dtype=numpy.float32)
    if kind == "f32":
        return writer.add_tensor(name, values)
    writer.add_tensor(name, gguf.quants.quantize(values, TYPES[kind]), raw_dtype=TYPES[kind])


def all_kinds():
    writer = gguf.GGUFWriter(HERE / "all_kinds.gguf", "test")
    for name in ("uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64"):
        getattr(writer, f"add_{name}")(f"one.{name}", 200 if name == "uint8" else -3 if name[0] == "i" else 40000)
    writer.add_float32("one.float32", 1e-5)
    writer.add_float64("one.float64", 0.1)
    writer.add_bool("one.bool", True)
    writer.add_string("one.string", "Ärger")
    writer.add_array("list.int32", [1, -2, 3])
    writer.add_array("list.float32", [0.5, -1.25])
    writer.add_array("list.string", ["a", "", "日本"])
    writer.add_array("list.bool", [True, False])
    rng = numpy.random.default_rng(5)
    values = rng.standard_normal((6, 64)).astype(numpy.float32)
    values[0, :32] = (numpy.arange(32) - 16) / 2  # halves, which round away from zero
    values[0, 5] = 127 / 2 * 2
    values[1, :32] = 0
    values[2, :32] *= 1e-7  # of which f16 has no scale
    values[3, :32] *= 1e4
    for kind in TYPES:
        put(writer, f"numbers.{kind}", values, kind)
    finish(writer)
    read = {one.name: one for one in gguf.GGUFReader(HERE / "all_kinds.gguf").tensors}
    said = {name: gguf.quants.dequantize(one.data, one.tensor_type).astype(float).ravel().tolist() for name, one in read.items()}
    (HERE / "all_kinds.json").write_text(json.dumps(said) + "\n")


# Where blocks have their scales in f16.
PACKED = {"Q4_0": (0,), "Q4_1": (0, 2), "Q5_0": (0,), "Q5_1": (0, 2), "Q8_0": (0,), "Q2_K": (80, 82), "Q3_K": (108,), "Q4_K": (0, 2), "Q5_K": (0, 2), "Q6_K": (208,), "IQ4_NL": (0,), "IQ4_XS": (0,)}


def packed():
    writer = gguf.GGUFWriter(HERE / "packed.gguf", "test")
    rng = numpy.random.default_rng(6)
    for name, scales in PACKED.items():
        kind = gguf.GGMLQuantizationType[name]
        numbers, size = gguf.GGML_QUANT_SIZES[kind]
        blocks = rng.integers(0, 256, (512 // numbers, size), dtype=numpy.uint8)
        for at in scales:
            blocks[:, at : at + 2] = rng.standard_normal((len(blocks), 1)).astype(numpy.float16).view(numpy.uint8)
        blocks = blocks.reshape(2, -1)
        writer.add_tensor(f"packed.{name}", blocks, raw_dtype=kind)
        writer.add_tensor(f"numbers.{name}", gguf.quants.dequantize(blocks, kind).astype(numpy.float32))
    finish(writer)


def packed_model():
    """A model of one layer whose weights have few bits, for the fuzzer to begin with."""
    writer = gguf.GGUFWriter(HERE.parents[3] / "fuzz/exchange/gguf_seeds/packed.gguf", "llama")
    writer.add_block_count(1)
    writer.add_context_length(8)
    writer.add_embedding_length(256)
    writer.add_feed_forward_length(16)
    writer.add_head_count(1)
    writer.add_key_length(8)
    writer.add_value_length(8)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_tokenizer_model("none")
    rng = numpy.random.default_rng(7)
    for name, rows, type in (("token_embd", 8, "Q4_K"), ("blk.0.attn_q", 8, "Q5_K"), ("blk.0.attn_k", 8, "Q6_K"), ("blk.0.attn_v", 8, "Q2_K"), ("blk.0.ffn_gate", 16, "Q3_K"),
                             ("blk.0.ffn_up", 16, "IQ4_XS")):
        kind = gguf.GGMLQuantizationType[type]
        blocks = rng.integers(0, 60, (rows, gguf.GGML_QUANT_SIZES[kind][1]), dtype=numpy.uint8)  # no scale of 60 * 256 is infinite
        writer.add_tensor(name + ".weight", blocks, raw_dtype=kind)
    for name, shape in (("blk.0.attn_output", (256, 8)), ("blk.0.ffn_down", (256, 16)), ("blk.0.attn_norm", (256,)), ("blk.0.ffn_norm", (256,)), ("output_norm", (256,))):
        put(writer, name + ".weight", rng.standard_normal(shape), "f16" if len(shape) == 2 else "f32")
    finish(writer)


def halves_in_turn(rows, heads):
    """Of each head the two halves in turn, as llama.cpp's llama has queries and keys."""
    return rows.reshape(heads, 2, rows.shape[0] // heads // 2, *rows.shape[1:]).swapaxes(1, 2).reshape(rows.shape)


def llama3():
    theirs = load_file(HERE.parent / "llama3/model.safetensors")
    said = json.loads((HERE.parent / "llama3/config.json").read_text())
    writer = gguf.GGUFWriter(HERE / "llama3.gguf", "llama")
    writer.add_block_count(said["num_hidden_layers"])
    writer.add_context_length(said["max_position_embeddings"])
    writer.add_embedding_length(said["hidden_size"])
    writer.add_feed_forward_length(said["intermediate_size"])
    writer.add_head_count(said["num_attention_heads"])
    writer.add_head_count_kv(said["num_key_value_heads"])
    writer.add_layer_norm_rms_eps(said["rms_norm_eps"])
    writer.add_rope_dimension_count(said["hidden_size"] // said["num_attention_heads"])
    angles = said.get("rope_parameters") or {**said["rope_scaling"], "rope_theta": said["rope_theta"]}
    writer.add_rope_freq_base(angles["rope_theta"])
    for key, word in (("factor", "factor"), ("low_freq_factor", "low_freq_factor"), ("high_freq_factor", "high_freq_factor")):
        writer.add_float32(f"llama.rope.scaling.llama3.{key}", angles[word])
    writer.add_uint32("llama.rope.scaling.llama3.original_context_length", angles["original_max_position_embeddings"])
    writer.add_tokenizer_model("none")
    names = {"self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v", "self_attn.o_proj": "attn_output", "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up",
             "mlp.down_proj": "ffn_down", "input_layernorm": "attn_norm", "post_attention_layernorm": "ffn_norm"}
    put(writer, "token_embd.weight", theirs["model.embed_tokens.weight"], "f32")
    put(writer, "output.weight", theirs["lm_head.weight"], "f32")
    put(writer, "output_norm.weight", theirs["model.norm.weight"], "f32")
    for name, values in theirs.items():
        if not name.startswith("model.layers."):
            continue
        layer, rest = name.removeprefix("model.layers.").split(".", 1)
        module, kind = rest.rsplit(".", 1)
        if module.endswith(("q_proj", "k_proj")):
            values = halves_in_turn(values, said["num_attention_heads" if "q_proj" in module else "num_key_value_heads"])
        put(writer, f"blk.{layer}.{names[module]}.{kind}", values, "f32")
    channels = said["hidden_size"] // said["num_attention_heads"]
    factors, old = [], angles["original_max_position_embeddings"]
    for frequency in 1 / angles["rope_theta"] ** (numpy.arange(0, channels, 2, dtype=numpy.float32) / channels):
        length = 2 * numpy.pi / frequency
        smooth = (old / length - angles["low_freq_factor"]) / (angles["high_freq_factor"] - angles["low_freq_factor"])
        factors.append(1 if length < old / angles["high_freq_factor"] else angles["factor"] if length > old / angles["low_freq_factor"] else 1 / ((1 - smooth) / angles["factor"] + smooth))
    put(writer, "rope_freqs.weight", factors, "f32")
    finish(writer)


def gpt2():
    theirs = load_file(HERE.parent / "gpt2/model.safetensors")
    said = json.loads((HERE.parent / "gpt2/config.json").read_text())
    writer = gguf.GGUFWriter(HERE / "gpt2_q8_0.gguf", "gpt2")
    writer.add_block_count(said["n_layer"])
    writer.add_context_length(said["n_positions"])
    writer.add_embedding_length(said["n_embd"])
    writer.add_feed_forward_length(4 * said["n_embd"])
    writer.add_head_count(said["n_head"])
    writer.add_layer_norm_eps(said["layer_norm_epsilon"])
    writer.add_tokenizer_model("none")
    names = {"wte": "token_embd", "wpe": "position_embd", "ln_f": "output_norm", "ln_1": "attn_norm", "ln_2": "ffn_norm", "attn.c_attn": "attn_qkv", "attn.c_proj": "attn_output",
             "mlp.c_fc": "ffn_up", "mlp.c_proj": "ffn_down"}
    for name, values in theirs.items():
        module, kind = name.removeprefix("transformer.").rsplit(".", 1)
        if module not in names and not module.startswith("h."):
            continue
        where = ""
        if module.startswith("h."):
            _, layer, module = module.split(".", 2)
            where = f"blk.{layer}."
        if module not in names or (module.endswith("attn") and kind in ("masked_bias",)):
            continue
        if "c_" in module and kind == "weight":
            values = values.T
        blocks = values.ndim == 2 and values.shape[1] % 32 == 0 and module != "wpe"
        put(writer, f"{where}{names[module]}.{kind}", values, "q8_0" if blocks else "f16" if values.ndim == 2 and module != "wpe" else "f32")
    finish(writer)


all_kinds()
packed()
packed_model()
llama3()
gpt2()
