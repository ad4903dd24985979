#!/usr/bin/env python3
"""peers.py torch|megatron f32|bf16 [--steps N] [--compile] [--sequence S] [--batch B]: the step that `weft bench train` measures, by others.

GPT-2 124M (12 layers, hidden 768, 12 heads, vocabulary 50304, tied output, no dropout): forward, backward, clipping to 1 and
AdamW, on made-up tokens with this machine's cores. Prints one JSON object: seconds of each counted step, and of the first with
whatever the program does before it (imports left out). Needs torch, and for `megatron` megatron-core; weft needs neither.
"""
import argparse
import contextlib
import json
import os
import statistics
import sys
import time
import types

import torch
from torch import nn
from torch.nn import functional as F

LAYERS, HIDDEN, HEADS, VOCABULARY = 12, 768, 12, 50304


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(HIDDEN), nn.LayerNorm(HIDDEN)
        self.qkv, self.out = nn.Linear(HIDDEN, 3 * HIDDEN), nn.Linear(HIDDEN, HIDDEN)
        self.up, self.down = nn.Linear(HIDDEN, 4 * HIDDEN), nn.Linear(4 * HIDDEN, HIDDEN)

    def forward(self, x):
        b, s, _ = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(b, s, 3, HEADS, HIDDEN // HEADS).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(b, s, HIDDEN))
        return x + self.down(F.gelu(self.up(self.norm2(x)), approximate="tanh"))


class Gpt2(nn.Module):
    def __init__(self, sequence):
        super().__init__()
        self.words, self.places = nn.Embedding(VOCABULARY, HIDDEN), nn.Embedding(sequence, HIDDEN)
        self.blocks = nn.ModuleList(Block() for _ in range(LAYERS))
        self.norm = nn.LayerNorm(HIDDEN)
        for p in self.parameters():
            if p.dim() > 1:
                nn.init.normal_(p, 0, 0.02)

    def forward(self, tokens, targets):
        x = self.words(tokens) + self.places.weight
        for block in self.blocks:
            x = block(x)
        logits = F.linear(self.norm(x), self.words.weight)
        return F.cross_entropy(logits.view(-1, VOCABULARY).float(), targets.view(-1))


def torch_model(how):
    model = Gpt2(how.sequence)
    run = torch.compile(model) if how.compile else model

    def loss(tokens, targets):
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=how.precision == "bf16"):
            return run(tokens, targets)

    return model.parameters(), loss


def pretend_cuda():
    """megatron-core asks the GPU for its seed, device and streams even where it computes on the CPU."""
    cuda = torch.cuda
    cuda.current_device = lambda: "cpu"
    cuda.get_rng_state = cuda.random.get_rng_state = lambda *a, **k: torch.get_rng_state()
    cuda.set_rng_state = cuda.random.set_rng_state = lambda state, *a, **k: torch.set_rng_state(state)
    cuda._lazy_call = lambda call, **k: None
    cuda.manual_seed = lambda seed: torch.manual_seed(seed)
    cuda.is_initialized = lambda: False
    cuda.nvtx = types.SimpleNamespace(range_push=lambda *a: None, range_pop=lambda *a: None)


class NoStream:
    """What a dispatcher of experts orders its copies by, where there is nothing to order."""

    def __init__(self, *a, **k):
        pass

    def wait_stream(self, other):
        pass

    def record_event(self):
        return self

    def synchronize(self):
        pass


def pretend_streams():
    """After pretend_cuda(), for megatron-core's mixtures of experts."""
    torch.cuda.Stream, torch.cuda.current_stream = NoStream, lambda *a, **k: NoStream()
    torch.cuda.stream = lambda stream: contextlib.nullcontext()
    from megatron.core.transformer.moe import moe_utils

    moe_utils.te_general_gemm = None  # what it is where Transformer Engine is missing; 0.16.1 forgets to say so


# Settings of megatron-core's models that compute plainly on a CPU, and drop nothing.
PLAIN = {"use_cpu_initialization": True, "hidden_dropout": 0.0, "attention_dropout": 0.0, "gradient_accumulation_fusion": False,
         "masked_softmax_fusion": False, "bias_activation_fusion": False, "persist_layer_norm": False, "apply_rope_fusion": False}


