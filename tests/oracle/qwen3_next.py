"""Qwen3-Next for train.py: models of transformers, the same of megatron-core's GatedDeltaNet and attention, and weights from one to the other.

megatron-core makes such layers of Transformer Engine's parts and Flash Linear Attention's kernels. Here its GatedDeltaNet has its own parallel
matrices and torch's RMS norm, its rule in torch (deterministic_mode), and in place of the one function of FLA's that is left, the length of
queries and keys, that function's definition."""
import torch
import transformers
from megatron.core.models.gpt.gpt_layer_specs import get_gpt_layer_local_spec
from megatron.core.ssm import gated_delta_net
from megatron.core.tensor_parallel import ColumnParallelLinear, RowParallelLinear
from megatron.core.transformer.spec_utils import ModuleSpec
from megatron.core.transformer.transformer_block import TransformerBlockSubmodules


# A first word's memory gives (q k) v, which is next to nothing where its query and its key stand apart: with a usual epsilon the norm behind it
# makes so much of rounding that in f32 no two programs agree for twenty steps, transformers in f32 and in f64 neither.
EPSILON = 1e-2

# Both peers add decays up over a chunk, and take their differences again: of what Adam makes in twenty steps of such gradients in f32, a hundredth
# is another in f64. weft is a thousand times nearer to that.
OF_DECAYS = ("A_log", "dt_bias", "in_proj.weight of decays")


def draw(rng, shape):
    """A model of transformers with random weights, and what megatron-core must know of it."""
    heads, head = shape["heads"], shape["width"] // shape["heads"]
    layers, every, keys = rng.randint(2, 4), rng.choice([2, 3]), rng.choice([1, 2, 3])
    sequence = rng.choice([16, 24, 70])
    chosen = rng.choice([2, 3])
    # Long texts have so many choices that some are left to rounding: there all experts are chosen.
    count = chosen if sequence > 64 else rng.choice([4, 6, 8])
    shape |= dict(kind="qwen3_next", layers=layers, groups=rng.choice([g for g in (1, 2, heads) if heads % g == 0]), inner=rng.choice([24, 40]),
                  tied=False, sequence=sequence, experts=count, chosen=chosen,
                  balance=rng.choice([0, 0.05]), z=rng.choice([0, 0.01]), expert=rng.choice([12, 20]), shared=rng.choice([12, 16]),
                  turned=rng.choice([0.5, 1.0] if head < 8 else [0.25, 0.5, 1.0]), remembers=[int(i % every != 0) for i in range(1, layers + 1)],
                  dense=rng.choice([[], [0], [layers - 1]]), keys=keys, values=keys * rng.choice([1, 2, 3]), key=rng.choice([4, 6, 16]),
                  value=rng.choice([4, 8, 12]), taps=rng.choice([2, 4]))
    config = transformers.Qwen3NextConfig(
        vocab_size=shape["words"], hidden_size=shape["width"], intermediate_size=shape["inner"], num_hidden_layers=layers, num_attention_heads=heads,
        num_key_value_heads=shape["groups"], head_dim=head, max_position_embeddings=shape["sequence"], rms_norm_eps=EPSILON,
        num_experts=shape["experts"], num_experts_per_tok=shape["chosen"], moe_intermediate_size=shape["expert"],
        shared_expert_intermediate_size=shape["shared"], mlp_only_layers=shape["dense"], norm_topk_prob=True, tie_word_embeddings=False,
        initializer_range=0.1, linear_num_key_heads=keys, linear_num_value_heads=shape["values"], linear_key_head_dim=shape["key"],
        linear_value_head_dim=shape["value"], linear_conv_kernel_dim=shape["taps"],
        layer_types=["linear_attention" if one else "full_attention" for one in shape["remembers"]],
        rope_parameters=dict(rope_type="default", rope_theta=500.0, partial_rotary_factor=shape["turned"]))
    model = transformers.Qwen3NextForCausalLM(config)
    for name, weight in model.named_parameters():
        if name.endswith("mlp.gate.weight"):
            torch.nn.init.normal_(weight, std=0.3)  # so that few choices are close enough for rounding to make another
        if name.endswith("conv1d.weight"):
            torch.nn.init.normal_(weight, std=0.5)  # so that norms have more than rounding to make something of
        if name.endswith(("norm.weight", "dt_bias")):
            weight.data += 0.1 * torch.randn_like(weight)
    return model, shape


def of_length_one(x):
    """fla.modules.l2norm's."""
    return x * torch.rsqrt((x * x).sum(-1, keepdim=True) + 1e-6)


def settings(shape):
    """Of megatron-core's TransformerConfig, beside those of any mixture of experts."""
    return dict(moe_layer_freq=[int(i not in shape["dense"]) for i in range(shape["layers"])], moe_ffn_hidden_size=shape["expert"],
                moe_shared_expert_intermediate_size=shape["shared"], moe_shared_expert_gate=True, qk_layernorm=True, attention_output_gate=True,
                kv_channels=shape["width"] // shape["heads"], experimental_attention_variant="gated_delta_net",
                linear_attention_freq=shape["remembers"], linear_conv_kernel_dim=shape["taps"], linear_key_head_dim=shape["key"],
                linear_value_head_dim=shape["value"], linear_num_key_heads=shape["keys"], linear_num_value_heads=shape["values"],
                deterministic_mode=True)


