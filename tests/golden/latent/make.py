#!/usr/bin/env python3
"""Makes the JSON files beside this one with megatron-core 0.16.1: losses and every gradient of latent attention and of prediction of
further tokens. Run by hand, on a processor, with torch and megatron-core installed; the numbers are committed.

Weights, tokens and masks come from a hash of integers that tests/model/latent_golden_test.cpp computes too. Matrices lie as ours do, so
that only names differ. One rank, local layers (no transformer-engine), float32.
"""
import json
import os
import pathlib

import torch

os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="29517", RANK="0", WORLD_SIZE="1")
torch.cuda.current_device = lambda: "cpu"  # what megatron-core asks for memory of

from megatron.core import parallel_state, tensor_parallel
from megatron.core.models.gpt import GPTModel
from megatron.core.models.gpt.gpt_layer_specs import get_gpt_layer_local_spec, get_gpt_mtp_block_spec
from megatron.core.transformer import multi_latent_attention, multi_token_prediction as ahead
from megatron.core.transformer.transformer_config import MLATransformerConfig, TransformerConfig

multi_latent_attention.HAVE_TE = False
HERE = pathlib.Path(__file__).parent
B, S = 2, 16
COMMON = dict(num_layers=2, hidden_size=16, num_attention_heads=2, ffn_hidden_size=24, hidden_dropout=0.0, attention_dropout=0.0,
              add_bias_linear=False, gated_linear_unit=True, activation_func=torch.nn.functional.silu, bias_activation_fusion=False,
              use_cpu_initialization=True, normalization="RMSNorm", masked_softmax_fusion=False, bias_dropout_fusion=False,
              apply_rope_fusion=False, gradient_accumulation_fusion=False, attention_softmax_in_fp32=True, layernorm_epsilon=1e-5)
LATENT = dict(q_lora_rank=8, kv_lora_rank=10, qk_head_dim=6, qk_pos_emb_head_dim=4, v_head_dim=8)
YARN = dict(rope_type="yarn", rotary_scaling_factor=4, original_max_position_embeddings=8, beta_fast=4, beta_slow=1, mscale=0.7,
            mscale_all_dim=1.3)
CASES = {
    "yarn": dict(latent=LATENT | YARN, depths=0, norms=True, learned=False, tied=False),
    "rope": dict(latent=LATENT | dict(q_lora_rank=None, rope_type="rope"), depths=0, norms=False, learned=False, tied=True),
    "ahead_1": dict(latent=LATENT | YARN, depths=1, norms=True, learned=False, tied=False),
    "ahead_2": dict(latent=None, depths=2, norms=False, learned=True, tied=True),
    "ahead_round": dict(latent=None, depths=3, norms=False, learned=False, tied=False, repeated=True),
}
VOCABULARY = 29
FACTOR = 0.3

ATTENTION = {"linear_q_proj": "query", "linear_q_down_proj": "query_down", "linear_q_up_proj": "query_up", "q_layernorm": "query_norm",
             "linear_kv_down_proj": "key_value_down", "linear_kv_up_proj": "key_value_up", "kv_layernorm": "key_value_norm",
             "linear_proj": "project", "linear_qkv": "qkv"}
LAYER = {"input_layernorm": "attention_norm", "pre_mlp_layernorm": "mlp_norm", "mlp.linear_fc1": "mlp.up", "mlp.linear_fc2": "mlp.down"} | {
    "self_attention." + theirs: "attention." + ours for theirs, ours in ATTENTION.items()}
ENDS = {"embedding.word_embeddings.weight": "embedding.words", "embedding.position_embeddings.weight": "embedding.positions",
        "output_layer.weight": "output.words", "decoder.final_layernorm.weight": "final_norm.gain"}
DEPTH = {"enorm": "word_norm", "hnorm": "hidden_norm", "eh_proj": "join", "final_layernorm": "final_norm"}


def ours(name):
    if name in ENDS:
        return ENDS[name]
    of, number, rest = name.replace("decoder.layers.", "layers ").replace("mtp.layers.", "mtp ").replace(".", " ", 1).split(" ", 2)
    module = rest.removesuffix(".weight")
    if of == "mtp":
        prefix, module = f"ahead.layers.{number}.", module.removeprefix("transformer_layer.")
    else:
        prefix = f"layers.{number}."
    module = DEPTH.get(module) or LAYER[module]
    return prefix + module + (".gain" if module.endswith("norm") else ".weight")


