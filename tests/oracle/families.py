"""Small models of families that megatron-core has not, for train.py: transformers is the one peer."""
import torch
import transformers as t


def angles(base, **stretched):
    return dict(rope_type="default", rope_theta=base) | stretched


def by_layer(rng, layers):
    """Which layers look through a window: some, and seldom all but the last."""
    return [rng.choice(["sliding_attention", "full_attention"]) for _ in range(layers - 1)] + ["sliding_attention"]


def phi3(rng, shape, common):
    pairs = shape["width"] // shape["heads"] // 2
    stretched = rng.choice([None, angles(500.0, rope_type="longrope", short_factor=[1 + 0.5 * i for i in range(pairs)],
                                         long_factor=[2 + 1.5 * i for i in range(pairs)])])
    return t.Phi3ForCausalLM(t.Phi3Config(**common, sliding_window=rng.choice([None, 5]), original_max_position_embeddings=rng.choice([8, 24]),
                                          rope_parameters=stretched or angles(500.0, partial_rotary_factor=0.5)))


def smollm3(rng, shape, common):
    return t.SmolLM3ForCausalLM(t.SmolLM3Config(**common, no_rope_layer_interval=rng.randint(1, shape["layers"]), use_sliding_window=rng.choice([True, False]),
                                                sliding_window=3, rope_parameters=angles(500.0)))


def olmo2(rng, shape, common):
    return t.Olmo2ForCausalLM(t.Olmo2Config(**common, rope_parameters=angles(500.0)))


def olmo3(rng, shape, common):
    return t.Olmo3ForCausalLM(t.Olmo3Config(**common, sliding_window=4, layer_types=by_layer(rng, shape["layers"]), rope_parameters=dict(
        sliding_attention=angles(500.0), full_attention=angles(500.0, rope_type="yarn", factor=4.0, original_max_position_embeddings=8))))


def exaone4(rng, shape, common):
    every = rng.randint(1, shape["layers"])
    return t.Exaone4ForCausalLM(t.Exaone4Config(**common, sliding_window=4, sliding_window_pattern=every, rope_parameters=angles(500.0), layer_types=[
        "full_attention" if (i + 1) % every == 0 and every > 1 else "sliding_attention" for i in range(shape["layers"])]))


def gemma2(rng, shape, common):
    return t.Gemma2ForCausalLM(t.Gemma2Config(**{**common, "hidden_act": None}, query_pre_attn_scalar=rng.choice([3, 8, 16]), sliding_window=4,
                                              attn_logit_softcapping=rng.choice([0.3, 2.0, None]), final_logit_softcapping=rng.choice([0.7, 3.0, None]),
                                              layer_types=by_layer(rng, shape["layers"]), rope_parameters=angles(500.0)))


def gemma3(rng, shape, common):
    return t.Gemma3ForCausalLM(t.Gemma3TextConfig(**{**common, "hidden_act": None}, query_pre_attn_scalar=rng.choice([3, 8, 16]), sliding_window=4,
                                                  layer_types=by_layer(rng, shape["layers"]), rope_parameters=dict(
                                                      sliding_attention=angles(100.0), full_attention=angles(500.0, rope_type="linear", factor=2.0))))


def glm4(rng, shape, common):
    return t.Glm4ForCausalLM(t.Glm4Config(**common, attention_bias=rng.choice([True, False]), rope_parameters=angles(500.0, partial_rotary_factor=0.5)))


def glm4_moe(rng, shape, common):
    shape["experts"] = 8
    return t.Glm4MoeForCausalLM(t.Glm4MoeConfig(
        **common, n_routed_experts=8, num_experts_per_tok=4, moe_intermediate_size=rng.choice([12, 20]), n_shared_experts=rng.choice([1, 2]), num_mtp_layers=0,
        first_k_dense_replace=rng.randint(0, shape["layers"] - 1), use_qk_norm=rng.choice([True, False]), attention_bias=rng.choice([True, False]),
        routed_scaling_factor=rng.choice([1.0, 2.5]), rope_parameters=angles(500.0, partial_rotary_factor=0.5)))


