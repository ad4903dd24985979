#!/usr/bin/env python3
"""encoders.py bert|t5|t5-relative [--steps N] [--warm N]: the f32 step that `weft bench train bert|t5` measures, by megatron-core's own models.

BERT-large cut to 4 layers (hidden 1024, 16 heads, sequence 512, batch 4) with both heads, and T5-base cut to 4 + 4 layers (hidden 768,
12 heads, sequences 512 and 128, batch 4) with learned positions or relative ones, whose biases are added for its local attention, which passes them
over. No padding, no dropout. Prints one JSON object. Needs torch and megatron-core; weft needs neither."""
import argparse
import importlib.util
import json
import pathlib
import statistics
import sys

import torch
from torch.nn import functional as F

peers = importlib.util.spec_from_file_location("peers", pathlib.Path(__file__).with_name("peers.py"))
PEERS = importlib.util.module_from_spec(peers)
peers.loader.exec_module(PEERS)

LAYERS, BATCH, SEQUENCE, DECODER, WORDS = 4, 4, 512, 128, 30592


def begin():
    PEERS.pretend_cuda()
    from megatron.core import parallel_state, tensor_parallel

    torch.distributed.init_process_group("gloo", init_method="tcp://127.0.0.1:29518", rank=0, world_size=1)
    parallel_state.initialize_model_parallel()
    tensor_parallel.model_parallel_cuda_manual_seed(1)


def config_of(hidden, heads):
    from megatron.core.transformer import TransformerConfig

    return TransformerConfig(num_layers=LAYERS, hidden_size=hidden, num_attention_heads=heads, **PEERS.PLAIN)


def bert():
    from megatron.core.models.bert.bert_layer_specs import bert_layer_local_spec
    from megatron.core.models.bert.bert_model import BertModel

    model = BertModel(config_of(1024, 16), 2, bert_layer_local_spec, WORDS, SEQUENCE, share_embeddings_and_output_weights=True)
    tokens, labels = torch.randint(0, WORDS, (2, BATCH, SEQUENCE))
    types, order = torch.zeros_like(tokens), torch.zeros(BATCH, dtype=torch.long)
    mask = torch.ones(BATCH, SEQUENCE)

    def loss():
        losses, binary = model(tokens, mask, tokentype_ids=types, lm_labels=labels)
        return losses.mean() + F.cross_entropy(binary, order)

    return model, loss, BATCH * SEQUENCE


def t5(positions="learned_absolute"):
    from megatron.core.models.T5.t5_model import T5Model
    from megatron.core.models.T5.t5_spec import decoder_model_with_local_spec, encoder_model_with_local_spec
    from megatron.core.transformer.torch_norm import WrappedTorchNorm
    from megatron.core.transformer.transformer_block import TransformerBlockSubmodules

    stack = lambda layer: TransformerBlockSubmodules([layer] * LAYERS, layer_norm=WrappedTorchNorm)
    with_biases = PEERS.biased if positions == "relative" else lambda layer: layer
    model = T5Model(config_of(768, 12), config_of(768, 12), stack(with_biases(encoder_model_with_local_spec())),
                    stack(with_biases(decoder_model_with_local_spec())), WORDS, SEQUENCE, share_embeddings_and_output_weights=True,
                    position_embedding_type=positions)
    source = torch.randint(0, WORDS, (BATCH, SEQUENCE))
    text, labels = torch.randint(0, WORDS, (2, BATCH, DECODER))
    none = lambda rows, columns: torch.zeros(BATCH, 1, rows, columns, dtype=torch.bool)
    causal = torch.ones(1, 1, DECODER, DECODER, dtype=torch.bool).triu(1).expand(BATCH, -1, -1, -1)
    return model, lambda: model(source, text, none(SEQUENCE, SEQUENCE), causal, none(DECODER, SEQUENCE), lm_labels=labels).mean(), BATCH * (SEQUENCE + DECODER)


def main():
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("family", choices=["bert", "t5", "t5-relative"])
    words.add_argument("--steps", type=int, default=5)
    words.add_argument("--warm", type=int, default=2)
    how = words.parse_args()
    torch.manual_seed(1)
    begin()
    model, loss_of, tokens = {"bert": bert, "t5": t5, "t5-relative": lambda: t5("relative")}[how.family]()
    seconds = []
    for took, loss in PEERS.take_steps(model.parameters(), loss_of, how.warm + how.steps):
        seconds.append(took)
    counted = seconds[how.warm:]
    print(json.dumps({"peer": "megatron-core", "family": how.family, "steps": [round(x, 3) for x in counted],
                      "seconds": round(statistics.median(counted), 3), "tokens_per_second": round(tokens / statistics.median(counted), 1),
                      "loss": round(loss, 4), "torch": torch.__version__, "threads": torch.get_num_threads()}))


if __name__ == "__main__":
    sys.exit(main())
