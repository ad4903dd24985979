#!/usr/bin/env python3
"""Twenty steps of AdamW, by weft, by transformers and by megatron-core's own GPTModel, from the same weights on the same samples:
train.py WEFT [--cases N] [--seed S] [--kind K]. Random small configurations like GPT-2, Llama, Mixtral, gpt-oss, Qwen3-Next, Nemotron-H and the families of families.py, the third to fifth with and
without balancing losses (which transformers defines in another way, and sits out), the last two by transformers alone. The losses and gradient norms of all steps and the weights after them must agree. Needs
torch, transformers and megatron-core (`make oracle` installs them)."""
import functools, importlib.util, json, pathlib, random, sys, warnings

warnings.filterwarnings("ignore")
import numpy
import torch
import transformers
from megatron.core import tensor_parallel
from megatron.core.datasets.indexed_dataset import IndexedDatasetBuilder
from megatron.core.models.gpt import GPTModel
from megatron.core.models.gpt.gpt_layer_specs import get_gpt_layer_local_spec
from megatron.core.fusions import fused_softmax
from megatron.core.fusions.fused_bias_geglu import quick_gelu
from megatron.core.transformer import TransformerConfig
from megatron.core.transformer.moe.moe_utils import MoEAuxLossAutoScaler, get_moe_layer_wise_logging_tracker
from torch.nn import functional as F

import families, nemotron_h, qwen3_next
import recipe
from recipe import DECAY, GLOBAL, MICRO, STEPS, WARM, run, steps

RATE = 3e-3
peers = importlib.util.spec_from_file_location("peers", pathlib.Path(__file__).parents[2] / "bench/step/peers.py")
PEERS = importlib.util.module_from_spec(peers)
peers.loader.exec_module(PEERS)


def mixtral(rng, shape):
    heads = shape["heads"]
    shape |= dict(kind="mixtral", groups=rng.choice([g for g in (1, 2, heads) if heads % g == 0]), inner=rng.choice([24, 40]), tied=False,
                  experts=rng.choice([4, 6, 8]), chosen=rng.choice([2, 3]), balance=rng.choice([0, 0.05]), z=rng.choice([0, 0.01]))
    config = transformers.MixtralConfig(
        vocab_size=shape["words"], hidden_size=shape["width"], intermediate_size=shape["inner"], num_hidden_layers=shape["layers"],
        num_attention_heads=heads, num_key_value_heads=shape["groups"], max_position_embeddings=shape["sequence"], rms_norm_eps=1e-5,
        num_local_experts=shape["experts"], num_experts_per_tok=shape["chosen"], sliding_window=None, tie_word_embeddings=False, initializer_range=0.1,
        rope_parameters=dict(rope_type="default", rope_theta=500.0))
    return transformers.MixtralForCausalLM(config), shape


def gpt_oss(rng, shape):
    heads = shape["heads"]
    shape |= dict(kind="gpt_oss", groups=rng.choice([g for g in (1, 2, heads) if heads % g == 0]), inner=rng.choice([24, 40]), tied=False,
                  experts=rng.choice([4, 6, 8]), chosen=rng.choice([2, 3]), balance=rng.choice([0, 0.05]), z=rng.choice([0, 0.01]),
                  window=rng.choice([3, 5]), limit=rng.choice([0.2, 7.0]), fast=rng.choice([1.0, 32.0]))
    config = transformers.GptOssConfig(
        vocab_size=shape["words"], hidden_size=shape["width"], intermediate_size=shape["inner"], num_hidden_layers=shape["layers"],
        num_attention_heads=heads, num_key_value_heads=shape["groups"], head_dim=shape["width"] // heads, max_position_embeddings=shape["sequence"],
        num_local_experts=shape["experts"], num_experts_per_tok=shape["chosen"], sliding_window=shape["window"], swiglu_limit=shape["limit"],
        tie_word_embeddings=False, initializer_range=0.1, attn_implementation="eager",
        rope_parameters=dict(rope_type="yarn", rope_theta=500.0, factor=4.0, beta_fast=shape["fast"], beta_slow=0.1, truncate=False,
                             original_max_position_embeddings=8))
    model = transformers.GptOssForCausalLM(config)
    for name, weight in model.named_parameters():
        if name.endswith(("sinks", "_bias", ".bias")):
            torch.nn.init.normal_(weight, std=0.3)
        if name.endswith("router.weight"):
            torch.nn.init.normal_(weight, std=0.3)  # so that few choices are close enough for rounding to make another
    return model, shape