def block(shape):
    """megatron-core's layers."""
    gated_delta_net.HAVE_FLA, gated_delta_net.l2norm = True, of_length_one
    layers = []
    for i, remembers in enumerate(shape["remembers"]):
        layer = get_gpt_layer_local_spec(num_experts=None if i in shape["dense"] else shape["experts"], moe_grouped_gemm=False, qk_layernorm=True,
                                         normalization="RMSNorm")
        norm = layer.submodules.pre_mlp_layernorm
        if remembers:
            parts = gated_delta_net.GatedDeltaNetSubmodules(in_proj=ColumnParallelLinear, out_norm=norm, out_proj=RowParallelLinear)
            layer.submodules.self_attention = ModuleSpec(module=gated_delta_net.GatedDeltaNet, submodules=parts)
        layers.append(layer)
    return TransformerBlockSubmodules(layer_specs=layers, layer_norm=norm)


def attention(weights, to, shape):
    """Of each group of heads queries, their gates, the key and the value; theirs have head by head a query and its gate."""
    d, groups = shape["width"] // shape["heads"], shape["groups"]
    queries = weights["q_proj.weight"].unflatten(0, (groups, -1, 2, d)).transpose(1, 2).flatten(1, 3)
    rest = [weights[f"{part}_proj.weight"].unflatten(0, (groups, d)) for part in "kv"]
    return {f"{to}linear_qkv.weight": torch.cat([queries, *rest], 1).flatten(0, 1), f"{to}linear_proj.weight": weights["o_proj.weight"],
            f"{to}q_layernorm.weight": 1 + weights["q_norm.weight"], f"{to}k_layernorm.weight": 1 + weights["k_norm.weight"]}


def memory(weights, to, shape):
    """All heads' queries, keys, values, gates, rates and decays behind each other; theirs have them key head by key head."""
    keys, each = shape["keys"], shape["values"] // shape["keys"]
    parts = [each * shape["value"]] * 2
    main = weights["in_proj_qkvz.weight"].unflatten(0, (keys, -1)).split([shape["key"], shape["key"], *parts], 1)
    few = weights["in_proj_ba.weight"].unflatten(0, (keys, -1)).split(each, 1)
    out = {f"{to}{name}": weights[name] for name in ("A_log", "dt_bias", "conv1d.weight", "out_proj.weight")}
    return out | {f"{to}in_proj.weight": torch.cat([part.flatten(0, 1) for part in (*main, *few)]), f"{to}out_norm.weight": weights["norm.weight"]}


def mlp(weights, to):
    return {f"{to}linear_fc1.weight": torch.cat([weights[f"{part}_proj.weight"] for part in ("gate", "up")]),
            f"{to}linear_fc2.weight": weights["down_proj.weight"]}


def experts(weights, to, shape):
    out = {f"{to}router.weight": weights["gate.weight"], f"{to}shared_experts.gate_weight": weights["shared_expert_gate.weight"]}
    for e in range(shape["experts"]):
        expert = f"{to}experts.local_experts.{e}."
        out |= {f"{expert}linear_fc1.weight": weights["experts.gate_up_proj"][e], f"{expert}linear_fc2.weight": weights["experts.down_proj"][e]}
    return out | mlp(below(weights, "shared_expert."), f"{to}shared_experts.")


def parted(weights, shape):
    """The same, with rows that make decays by themselves."""
    out = dict(weights)
    for name in [name for name in out if name.endswith("in_proj.weight")]:
        whole = out.pop(name)
        out |= {name: whole[:-shape["values"]], f"{name} of decays": whole[-shape["values"]:]}
    return out


def below(weights, start):
    return {name.removeprefix(start): w for name, w in weights.items() if name.startswith(start)}


def renamed(weights, shape):
    """Weights of transformers under megatron-core's names; torch's norms have no gains around zero."""
    out = {"embedding.word_embeddings.weight": weights["model.embed_tokens.weight"], "output_layer.weight": weights["lm_head.weight"],
           "decoder.final_layernorm.weight": 1 + weights["model.norm.weight"]}
    for i, remembers in enumerate(shape["remembers"]):
        layer, to = below(weights, f"model.layers.{i}."), f"decoder.layers.{i}."
        out |= {f"{to}input_layernorm.weight": 1 + layer["input_layernorm.weight"],
                f"{to}pre_mlp_layernorm.weight": 1 + layer["post_attention_layernorm.weight"]}
        of_attention = memory if remembers else attention
        out |= of_attention(below(layer, "linear_attn." if remembers else "self_attn."), f"{to}self_attention.", shape)
        own = below(layer, "mlp.")
        out |= mlp(own, f"{to}mlp.") if i in shape["dense"] else experts(own, f"{to}mlp.", shape)
    return out