def granite(rng, shape, common):
    return t.GraniteForCausalLM(t.GraniteConfig(**common, embedding_multiplier=rng.choice([3.0, 12.0]), attention_multiplier=rng.choice([0.1, 0.6]),
                                                residual_multiplier=rng.choice([0.22, 0.7]), logits_scaling=rng.choice([2.0, 8.0]),
                                                rope_parameters=angles(500.0)))


def llama4(rng, shape, common):
    shape["experts"] = 4
    return t.Llama4ForCausalLM(t.Llama4TextConfig(
        **common, intermediate_size_mlp=rng.choice([20, 48]), num_local_experts=4, interleave_moe_layer_step=rng.choice([1, shape["layers"]]),
        no_rope_layer_interval=rng.choice([2, 9]), use_qk_norm=rng.choice([True, False]), rope_parameters=angles(500.0),
        attention_chunk_size=rng.choice([None, 3, 5]), floor_scale=rng.choice([2, 5]), attn_scale=rng.choice([0.3, 1.0])))


def without(common, *names):
    return {name: value for name, value in common.items() if name not in names}


def single_keys(common):
    return without(common, "num_key_value_heads", "rms_norm_eps", "head_dim")


def gpt_neox(rng, shape, common):
    return t.GPTNeoXForCausalLM(t.GPTNeoXConfig(**single_keys(common), hidden_act=rng.choice(["gelu", "gelu_new"]), use_parallel_residual=rng.choice([True, True, False]),
                                                rope_parameters=angles(500.0, partial_rotary_factor=rng.choice([0.5, 1.0]))))