def window_mask(queries, keys, window):
    """megatron-core's own makes it on a GPU: True where a query does not see a key."""
    apart = torch.arange(queries)[:, None] - torch.arange(keys)[None]
    return (apart < -window[1]) | (apart > window[0])


MIXTURES = {"mixtral": mixtral, "gpt_oss": gpt_oss, "qwen3_next": qwen3_next.draw, "nemotron_h": nemotron_h.draw, "families": families.draw}
BY_TRANSFORMERS_ALONE = ("nemotron_h", "families")


def draw(rng, kind):
    """A model of transformers with random weights, and what megatron-core must know of it."""
    heads = rng.choice([2, 4, 6])
    width = heads * rng.choice([4, 8, 16])
    layers, words, sequence = rng.randint(1, 3), rng.choice([64, 101, 130]), rng.choice([8, 16, 24])
    shape = dict(heads=heads, width=width, layers=layers, words=words, sequence=sequence)
    kind = kind or rng.choice(["gpt2", "llama", *MIXTURES])
    if kind in MIXTURES:
        return MIXTURES[kind](rng, shape)
    if kind == "gpt2":
        config = transformers.GPT2Config(vocab_size=words, n_positions=sequence, n_embd=width, n_layer=layers, n_head=heads, resid_pdrop=0,
                                         embd_pdrop=0, attn_pdrop=0, bos_token_id=0, eos_token_id=0)
        model = transformers.GPT2LMHeadModel(config)
        return model, shape | dict(kind="gpt2", groups=heads, inner=4 * width)
    groups, inner = rng.choice([g for g in (1, 2, heads) if heads % g == 0]), rng.choice([24, 40, 64])
    tied = rng.random() < 0.5
    config = transformers.LlamaConfig(vocab_size=words, hidden_size=width, intermediate_size=inner, num_hidden_layers=layers, num_attention_heads=heads,
                                      num_key_value_heads=groups, max_position_embeddings=sequence, rms_norm_eps=1e-5, tie_word_embeddings=tied,
                                      rope_parameters=dict(rope_type="default", rope_theta=500.0))
    return transformers.LlamaForCausalLM(config), shape | dict(kind="llama", groups=groups, inner=inner, tied=tied)


def megatron(shape):
    llama = shape["kind"] != "gpt2"
    oss = shape["kind"] == "gpt_oss"
    experts = {}
    if shape["kind"] in MIXTURES:
        experts = dict(num_moe_experts=shape["experts"], moe_router_topk=shape["chosen"], moe_ffn_hidden_size=shape["inner"],
                       moe_token_dispatcher_type="alltoall", moe_router_load_balancing_type="aux_loss", moe_aux_loss_coeff=shape["balance"],
                       moe_z_loss_coeff=shape["z"] or None)
    if shape["kind"] == "qwen3_next":
        experts |= qwen3_next.settings(shape)
    if oss:
        experts |= dict(softmax_type="learnable", window_size=(shape["window"] - 1, 0), window_attn_skip_freq=2, glu_linear_offset=1.0,
                        activation_func_clamp_value=shape["limit"])
    config = TransformerConfig(
        num_layers=shape["layers"], hidden_size=shape["width"], num_attention_heads=shape["heads"], num_query_groups=shape["groups"],
        ffn_hidden_size=shape["inner"], gated_linear_unit=llama,
        activation_func=quick_gelu if oss else F.silu if llama else functools.partial(F.gelu, approximate="tanh"), add_bias_linear=oss or not llama,
        normalization="RMSNorm" if llama else "LayerNorm", layernorm_epsilon=qwen3_next.EPSILON if shape["kind"] == "qwen3_next" else 1e-5, **PEERS.PLAIN, **experts)
    if oss:
        for name, value in dict(rotary_scaling_factor=4.0, original_max_position_embeddings=8, beta_fast=shape["fast"], beta_slow=0.1, mscale=None,
                                mscale_all_dim=None, correction_range_round_to_int=False).items():
            setattr(config, f"yarn_{name}", value)
    if shape["kind"] == "qwen3_next":
        layers = qwen3_next.block(shape)
    else:
        layers = get_gpt_layer_local_spec(num_experts=shape.get("experts"), moe_grouped_gemm=False, normalization=config.normalization)
    return GPTModel(config, layers, shape["words"], shape["sequence"], rotary_percent=shape.get("turned", 1.0),
                    share_embeddings_and_output_weights=shape.get("tied", True), rotary_base=500,
                    position_embedding_type="yarn" if oss else "rope" if llama else "learned_absolute")


