#!/usr/bin/env python3
"""families.py hybrid|gemma|capped|uncapped|neox [f32|bf16] [--steps N] [--warm N]: the step of a model that `weft bench train` measures, by transformers.

hybrid: as Nemotron-H is built, small: letters M-M*M-M-, state spaces of 24 heads of 64 in 4 groups with 128 channels, 12 heads of attention, MLPs of 3072 with squared
relu, no positions, untied. transformers' own path for processors walks over a sequence in chunks as products; its fast one is for GPUs.
gemma: as Gemma 3 is built, small: 6 layers of norms around attention and MLPs of 3072, gated by gelu, 12 heads of 64 in 4 groups with norms, windows of 256 in five of six
layers, which turn by a base of their own, tied. transformers' attention is torch's own (sdpa), nothing is compiled.
capped: as Gemma 2 is built, small: the same but that nothing norms heads, windows of 512 in every other layer, one base, scores capped at 50 and logits at 30; transformers
makes scores whole there (eager). uncapped: without caps.
neox: as GPT-NeoX is built, small: 6 layers of attention and an MLP of 3072 beside each other, gelu, 12 heads of 64 of which a quarter turns, all biases, untied.
All: hidden 768, RMSNorm but for neox, sequence 1024, batch 1, vocabulary 50304, no dropout: forward, backward, clipping to 1 and AdamW. Prints one JSON object. Needs torch and
transformers; weft needs neither."""
import argparse
import importlib.util
import json
import pathlib
import statistics
import sys

import torch

peers = importlib.util.spec_from_file_location("peers", pathlib.Path(__file__).with_name("peers.py"))
PEERS = importlib.util.module_from_spec(peers)
peers.loader.exec_module(PEERS)

SEQUENCE, WORDS = 1024, 50304
TYPES = {"f32": torch.float32, "bf16": torch.bfloat16}


def hybrid():
    from transformers import NemotronHConfig, NemotronHForCausalLM

    config = NemotronHConfig(
        vocab_size=WORDS, hidden_size=768, hybrid_override_pattern="M-M*M-M-", num_attention_heads=12, num_key_value_heads=12, head_dim=64, intermediate_size=3072,
        max_position_embeddings=SEQUENCE, mamba_num_heads=24, mamba_head_dim=64, n_groups=4, ssm_state_size=128, use_cache=False)
    return NemotronHForCausalLM(config)


def gemma():
    from transformers import Gemma3ForCausalLM, Gemma3TextConfig

    kinds = ["sliding_attention"] * 5 + ["full_attention"]
    config = Gemma3TextConfig(
        vocab_size=WORDS, hidden_size=768, intermediate_size=3072, num_hidden_layers=6, num_attention_heads=12, num_key_value_heads=4, head_dim=64,
        query_pre_attn_scalar=64, max_position_embeddings=SEQUENCE, sliding_window=256, layer_types=kinds, use_cache=False,
        rope_parameters={kinds[0]: dict(rope_type="default", rope_theta=10000.0), kinds[-1]: dict(rope_type="default", rope_theta=1e6)})
    return Gemma3ForCausalLM(config)


def gemma2(cap=None, logits=None):
    from transformers import Gemma2Config, Gemma2ForCausalLM

    config = Gemma2Config(
        vocab_size=WORDS, hidden_size=768, intermediate_size=3072, num_hidden_layers=6, num_attention_heads=12, num_key_value_heads=4, head_dim=64,
        query_pre_attn_scalar=64, max_position_embeddings=SEQUENCE, sliding_window=512, layer_types=["sliding_attention", "full_attention"] * 3, use_cache=False,
        attn_logit_softcapping=cap, final_logit_softcapping=logits, attn_implementation="eager")
    return Gemma2ForCausalLM(config)


def neox():
    from transformers import GPTNeoXConfig, GPTNeoXForCausalLM

    config = GPTNeoXConfig(
        vocab_size=WORDS, hidden_size=768, intermediate_size=3072, num_hidden_layers=6, num_attention_heads=12, max_position_embeddings=SEQUENCE, use_cache=False,
        tie_word_embeddings=False, rope_parameters=dict(rope_type="default", rope_theta=10000.0, partial_rotary_factor=0.25))
    return GPTNeoXForCausalLM(config)


MODELS = {"hybrid": hybrid, "gemma": gemma, "capped": lambda: gemma2(50.0, 30.0), "uncapped": gemma2, "neox": neox}


def main():
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("model", choices=list(MODELS))
    words.add_argument("precision", choices=list(TYPES), nargs="?", default="f32")
    words.add_argument("--steps", type=int, default=2)
    words.add_argument("--warm", type=int, default=1)
    how = words.parse_args()
    torch.manual_seed(1)
    model = MODELS[how.model]().to(TYPES[how.precision]).train()
    tokens = torch.randint(0, WORDS, (1, SEQUENCE + 1))
    loss_of = lambda: torch.nn.functional.cross_entropy(model(tokens[:, :-1].contiguous()).logits.float().view(-1, WORDS), tokens[:, 1:].reshape(-1))
    seconds = []
    for took, loss in PEERS.take_steps(model.parameters(), loss_of, how.warm + how.steps):
        seconds.append(took)
    counted = seconds[how.warm:]
    print(json.dumps({"peer": "transformers", "precision": how.precision, "steps": [round(x, 3) for x in counted],
                      "tokens_per_second": round(SEQUENCE / statistics.median(counted), 1), "loss": round(loss, 4),
                      "parameters": sum(p.numel() for p in model.parameters()), "torch": torch.__version__, "threads": torch.get_num_threads()}))


if __name__ == "__main__":
    sys.exit(main())
