#!/usr/bin/env python3
"""experts.py megatron|transformers [f32|bf16] [--steps N] [--warm N] [--layers L]: the step of a mixture of experts that `weft bench train` measures, by
others.

A GPT of 8 experts of which 2 compute a token (12 layers, hidden 768, 12 heads, experts of 2048 with SwiGLU, RMSNorm, rotary positions, sequence
1024, batch 1, vocabulary 50304, untied, no dropout, no balancing loss): forward, backward, clipping to 1 and AdamW. megatron-core's SequentialMLP,
and transformers' Mixtral, in bf16 with parameters of that type. Prints one JSON object. Needs torch and the peer; weft needs neither."""
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

HIDDEN, HEADS, INNER, EXPERTS, CHOSEN, SEQUENCE, WORDS = 768, 12, 2048, 8, 2, 1024, 50304
TYPES = {"f32": torch.float32, "bf16": torch.bfloat16}


def megatron(layers, dtype):
    PEERS.pretend_cuda()
    PEERS.pretend_streams()
    from megatron.core import parallel_state, tensor_parallel
    from megatron.core.models.gpt import GPTModel
    from megatron.core.models.gpt.gpt_layer_specs import get_gpt_layer_local_spec
    from megatron.core.transformer import TransformerConfig

    torch.distributed.init_process_group("gloo", init_method="tcp://127.0.0.1:29519", rank=0, world_size=1)
    parallel_state.initialize_model_parallel()
    tensor_parallel.model_parallel_cuda_manual_seed(1)
    config = TransformerConfig(
        num_layers=layers, hidden_size=HIDDEN, num_attention_heads=HEADS, ffn_hidden_size=INNER,
        normalization="RMSNorm", gated_linear_unit=True, activation_func=torch.nn.functional.silu, add_bias_linear=False,
        num_moe_experts=EXPERTS, moe_router_topk=CHOSEN, moe_ffn_hidden_size=INNER, moe_router_load_balancing_type="none", moe_aux_loss_coeff=0.0,
        moe_token_dispatcher_type="alltoall", bf16=dtype == torch.bfloat16, params_dtype=dtype, pipeline_dtype=dtype, **PEERS.PLAIN)
    model = GPTModel(config, get_gpt_layer_local_spec(num_experts=EXPERTS, moe_grouped_gemm=False, normalization="RMSNorm"), WORDS, SEQUENCE,
                     share_embeddings_and_output_weights=False, position_embedding_type="rope")
    positions = torch.arange(SEQUENCE).unsqueeze(0)
    mask = torch.ones(1, 1, SEQUENCE, SEQUENCE, dtype=torch.bool).triu(1)
    return model.to(dtype), lambda tokens, targets: model(tokens, positions, mask, labels=targets).float().mean()


def transformers(layers, dtype):
    from transformers import MixtralConfig, MixtralForCausalLM

    model = MixtralForCausalLM(MixtralConfig(
        vocab_size=WORDS, hidden_size=HIDDEN, intermediate_size=INNER, num_hidden_layers=layers, num_attention_heads=HEADS, num_key_value_heads=HEADS,
        max_position_embeddings=SEQUENCE, num_local_experts=EXPERTS, num_experts_per_tok=CHOSEN, output_router_logits=False, use_cache=False,
        tie_word_embeddings=False, sliding_window=None, attention_dropout=0.0))
    model.to(dtype).train()
    return model, lambda tokens, targets: torch.nn.functional.cross_entropy(model(tokens).logits.float().view(-1, WORDS), targets.view(-1))


def main():
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("peer", choices=["megatron", "transformers"])
    words.add_argument("precision", choices=list(TYPES), nargs="?", default="f32")
    words.add_argument("--steps", type=int, default=2)
    words.add_argument("--warm", type=int, default=1)
    words.add_argument("--layers", type=int, default=12)
    how = words.parse_args()
    torch.manual_seed(1)
    model, loss_of = {"megatron": megatron, "transformers": transformers}[how.peer](how.layers, TYPES[how.precision])
    tokens = torch.randint(0, WORDS, (1, SEQUENCE + 1))
    seconds = []
    for took, loss in PEERS.take_steps(model.parameters(), lambda: loss_of(tokens[:, :-1].contiguous(), tokens[:, 1:].contiguous()), how.warm + how.steps):
        seconds.append(took)
    counted = seconds[how.warm:]
    print(json.dumps({"peer": how.peer, "precision": how.precision, "layers": how.layers, "steps": [round(x, 2) for x in counted],
                      "tokens_per_second": round(SEQUENCE / statistics.median(counted), 1), "loss": round(loss, 4),
                      "parameters": sum(p.numel() for p in model.parameters()), "torch": torch.__version__, "threads": torch.get_num_threads()}))


if __name__ == "__main__":
    sys.exit(main())
