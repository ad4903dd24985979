#!/usr/bin/env python3
"""Makes the model directories beside this file with transformers: tiny random models and the logits they give.

Run by hand: pip install torch transformers, then make.py [DIRECTORY] [SEED]. Every directory gets a logits.json: the ids of a
prompt, and for each of its positions the logits of all words. One model is cut into shards; one is bf16, one f16 (their
logits are of those weights, computed in f32). make oracle makes others from other seeds and compares again.
"""
import json
import pathlib
import random
import sys

import torch
import transformers as t

HERE = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).parent
SEED = int(sys.argv[2]) if len(sys.argv) > 2 else 1
LENGTH = 16

# The committed models have the first of each; other seeds draw.
draw = random.Random(SEED)
pick = lambda *choices: choices[0] if SEED == 1 else draw.choice(choices)
HEADS, WIDTH, LAYERS, WORDS = pick(4, 2, 6, 8), pick(4, 6, 8, 16), pick(2, 1, 3), pick(37, 64, 101, 130)
SMALL = dict(vocab_size=WORDS, hidden_size=HEADS * WIDTH, intermediate_size=pick(24, 40, 64), num_hidden_layers=LAYERS,
             num_attention_heads=HEADS, num_key_value_heads=HEADS // 2, max_position_embeddings=32, bos_token_id=1,
             eos_token_id=2, pad_token_id=0)
LLAMA3 = dict(rope_type="llama3", rope_theta=500.0, factor=4.0, low_freq_factor=1.0, high_freq_factor=4.0,
              original_max_position_embeddings=8)
ENCODER = dict(vocab_size=WORDS, hidden_size=HEADS * WIDTH, intermediate_size=pick(24, 40, 64), num_hidden_layers=LAYERS,
               num_attention_heads=HEADS, max_position_embeddings=24, hidden_act="gelu")
YARN = dict(rope_type="yarn", rope_theta=10000.0, factor=4.0, original_max_position_embeddings=8)

MODELS = {
    "gpt2": (t.GPT2LMHeadModel, t.GPT2Config(vocab_size=WORDS, n_positions=24, n_embd=HEADS * WIDTH, n_layer=LAYERS,
                                               n_head=HEADS, bos_token_id=0, eos_token_id=0), {}),
    "llama2": (t.LlamaForCausalLM, t.LlamaConfig(**{**SMALL, "num_key_value_heads": HEADS}, rms_norm_eps=1e-5),
               dict(max_shard_size="8KB")),
    "llama3": (t.LlamaForCausalLM, t.LlamaConfig(**SMALL, rope_parameters=LLAMA3, attention_bias=True, mlp_bias=True), {}),
    "mistral": (t.MistralForCausalLM, t.MistralConfig(**SMALL, head_dim=8, sliding_window=pick(5, 2, 9)), dict(dtype=torch.bfloat16)),
    "qwen2": (t.Qwen2ForCausalLM, t.Qwen2Config(**SMALL, tie_word_embeddings=True, rope_parameters=YARN), {}),
    "qwen2_window": (t.Qwen2ForCausalLM, t.Qwen2Config(**SMALL, use_sliding_window=True, sliding_window=4,
                                                       max_window_layers=1), dict(dtype=torch.float16)),
    "qwen3": (t.Qwen3ForCausalLM, t.Qwen3Config(**SMALL, head_dim=8, rope_parameters=dict(rope_type="default",
                                                                                          rope_theta=1e6)), {}),
    "bert": (t.BertForPreTraining, t.BertConfig(**ENCODER), {}),
    "megatron_bert": (t.MegatronBertForPreTraining, t.MegatronBertConfig(**ENCODER), {}),
    "gemma": (t.GemmaForCausalLM, t.GemmaConfig(**{**SMALL, "num_key_value_heads": 1}, head_dim=8), {}),
}


def randomize(model, name):
    """Large enough that every part shows in the logits."""
    noises = torch.Generator().manual_seed(SEED)
    for path, p in model.named_parameters():
        noise = torch.randn(p.shape, generator=noises)
        gain = p.dim() == 1 and path.endswith("weight")
        p.data = (0.0 if name == "gemma" or not gain else 1.0) + (0.2 if p.dim() == 1 else 0.3) * noise


for name, (kind, config, how) in MODELS.items():
    config._attn_implementation = "eager"
    model = kind(config).eval()
    randomize(model, name)
    how = dict(how)
    dtype = how.pop("dtype", torch.float32)
    model.to(dtype).save_pretrained(HERE / name, **how)
    exact = kind.from_pretrained(HERE / name, dtype=torch.float32, attn_implementation="eager").eval()
    prompt = [(7 * i * i + 3 * i + SEED) % WORDS for i in range(LENGTH)]
    with torch.no_grad():
        out = exact(torch.tensor([prompt]))
        logits = (out.prediction_logits if "bert" in name else out.logits)[0]
    with open(HERE / name / "logits.json", "w") as file:
        json.dump({"prompt": prompt, "logits": [[float(f"{x:.8g}") for x in row] for row in logits.tolist()]}, file)
        file.write("\n")
    print(name, sorted(path.name for path in (HERE / name).iterdir()), f"largest {logits.abs().max():.3g}")
