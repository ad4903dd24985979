"""More models for make.py: such as differ from another family's in where attention has norms, biases and limits, or in its experts."""


def models(t, torch, pick, of):
    """`of` holds make.py's sizes."""
    small, turned, experts, multipliers = of["SMALL"], of["turned"], of["EXPERTS"], of["GRANITE"]
    plain = turned(rope_type="default", rope_theta=500.0)
    part = turned(rope_type="default", rope_theta=500.0, partial_rotary_factor=of["HALF"])
    two = dict(num_local_experts=experts, num_experts_per_tok=2)
    return {
        "cohere_each": (t.CohereForCausalLM, t.CohereConfig(**small, logit_scale=pick(0.25, 0.0625), use_qk_norm=True, **plain), {}),
        "cohere2_biased": (t.Cohere2ForCausalLM, t.Cohere2Config(
            **small, logit_scale=pick(0.25, 0.0625), attention_bias=True, sliding_window=pick(5, 2, 9), layer_types=["sliding_attention"] * (of["LAYERS"] - 1) + ["full_attention"],
            **plain), {}),
        "stablelm_each": (t.StableLmForCausalLM, t.StableLmConfig(**small, use_parallel_residual=True, qk_layernorm=True, **part), {}),
        "olmo": (t.OlmoForCausalLM, t.OlmoConfig(**small, clip_qkv=pick(1.25, None), attention_bias=pick(True, False), **plain), {}),
        "mpt_limited": (t.MptForCausalLM, t.MptConfig(
            vocab_size=of["WORDS"], d_model=of["HEADS"] * of["WIDTH"], n_heads=of["HEADS"], n_layers=of["LAYERS"], max_seq_len=32,
            attn_config=t.models.mpt.configuration_mpt.MptAttentionConfig(alibi_bias_max=8, clip_qkv=pick(1.25, 6.0))), {}),
        "llama_stretched": (t.LlamaForCausalLM, t.LlamaConfig(**small, attention_bias=True, **turned(**of["YARN"], attention_factor=pick(0.8, 1.5))), {}),
        "qwen3_biased": (t.Qwen3ForCausalLM, t.Qwen3Config(**small, head_dim=8, attention_bias=True, **turned(**of["YARN"], attention_factor=pick(1.5, 0.8))), {}),
        "qwen3_moe_biased": (t.Qwen3MoeForCausalLM, t.Qwen3MoeConfig(**small, **of["CHOSEN"], head_dim=8, attention_bias=True, norm_topk_prob=pick(False, True), **plain),
                             dict(dtype=torch.bfloat16)),
        "qwen3_next_dense": (t.Qwen3NextForCausalLM, t.Qwen3NextConfig(**{**of["NARROW"], "num_hidden_layers": 2}, **{**of["NEXT"], "layer_types": [
            "linear_attention", "full_attention"]}, intermediate_size=pick(24, 40), num_experts=0), dict(dtype=torch.bfloat16)),
        "granitemoe": (t.GraniteMoeForCausalLM, t.GraniteMoeConfig(**small, **two, **multipliers, attention_bias=pick(False, True), **plain), dict(dtype=torch.bfloat16)),
        "granitemoeshared": (t.GraniteMoeSharedForCausalLM, t.GraniteMoeSharedConfig(**small, **two, **multipliers, shared_intermediate_size=pick(20, 12),
                                                                                     attention_bias=pick(True, False), **plain), dict(dtype=torch.bfloat16)),
        "hunyuan_v1_dense": (t.HunYuanDenseV1ForCausalLM, t.HunYuanDenseV1Config(**small, head_dim=8, **turned(rope_type="dynamic", rope_theta=500.0, alpha=pick(20.0, 1000.0), factor=1.0)),
                             {}),
        "hunyuan_v1_moe": (t.HunYuanMoEV1ForCausalLM, t.HunYuanMoEV1Config(**small, head_dim=8, num_experts=experts, moe_topk=2, **turned(
            rope_type="dynamic", rope_theta=500.0, alpha=pick(20.0, 1000.0), factor=1.0)), dict(dtype=torch.bfloat16)),
    }