def mix(x):
    x = (x ^ (x >> 16)) * 0x45D9F3B & 0xFFFFFFFF
    x = (x ^ (x >> 16)) * 0x45D9F3B & 0xFFFFFFFF
    return x ^ (x >> 16)


def fill(parameter, index, gain):
    values = [(1.0 if gain else 0.0) + (0.2 if gain else 0.6) * (mix(index * 1000003 + i) / 2**32 - 0.5) for i in range(parameter.numel())]
    parameter.data.copy_(torch.tensor(values, dtype=torch.float32).reshape(parameter.shape))


class PlainAttention(torch.nn.Module):
    """megatron-core's own local attention wants values as wide as keys, and a GPU for its dropout."""

    def __init__(self, softmax_scale=None, **_):
        super().__init__()
        self.scale = softmax_scale

    def forward(self, q, k, v, mask, **_):
        scores = torch.einsum("qbnd,kbnd->bnqk", q, k) * (self.scale or q.shape[-1] ** -0.5)
        return torch.einsum("bnqk,kbnd->qbnd", scores.masked_fill(mask, float("-inf")).softmax(-1), v).flatten(2)


def model_of(case):
    latent = case["latent"]
    kind = MLATransformerConfig if latent else TransformerConfig
    config = kind(**COMMON, **(latent or {}), qk_layernorm=case["norms"], mtp_num_layers=case["depths"] or None,
                  mtp_loss_scaling_factor=FACTOR)
    spec = get_gpt_layer_local_spec(qk_layernorm=case["norms"], multi_latent_attention=latent is not None, normalization="RMSNorm")
    spec.submodules.self_attention.submodules.core_attention = PlainAttention
    depths = get_gpt_mtp_block_spec(config, spec, use_transformer_engine=False) if case["depths"] else None
    model = GPTModel(config, spec, VOCABULARY, S, position_embedding_type="learned_absolute" if case["learned"] else "rope",
                     share_embeddings_and_output_weights=case["tied"], mtp_block_spec=depths)
    if case.get("repeated"):  # what later versions call mtp_use_repeated_layer
        for depth in range(1, case["depths"]):
            model.mtp.layers[depth] = model.mtp.layers[0]
    return model


def batch():
    rows = torch.tensor([[mix(131 * row + i) % VOCABULARY for i in range(S + 1)] for row in range(B)])
    mask = torch.tensor([[float(mix(977 * row + i + 5) % 4 > 0) for i in range(S)] for row in range(B)])
    return rows[:, :-1], rows[:, 1:].contiguous(), mask


def run(case):
    model = model_of(case)
    named = {ours(name): p for name, p in model.named_parameters()}
    for index, name in enumerate(sorted(named)):
        fill(named[name], index, name.endswith(".gain"))
    tokens, labels, mask = batch()
    positions = torch.arange(S).expand(B, S)
    causal = torch.ones(1, 1, S, S).triu(1).bool()
    ahead.MTPLossLoggingHelper.tracker = {}
    losses = model(tokens, positions, causal, labels=labels, loss_mask=mask)
    loss = (losses * mask).sum() / mask.sum()
    loss.backward()
    digits = lambda t: [float(f"{x:.8g}") for x in t.reshape(-1).tolist()]
    told = ahead.MTPLossLoggingHelper.tracker.get("values", torch.zeros(0))
    return dict(latent=case["latent"], depths=case["depths"], norms=case["norms"], learned=case["learned"], tied=case["tied"],
                **({"repeated": True} if case.get("repeated") else {}), loss=loss.item(), ahead=told.tolist(), grads={name: digits(named[name].grad) for name in sorted(named)})


def main():
    torch.distributed.init_process_group("gloo")
    parallel_state.initialize_model_parallel()
    tensor_parallel.model_parallel_cuda_manual_seed = lambda *_: None
    for name, case in CASES.items():
        (HERE / f"{name}.json").write_text(json.dumps(run(case), separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