def gptj(rng, shape, common):
    return t.GPTJForCausalLM(t.GPTJConfig(vocab_size=shape["words"], n_positions=shape["sequence"], n_embd=shape["width"], n_layer=shape["layers"], n_head=shape["heads"],
                                          n_inner=shape["inner"], rotary_dim=rng.choice([2, shape["width"] // shape["heads"]]), initializer_range=0.1,
                                          bos_token_id=1, eos_token_id=2, tie_word_embeddings=common["tie_word_embeddings"], attn_implementation="eager"))


def phi(rng, shape, common):
    return t.PhiForCausalLM(t.PhiConfig(**{**single_keys(common), "num_key_value_heads": shape["groups"]}, qk_layernorm=False,
                                        rope_parameters=angles(500.0, partial_rotary_factor=rng.choice([0.5, 1.0]))))


def falcon(rng, shape, common):
    kind = rng.choice([dict(multi_query=True), dict(multi_query=False), dict(multi_query=True, parallel_attn=False),
                       *[dict(new_decoder_architecture=True, num_kv_heads=shape["groups"], num_ln_in_parallel_attn=norms) for norms in (1, 2)]])
    said = single_keys(common)
    said["ffn_hidden_size"] = said.pop("intermediate_size")
    return t.FalconForCausalLM(t.FalconConfig(**said, **kind, alibi=False, bias=rng.choice([True, False]), rope_parameters=angles(500.0)))


def gpt_sizes(shape, common):
    """In GPT-2's words."""
    return dict(vocab_size=shape["words"], n_positions=shape["sequence"], n_embd=shape["width"], n_layer=shape["layers"], n_head=shape["heads"],
                n_inner=shape["inner"], initializer_range=0.1, bos_token_id=1, eos_token_id=2, tie_word_embeddings=common["tie_word_embeddings"],
                resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0, attn_implementation="eager")


def gpt_bigcode(rng, shape, common):
    return t.GPTBigCodeForCausalLM(t.GPTBigCodeConfig(**gpt_sizes(shape, common), multi_query=True))  # else it becomes a GPT-2


def gpt_neo(rng, shape, common):
    pattern = [rng.choice(["global", "local"]) for _ in range(shape["layers"])]
    return t.GPTNeoForCausalLM(t.GPTNeoConfig(
        vocab_size=shape["words"], hidden_size=shape["width"], num_layers=shape["layers"], num_heads=shape["heads"], intermediate_size=shape["inner"],
        attention_types=[[pattern, 1]], window_size=rng.choice([3, 5]), max_position_embeddings=shape["sequence"], initializer_range=0.1, bos_token_id=1,
        eos_token_id=2, tie_word_embeddings=common["tie_word_embeddings"], attn_implementation="eager"))


def opt(rng, shape, common):
    """As Galactica: with biases it becomes a GPT-2."""
    return t.OPTForCausalLM(t.OPTConfig(
        vocab_size=shape["words"], hidden_size=shape["width"], num_hidden_layers=shape["layers"], num_attention_heads=shape["heads"], ffn_dim=shape["inner"],
        max_position_embeddings=shape["sequence"], enable_bias=False, activation_function=rng.choice(["relu", "gelu"]), dropout=0.0,
        init_std=0.1, bos_token_id=1, eos_token_id=2, pad_token_id=None, tie_word_embeddings=common["tie_word_embeddings"], attn_implementation="eager"))


def bloom(rng, shape, common):
    return t.BloomForCausalLM(t.BloomConfig(
        vocab_size=shape["words"], hidden_size=shape["width"], n_layer=shape["layers"], n_head=shape["heads"], initializer_range=0.1, bos_token_id=1,
        eos_token_id=2, tie_word_embeddings=common["tie_word_embeddings"], attn_implementation="eager"))


def mpt(rng, shape, common):
    return t.MptForCausalLM(t.MptConfig(
        vocab_size=shape["words"], d_model=shape["width"], n_layers=shape["layers"], n_heads=shape["heads"], max_seq_len=shape["sequence"],
        initializer_range=0.1, tie_word_embeddings=common["tie_word_embeddings"], attn_implementation="eager"))


def falcon_falling(rng, shape, common):
    """transformers 5 adds what scores fall by twice where attention is eager."""
    said = without(single_keys(common), "attn_implementation")
    said["ffn_hidden_size"] = said.pop("intermediate_size")
    return t.FalconForCausalLM(t.FalconConfig(**said, alibi=True, multi_query=rng.choice([True, False]), parallel_attn=rng.choice([True, False]),
                                              bias=rng.choice([True, False]), new_decoder_architecture=False, attn_implementation="sdpa"))


def stablelm(rng, shape, common):
    return t.StableLmForCausalLM(t.StableLmConfig(
        **without(common, "rms_norm_eps", "head_dim"), use_qkv_bias=rng.choice([True, False]), use_parallel_residual=rng.choice([True, False]),
        rope_parameters=angles(500.0, partial_rotary_factor=rng.choice([0.5, 1.0]))))


def stablelm_each(rng, shape, common):
    return t.StableLmForCausalLM(t.StableLmConfig(**without(common, "rms_norm_eps", "head_dim"), qk_layernorm=True, use_parallel_residual=True,
                                                  rope_parameters=angles(500.0, partial_rotary_factor=rng.choice([0.5, 1.0]))))


def cohere(rng, shape, common):
    return t.CohereForCausalLM(t.CohereConfig(**common, logit_scale=rng.choice([0.25, 1.0]), use_qk_norm=rng.choice([True, False]),
                                              attention_bias=rng.choice([True, False]), rope_parameters=angles(500.0)))


def olmo(rng, shape, common):
    return t.OlmoForCausalLM(t.OlmoConfig(**without(common, "rms_norm_eps", "head_dim"), clip_qkv=rng.choice([None, 1.0, 1.5]),
                                          attention_bias=rng.choice([True, False]), rope_parameters=angles(500.0)))


def qwen3(rng, shape, common):
    return t.Qwen3ForCausalLM(t.Qwen3Config(**common, attention_bias=rng.choice([True, False]), rope_parameters=rng.choice([
        angles(500.0), angles(500.0, rope_type="yarn", factor=4.0, original_max_position_embeddings=8, attention_factor=rng.choice([0.8, 1.5]))])))


def hunyuan(rng, shape, common):
    said = common | dict(attention_bias=rng.choice([True, False]), rope_parameters=angles(500.0))
    if rng.random() < 0.5:
        return t.HunYuanDenseV1ForCausalLM(t.HunYuanDenseV1Config(**said))
    shape["experts"] = 4
    return t.HunYuanMoEV1ForCausalLM(t.HunYuanMoEV1Config(**said, num_experts=4, moe_topk=2))


def granitemoe(rng, shape, common):
    shape["experts"] = 4
    said = without(common, "head_dim") | dict(
        num_local_experts=4, num_experts_per_tok=2, embedding_multiplier=3.0, attention_multiplier=rng.choice([0.1, 0.6]), residual_multiplier=0.7,
        logits_scaling=2.0, attention_bias=rng.choice([True, False]), rope_parameters=angles(500.0))
    if rng.random() < 0.5:
        return t.GraniteMoeForCausalLM(t.GraniteMoeConfig(**said))
    return t.GraniteMoeSharedForCausalLM(t.GraniteMoeSharedConfig(**said, shared_intermediate_size=rng.choice([12, 20])))


def cohere2(rng, shape, common):
    return t.Cohere2ForCausalLM(t.Cohere2Config(**without(common, "rms_norm_eps", "head_dim"), logit_scale=rng.choice([0.25, 1.0]), sliding_window=4,
                                                layer_types=by_layer(rng, shape["layers"]), rope_parameters=angles(500.0)))


def starcoder2(rng, shape, common):
    return t.Starcoder2ForCausalLM(t.Starcoder2Config(**without(common, "rms_norm_eps", "head_dim"), use_bias=rng.choice([True, False]),
                                                      sliding_window=4, rope_parameters=angles(500.0)))


def nemotron(rng, shape, common):
    biases = rng.choice([True, False])
    return t.NemotronForCausalLM(t.NemotronConfig(**without(common, "rms_norm_eps"), hidden_act="relu2", attention_bias=biases,
                                                  mlp_bias=biases, rope_parameters=angles(500.0, partial_rotary_factor=rng.choice([0.5, 1.0]))))


def glm(rng, shape, common):
    return t.GlmForCausalLM(t.GlmConfig(**common, attention_bias=True, rope_parameters=angles(500.0, partial_rotary_factor=0.5)))


def arcee(rng, shape, common):
    biases = rng.choice([True, False])
    return t.ArceeForCausalLM(t.ArceeConfig(**common, attention_bias=biases, mlp_bias=biases, rope_parameters=angles(500.0)))


def seed_oss(rng, shape, common):
    return t.SeedOssForCausalLM(t.SeedOssConfig(**common, attention_bias=rng.choice([True, False]), attention_dropout=0.0, residual_dropout=0.0,
                                                rope_parameters=angles(500.0)))


def ministral3(rng, shape, common):
    return t.Ministral3ForCausalLM(t.Ministral3Config(**common, sliding_window=rng.choice([None, 5]), rope_parameters=angles(
        500.0, original_max_position_embeddings=rng.choice([3, 8]), llama_4_scaling_beta=rng.choice([0.1, 0.7]), **rng.choice([{}, dict(rope_type="yarn", factor=4.0)]))))


def dots1(rng, shape, common):
    shape["experts"] = 8
    return t.Dots1ForCausalLM(t.Dots1Config(
        **common, n_routed_experts=8, num_experts_per_tok=4, n_group=1, topk_group=1, moe_intermediate_size=rng.choice([12, 20]), n_shared_experts=rng.choice([1, 2]),
        first_k_dense_replace=rng.randint(0, shape["layers"] - 1), norm_topk_prob=True, routed_scaling_factor=rng.choice([1.0, 2.5]), sliding_window=4,
        max_window_layers=rng.randint(0, shape["layers"]), rope_parameters=angles(500.0)))


def minimax_m2(rng, shape, common):
    shape["experts"] = 8
    return t.MiniMaxM2ForCausalLM(t.MiniMaxM2Config(**common, num_local_experts=8, num_experts_per_tok=rng.choice([2, 4]),
                                                    rope_parameters=angles(500.0, partial_rotary_factor=0.5)))


def state_space(rng, shape):
    heads = rng.choice([2, 4])
    return dict(mamba_expand=2, mamba_n_heads=heads, mamba_d_head=2 * shape["width"] // heads, mamba_n_groups=rng.choice([1, 2]), mamba_d_state=rng.choice([4, 6]),
                mamba_d_conv=rng.choice([2, 4]))


# Norms of a few values make much of rounding, as nemotron_h.py says.
def bamba(rng, shape, common):
    return t.BambaForCausalLM(t.BambaConfig(**{**single_keys(common), "num_key_value_heads": shape["groups"], "rms_norm_eps": 1e-2}, **state_space(rng, shape),
                                            attn_layer_indices=[rng.randrange(shape["layers"])], rope_parameters=angles(500.0, partial_rotary_factor=0.5)))


def granitemoehybrid(rng, shape, common):
    shape["experts"] = experts = rng.choice([0, 4])
    kinds = [rng.choice(["linear_attention", "full_attention"]) for _ in range(shape["layers"] - 1)] + ["linear_attention"]
    return t.GraniteMoeHybridForCausalLM(t.GraniteMoeHybridConfig(
        **{**single_keys(common), "num_key_value_heads": shape["groups"], "rms_norm_eps": 1e-2}, **state_space(rng, shape), layer_types=kinds,
        num_local_experts=experts, num_experts_per_tok=2, shared_intermediate_size=rng.choice([12, 20]), position_embedding_type=rng.choice([None, "rope"]),
        embedding_multiplier=3.0, attention_multiplier=rng.choice([0.1, 0.6]), residual_multiplier=rng.choice([0.22, 0.7]), logits_scaling=2.0, use_cache=False,
        rope_parameters=angles(500.0)))


FAMILIES = (stablelm_each, olmo, qwen3, hunyuan, granitemoe, bamba, granitemoehybrid, gpt_bigcode, gpt_neo, opt, bloom, mpt, falcon_falling, stablelm, gpt_neox, gptj, phi, falcon, cohere, cohere2, starcoder2, nemotron, glm, arcee, seed_oss, ministral3, dots1, minimax_m2, llama4, phi3, smollm3, olmo2, olmo3, exaone4, gemma2, gemma3, glm4, glm4_moe, granite)


def draw(rng, shape, family=None):
    """A model of transformers with random weights, and what by_weft must know of it."""
    make = {one.__name__: one for one in FAMILIES}[family] if family else rng.choice(FAMILIES)
    heads = shape["heads"]
    shape |= dict(kind="families", family=make.__name__, groups=rng.choice([g for g in (1, 2, heads) if heads % g == 0]), inner=rng.choice([24, 40]), balance=0, z=0)
    common = dict(vocab_size=shape["words"], hidden_size=shape["width"], intermediate_size=shape["inner"], num_hidden_layers=shape["layers"],
                  num_attention_heads=heads, num_key_value_heads=shape["groups"], head_dim=shape["width"] // heads,
                  max_position_embeddings=shape["sequence"], rms_norm_eps=1e-5, tie_word_embeddings=rng.random() < 0.5, initializer_range=0.1,
                  bos_token_id=1, eos_token_id=2, pad_token_id=None,  # what pads learns nothing there
                  attn_implementation="eager")
    model = make(rng, shape, common)
    for name, weight in [*model.named_parameters(), *model.named_buffers()]:
        if name.endswith(("mlp.gate.weight", "moe.router.weight", "router.layer.weight", "gate.wg.weight")):
            torch.nn.init.normal_(weight, std=0.3)  # so that few choices are close enough for rounding to make another
        if name.endswith(("conv1d.weight", "conv1d.bias")):
            torch.nn.init.normal_(weight, std=0.5)  # as in nemotron_h.py
        if name.endswith("embed_positions.weight"):
            weight.data[:2] = 0  # as weft writes what no place of an OPT reads
        if name.endswith("e_score_correction_bias"):
            weight.data = 0.2 * torch.rand_like(weight)
        if weight.dim() == 1 and name.endswith(("norm.weight", ".bias")) or "_norm.weight" in name or "norm.norms." in name:
            weight.data += 0.1 * torch.randn_like(weight)
    return model, shape