def megatron_model(how):
    pretend_cuda()
    from megatron.core import parallel_state, tensor_parallel
    from megatron.core.models.gpt import GPTModel
    from megatron.core.models.gpt.gpt_layer_specs import get_gpt_layer_local_spec
    from megatron.core.transformer import TransformerConfig

    for name, value in {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29517", "RANK": "0", "WORLD_SIZE": "1"}.items():
        os.environ.setdefault(name, value)
    torch.distributed.init_process_group("gloo")
    parallel_state.initialize_model_parallel()
    tensor_parallel.model_parallel_cuda_manual_seed(1)
    half = how.precision == "bf16"
    config = TransformerConfig(
        num_layers=LAYERS, hidden_size=HIDDEN, num_attention_heads=HEADS, bf16=half, params_dtype=torch.bfloat16 if half else torch.float32,
        pipeline_dtype=torch.bfloat16 if half else torch.float32, **PLAIN)
    model = GPTModel(config, get_gpt_layer_local_spec(), VOCABULARY, how.sequence, share_embeddings_and_output_weights=True,
                     position_embedding_type="learned_absolute")
    if half:
        model = model.bfloat16()
    positions = torch.arange(how.sequence).expand(how.batch, -1)
    mask = torch.ones(1, 1, how.sequence, how.sequence, dtype=torch.bool).triu(1)
    return model.parameters(), lambda tokens, targets: model(tokens, positions, mask, labels=targets).float().mean()


def biased(layer):
    """The layer of megatron-core's, whose own attention leaves the biases of its own relative positions to transformer-engine, with them added."""
    from megatron.core.transformer.dot_product_attention import DotProductAttention

    class BiasedSoftmax(nn.Module):
        def __init__(self, usual):
            super().__init__()
            self.usual, self.bias = usual, None

        def forward(self, scores, *rest):
            return self.usual(scores if self.bias is None else scores + self.bias, *rest)

    class BiasedAttention(DotProductAttention):
        def __init__(self, *given, **named):
            super().__init__(*given, **named)
            self.scale_mask_softmax = BiasedSoftmax(self.scale_mask_softmax)

        def forward(self, *given, attention_bias=None, **named):
            self.scale_mask_softmax.bias = attention_bias
            return super().forward(*given, **named)

    layer.submodules.self_attention.submodules.core_attention = BiasedAttention
    return layer


def take_steps(parameters, loss_of, count):
    """(seconds, loss) of each step: forward and backward of loss_of(), clipping to 1, and AdamW."""
    parameters = list(parameters)
    adam = torch.optim.AdamW(parameters, lr=1e-4, weight_decay=0.01, fused=True)
    for _ in range(count):
        before = time.perf_counter()
        loss = loss_of()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(parameters, 1.0)
        adam.step()
        adam.zero_grad(set_to_none=True)
        yield time.perf_counter() - before, loss.item()


def main():
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("peer", choices=["torch", "megatron"])
    words.add_argument("precision", choices=["f32", "bf16"])
    words.add_argument("--steps", type=int, default=3)
    words.add_argument("--warm", type=int, default=2)
    words.add_argument("--compile", action="store_true")
    words.add_argument("--sequence", type=int, default=1024)
    words.add_argument("--batch", type=int, default=2)
    how = words.parse_args()
    torch.manual_seed(1)
    start = time.perf_counter()
    parameters, loss_of = {"torch": torch_model, "megatron": megatron_model}[how.peer](how)
    tokens = torch.randint(0, 50257, (how.batch, how.sequence + 1))
    seconds = []
    for took, loss in take_steps(parameters, lambda: loss_of(tokens[:, :-1].contiguous(), tokens[:, 1:].contiguous()), how.warm + how.steps):
        seconds.append(took)
        if len(seconds) == 1:
            first = time.perf_counter() - start
    counted = seconds[how.warm:]
    print(json.dumps({"peer": how.peer + ("+compile" if how.compile else ""), "precision": how.precision, "first": round(first, 2),
                      "steps": [round(x, 3) for x in counted], "loss": round(loss, 4),
                      "tokens_per_second": round(how.batch * how.sequence / statistics.median(counted), 1),
                      "torch": torch.__version__, "threads": torch.get_num_threads()}))


if __name__ == "__main__":
    sys.exit(main())