def by_groups(parts, shape):
    """Queries, keys and values as Megatron keeps them: group by group."""
    d = shape["width"] // shape["heads"]
    return torch.cat([p.unflatten(0, (shape["groups"], -1, d)).flatten(1, 2) for p in parts], 1).flatten(0, 1)


def own_of_gpt_oss(weights, layer, to, kind, shape):
    """Sinks and experts: matrices are turned there, and rows of the gate stand between those that it multiplies."""
    out = {f"{to}self_attention.core_attention.softmax_offset": weights[layer + "self_attn.sinks"]}
    end = {"weight": "", "bias": "_bias"}[kind]
    for e in range(shape["experts"]):
        expert = f"{to}mlp.experts.local_experts.{e}."
        up, down = (weights[f"{layer}mlp.experts.{name}_proj{end}"][e].movedim(-1, 0) for name in ("gate_up", "down"))
        out |= {f"{expert}linear_fc1.{kind}": torch.cat([up[::2], up[1::2]]), f"{expert}linear_fc2.{kind}": down}
    return out


def renamed(weights, shape):
    """Weights of transformers under megatron-core's names, where it has such models."""
    if shape["kind"] in BY_TRANSFORMERS_ALONE:
        return dict(weights)
    if shape["kind"] == "qwen3_next":
        return qwen3_next.renamed(weights, shape)
    out = {}
    if shape["kind"] == "gpt2":
        out |= {"embedding.word_embeddings.weight": weights["transformer.wte.weight"],
                "embedding.position_embeddings.weight": weights["transformer.wpe.weight"]}
        ends, layer = "transformer.ln_f", "transformer.h"
        plain = {"ln_1": "input_layernorm", "ln_2": "pre_mlp_layernorm"}
        turned = {"attn.c_attn": "self_attention.linear_qkv", "attn.c_proj": "self_attention.linear_proj", "mlp.c_fc": "mlp.linear_fc1",
                  "mlp.c_proj": "mlp.linear_fc2"}
    else:
        out["embedding.word_embeddings.weight"] = weights["model.embed_tokens.weight"]
        ends, layer = "model.norm", "model.layers"
        plain = {"input_layernorm": "input_layernorm", "post_attention_layernorm": "pre_mlp_layernorm", "self_attn.o_proj": "self_attention.linear_proj"}
        plain |= {"mixtral": {"mlp.gate": "mlp.router"}, "gpt_oss": {"mlp.router": "mlp.router"}}.get(shape["kind"], {"mlp.down_proj": "mlp.linear_fc2"})
        turned = {}
    if not shape.get("tied", True):
        out["output_layer.weight"] = weights["lm_head.weight"]
    kinds = ("weight", "bias") if shape["kind"] in ("gpt2", "gpt_oss") else ("weight",)
    for kind in kinds:
        if f"{ends}.{kind}" in weights:
            out[f"decoder.final_layernorm.{kind}"] = weights[f"{ends}.{kind}"]
        for i in range(shape["layers"]):
            to = f"decoder.layers.{i}."
            for old, new in plain.items():
                if kind == "weight" or f"{layer}.{i}.{old}.{kind}" in weights:
                    out[f"{to}{new}.{kind}"] = weights[f"{layer}.{i}.{old}.{kind}"]
            for old, new in turned.items():
                out[f"{to}{new}.{kind}"] = weights[f"{layer}.{i}.{old}.{kind}"].t()
            if shape["kind"] == "gpt2":
                qkv = out[f"{to}self_attention.linear_qkv.{kind}"].chunk(3)
            else:
                qkv = [weights[f"{layer}.{i}.self_attn.{p}_proj.{kind}"] for p in "qkv"]
                if shape["kind"] == "llama":
                    out[f"{to}mlp.linear_fc1.weight"] = torch.cat([weights[f"{layer}.{i}.mlp.{p}_proj.weight"] for p in ("gate", "up")])
                if shape["kind"] == "gpt_oss":
                    out |= own_of_gpt_oss(weights, f"{layer}.{i}.", to, kind, shape)
                for e in range(shape.get("experts", 0) if shape["kind"] == "mixtral" else 0):  # transformers has them in one tensor
                    expert = f"{to}mlp.experts.local_experts.{e}."
                    out[expert + "linear_fc1.weight"] = weights[f"{layer}.{i}.mlp.experts.gate_up_proj"][e]
                    out[expert + "linear_fc2.weight"] = weights[f"{layer}.{i}.mlp.experts.down_proj"][e]
            out[f"{to}self_attention.linear_qkv.{kind}"] = by_groups(qkv, shape)
    return out


