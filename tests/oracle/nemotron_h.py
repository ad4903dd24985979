"""Nemotron-H for train.py: models of transformers whose layers are one thing each. megatron-core makes its state spaces of kernels that only GPUs have, so
transformers, whose rule is in torch as well, is the one peer."""
import math

import torch
import transformers

# With a usual epsilon the norm of a group of a few values makes so much of rounding that in f32 no two programs agree for twenty steps: of one model
# gradient norms were 1.4e-3 from f64 in transformers and 1.0e-3 in weft.
EPSILON = 1e-2

WORDS = {"M": "linear_attention", "*": "full_attention", "-": "mlp", "E": "moe"}


def draw(rng, shape):
    """A model of transformers with random weights, and what by_weft must know of it."""
    heads, sequence = shape["heads"], rng.choice([16, 24, 70])
    layers = rng.choice(["M-", "ME*", "M*E-", "EM-M*", "*-ME", "MM*E"])
    groups, chosen = rng.choice([1, 2, 3]), rng.choice([2, 4])
    # Long texts have so many choices that some are left to rounding: there all experts are chosen.
    count = chosen if sequence > 64 else rng.choice([4, 8])
    apart = rng.choice([True, False]) and count == 8 and chosen == 4
    experts = dict(n_routed_experts=count, num_experts_per_tok=chosen, moe_intermediate_size=rng.choice([12, 20]),
                   moe_shared_expert_intermediate_size=rng.choice([12, 16]), moe_latent_size=rng.choice([None, 8, 16]),
                   routed_scaling_factor=rng.choice([1.0, 2.5]), n_group=4 if apart else 1, topk_group=2 if apart else 1)
    state = dict(mamba_num_heads=groups * rng.choice([1, 2, 3]), mamba_head_dim=rng.choice([4, 8, 12]), n_groups=groups,
                 ssm_state_size=rng.choice([4, 6, 16]), conv_kernel=rng.choice([2, 4]))
    shape |= dict(kind="nemotron_h", layers=layers, sequence=sequence, groups=rng.choice([g for g in (1, 2, heads) if heads % g == 0]),
                  inner=rng.choice([24, 40]), experts=count if "E" in layers else 0, balance=0, z=0, **state)
    if "E" in layers:
        shape |= experts
    config = transformers.NemotronHConfig(
        vocab_size=shape["words"], hidden_size=shape["width"], intermediate_size=shape["inner"], layers_block_type=[WORDS[one] for one in layers],
        num_attention_heads=heads, num_key_value_heads=shape["groups"], head_dim=shape["width"] // heads, max_position_embeddings=sequence,
        layer_norm_epsilon=EPSILON, initializer_range=0.1, use_cache=False, time_step_min=1e-30,  # to which transformers raises times, and weft raises none
        **experts, **state)
    model = transformers.NemotronHForCausalLM(config)
    for name, weight in [*model.named_parameters(), *model.named_buffers()]:
        if name.endswith("gate.weight"):
            torch.nn.init.normal_(weight, std=0.3)  # so that few choices are close enough for rounding to make another
        if name.endswith("e_score_correction_bias"):
            weight.data = 0.2 * torch.rand_like(weight)
        if name.endswith(("conv1d.weight", "conv1d.bias")):
            torch.nn.init.normal_(weight, std=0.5)  # so that norms have more than rounding to make something of
        if name.endswith("A_log"):
            weight.data = torch.log(1 + 15 * torch.rand_like(weight))
        if name.endswith("dt_bias"):
            times = torch.exp(math.log(1e-3) + math.log(100) * torch.rand_like(weight))
            weight.data = times + torch.log(-torch.expm1(-times))
        if name.endswith(("norm.weight", "norm_f.weight", ".D")):
            weight.data += 0.1 * torch.randn_like(weight)
    return model, shape