def by_weft(weft, folder, shape, *more):
    """Losses and norms, the samples of the run, and the weights after it as transformers names them."""
    flags = ["--load", folder / "model", "--finetune", "--use-checkpoint-args", "--data-path", folder / "text", "--split", "1,0,0", "--seq-length",
             shape["sequence"], "--micro-batch-size", MICRO, "--global-batch-size", GLOBAL, "--train-iters", STEPS, "--lr", RATE, "--min-lr", RATE,
             "--lr-decay-style", "constant", "--lr-warmup-iters", WARM, "--weight-decay", DECAY, "--clip-grad", 1, "--adam-beta2", 0.999,
             "--attention-dropout", 0, "--hidden-dropout", 0, "--eval-iters", 0, "--tokenizer-type", "NullTokenizer", "--vocab-size",
             shape["words"], "--max-position-embeddings", shape["sequence"]]
    if shape.get("experts"):
        flags += ["--moe-aux-loss-coeff", shape["balance"], "--moe-z-loss-coeff", shape["z"]]
    if shape["kind"] in BY_TRANSFORMERS_ALONE and shape.get("experts"):
        flags += ["--moe-router-bias-update-rate", 0]  # nobody else moves it
    run(weft, "train", "gpt", *flags, *more, "--log-interval", 1, "--log-jsonl", folder / "log.jsonl", "--save", folder / "saved", "--save-interval", STEPS)
    lines = [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]
    samples = run(weft, "data", "sample", "--index", 0, "--count", STEPS * GLOBAL, "--json", *flags)
    run(weft, "checkpoint", "convert", "--dtype", "f32", folder / "saved", folder / "after")
    after = transformers.AutoModelForCausalLM.from_pretrained(folder / "after", dtype=torch.float32).state_dict()
    return [line["lm_loss"] for line in lines], [line["grad_norm"] for line in lines], [json.loads(s) for s in samples.splitlines()], after


def apart(a, b):
    return max(abs(x - y) / abs(y) for x, y in zip(a, b, strict=True))


def zero_in_theory(name, shape):
    """The gradient of a key's bias is zero where it does not turn, so Adam walks after noise."""
    if shape["kind"] == "families":
        return name.endswith(("k_proj.bias", "query_key_value.bias", "c_attn.bias"))
    return shape["kind"] in ("gpt2", "gpt_oss") and "linear_qkv.bias" in name


def allowed(name):
    """Of a weight's largest element."""
    return 3e-2 if name.endswith(qwen3_next.OF_DECAYS) else 2e-3


def compare(weft, folder, seed, kind):
    rng = random.Random(seed)
    torch.manual_seed(seed)
    get_moe_layer_wise_logging_tracker().clear()  # it is as long as the first model that wrote to it
    model, shape = draw(rng, kind)
    model.save_pretrained(folder / "model")
    builder = IndexedDatasetBuilder(str(folder / "text.bin"), dtype=numpy.uint16)
    for _ in range(40):
        tokens = [rng.randrange(shape["words"] - 1) for _ in range(rng.randint(5, 90))]
        builder.add_document(torch.tensor(tokens), [len(tokens)])
    builder.finalize(str(folder / "text.idx"))
    losses, norms, samples, after = by_weft(weft, folder, shape)
    found, trained = {}, {}
    if shape["kind"] not in BY_TRANSFORMERS_ALONE:
        other = trained["megatron-core"] = megatron(shape)
        other.load_state_dict({k: v.clone() for k, v in renamed(model.state_dict(), shape).items()}, strict=False)
        positions = torch.arange(shape["sequence"]).expand(MICRO, -1)
        mask = torch.ones(1, 1, shape["sequence"], shape["sequence"], dtype=torch.bool).triu(1)
        found["megatron-core"] = steps(other, lambda x: other(x["tokens"], positions, mask, labels=x["labels"]).mean(), samples, RATE)
    if not shape.get("balance") and not shape.get("z"):
        found["transformers"] = steps(model, lambda x: F.cross_entropy(model(x["tokens"]).logits.flatten(0, 1), x["labels"].flatten()), samples, RATE)
    print(f"seed {seed}: {shape}")
    for name, (their_losses, their_norms) in found.items():
        a, b = apart(losses, their_losses), apart(norms, their_norms)
        print(f"  {name}: losses apart by {a:.1e}, gradient norms by {b:.1e}")
        if a > 1e-4 or b > 1e-3:
            sys.exit(f"  ours   {losses} {norms}\n  theirs {their_losses} {their_norms}")
    parted = (lambda weights: qwen3_next.parted(weights, shape)) if shape["kind"] == "qwen3_next" else dict
    ours = parted(renamed(after, shape))
    trained = {who: parted(dict(peer.named_parameters())) for who, peer in trained.items()}
    if "transformers" in found:
        trained["transformers"] = parted(renamed(model.state_dict(), shape))
    for who, theirs in trained.items():
        differences = {name: ((ours[name] - theirs[name]).abs().max() / theirs[name].abs().max()).item()
                       for name in ours if not zero_in_theory(name, shape)}
        worst = max(differences, key=lambda name: differences[name] / allowed(name))
        print(f"  {who}: weights after {STEPS} steps apart by {differences[worst]:.1e} ({worst})")
        if differences[worst] > allowed(worst):
            sys.exit(1)


def main():
    words = recipe.words(__doc__)
    words.add_argument("--kind", choices=["gpt2", "llama", *MIXTURES]), words.add_argument("--family", choices=[f.__name__ for f in families.FAMILIES])
    args = words.parse_args()
    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    if args.family:
        args.kind, MIXTURES["families"] = "families", functools.partial(families.draw, family=args.family)
    PEERS.pretend_cuda()
    PEERS.pretend_streams()
    fused_softmax.get_sliding_window_causal_mask = window_mask
    # Biases of experts are added in place to what this returns, which newer versions of torch do not allow of the sum itself.
    summed = tensor_parallel.layers.reduce_from_tensor_model_parallel_region
    tensor_parallel.layers.reduce_from_tensor_model_parallel_region = lambda *a, **k: summed(*a, **k).clone()
    MoEAuxLossAutoScaler.set_loss_scale(torch.tensor(MICRO / GLOBAL))  # as Megatron's schedules do
    recipe.alone(args, functools.partial(compare, kind=args.kind))
    print(f"{args.cases} models: {STEPS} steps as transformers'" + (" and as megatron-core's" if args.kind not in BY_TRANSFORMERS_ALONE else ""))


if __name__ == "__main__":
    main()
