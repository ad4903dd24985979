#!/usr/bin/env python3
"""Makes the model directories beside this file with transformers: tiny random models and the logits they give.

Run by hand: pip install torch transformers, then make.py [DIRECTORY] [SEED]. Every directory gets a logits.json: the ids of a
prompt (of a decoder, with the ids that its encoder reads as "source"), and for each of its positions the logits of all words; of a model that
tells whether two sentences were swapped, its two logits of that as "order". One model is cut into shards; one is bf16, one f16 (their
logits are of those weights, computed in f32). make oracle makes others from other seeds and compares again.
"""
import json
import pathlib
import random
import sys

import torch
import transformers as t
from safetensors.torch import load_file, save_file
from transformers.integrations.mxfp4 import convert_moe_packed_tensors

import details

HERE = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).parent
SEED = int(sys.argv[2]) if len(sys.argv) > 2 else 1
LENGTH = 16

# The committed models have the first of each; other seeds draw.
draw = random.Random(SEED)
pick = lambda *choices: choices[0] if SEED == 1 else draw.choice(choices)
HEADS, WIDTH, LAYERS, WORDS = pick(4, 2, 6, 8), pick(4, 6, 8, 16), pick(2, 1, 3), pick(37, 64, 101, 130)
SMALL = dict(vocab_size=WORDS, hidden_size=HEADS * WIDTH, intermediate_size=pick(24, 40, 64), num_hidden_layers=LAYERS,
             num_attention_heads=HEADS, num_key_value_heads=HEADS // 2, max_position_embeddings=32, bos_token_id=1,
             eos_token_id=2, pad_token_id=0)
ONE_KEY_A_HEAD = {name: value for name, value in SMALL.items() if name != "num_key_value_heads"}
FALCON = dict(vocab_size=WORDS, hidden_size=HEADS * WIDTH, num_hidden_layers=LAYERS, num_attention_heads=HEADS, ffn_hidden_size=SMALL["intermediate_size"],
              max_position_embeddings=32, bos_token_id=1, eos_token_id=2)
GPT2_WORDS = dict(vocab_size=WORDS, n_positions=24, n_embd=HEADS * WIDTH, n_layer=LAYERS, n_head=HEADS, n_inner=pick(24, 40, None), bos_token_id=1,
                  eos_token_id=2)
SMALL_OPT = dict(vocab_size=WORDS, hidden_size=HEADS * WIDTH, num_hidden_layers=LAYERS, num_attention_heads=HEADS, ffn_dim=pick(24, 40, 64),
                 max_position_embeddings=24, bos_token_id=1, eos_token_id=2, pad_token_id=0)
LLAMA3 = dict(rope_type="llama3", rope_theta=500.0, factor=4.0, low_freq_factor=1.0, high_freq_factor=4.0,
              original_max_position_embeddings=8)
ENCODER = dict(vocab_size=WORDS, hidden_size=HEADS * WIDTH, intermediate_size=pick(24, 40, 64), num_hidden_layers=LAYERS,
               num_attention_heads=HEADS, max_position_embeddings=24, hidden_act="gelu")
BUCKETS = pick(8, 16, 32)  # half of them hold one distance each, so the farthest is beyond those
TWO_STACKS = dict(vocab_size=WORDS, d_model=HEADS * WIDTH, d_kv=pick(6, 4, 8), d_ff=pick(20, 40, 64), num_layers=LAYERS,
                  num_decoder_layers=pick(3, 1, 2), num_heads=HEADS, relative_attention_num_buckets=BUCKETS,
                  relative_attention_max_distance=max(BUCKETS, pick(12, 20, 40)), decoder_start_token_id=0, pad_token_id=0, eos_token_id=1)
BLOCK = pick((6, 10), (128, 128), (8, 4))  # of a matrix in eight bits, what shares a scale
YARN = dict(rope_type="yarn", rope_theta=10000.0, factor=4.0, original_max_position_embeddings=8)
EXPERTS = pick(4, 8, 6)
CHOSEN = dict(num_experts=EXPERTS, num_experts_per_tok=2, moe_intermediate_size=pick(12, 20))
DEEPSEEK = dict(n_routed_experts=8, num_experts_per_tok=4, n_group=4, topk_group=2, n_shared_experts=pick(1, 2), moe_intermediate_size=12,
                first_k_dense_replace=1, routed_scaling_factor=2.5, q_lora_rank=pick(12, None), kv_lora_rank=16, qk_nope_head_dim=6,
                qk_rope_head_dim=4, v_head_dim=8,
                num_nextn_predict_layers=0,  # newer versions say 1 otherwise, and store none
                rope_scaling=dict(rope_type="yarn", factor=4.0, mscale=0.7, mscale_all_dim=1.3,
                                                                    original_max_position_embeddings=8, beta_fast=32.0, beta_slow=1.0))
# It says that it guesses a further token, and stores nothing to guess it by.
GLM = {name: DEEPSEEK[name] for name in ("n_routed_experts", "num_experts_per_tok", "n_group", "topk_group", "n_shared_experts", "moe_intermediate_size",
                                         "routed_scaling_factor")} | dict(
    head_dim=8, first_k_dense_replace=min(1, LAYERS - 1), attention_bias=pick(True, False), use_qk_norm=pick(True, False), rope_parameters=dict(rope_type="default", rope_theta=500.0))
# No stretched angles: transformers 4.57 leaves out what DeepSeek's own program multiplies scores with then.
DEEPSEEK2 = {**DEEPSEEK, "num_experts_per_tok": 2, "topk_method": pick("group_limited_greedy", "greedy"), "norm_topk_prob": False,
             "routed_scaling_factor": 1.5, "rope_scaling": None}


def turned(rope_theta, **stretched):
    """Rotary angles, in the words that this version of transformers reads; another's would be passed over, and written all the same."""
    if int(t.__version__.split(".")[0]) >= 5:
        return dict(rope_parameters=dict(rope_theta=rope_theta, **stretched))
    return dict(rope_theta=rope_theta, rope_scaling=None if stretched["rope_type"] == "default" else stretched)


OSS = dict(num_local_experts=EXPERTS, num_experts_per_tok=2, head_dim=8, sliding_window=pick(5, 2, 9), swiglu_limit=pick(0.5, 1.5, 7.0),
           **turned(rope_type="yarn", rope_theta=150000.0, factor=4.0, beta_fast=pick(2.0, 32.0), beta_slow=pick(0.1, 1.0), truncate=False,
                    original_max_position_embeddings=8))

NARROW = {name: value for name, value in SMALL.items() if name != "intermediate_size"} | {"hidden_size": 32, "num_hidden_layers": 4}
# Head by head, gates of what attention gives stand among the queries; of what remembers, heads of values are more than those of keys.
NEXT = dict(head_dim=8, partial_rotary_factor=pick(0.5, 0.25, 1.0), linear_num_key_heads=2, linear_num_value_heads=pick(4, 2, 6),
            linear_key_head_dim=pick(6, 4, 8), linear_value_head_dim=pick(4, 8), linear_conv_kernel_dim=pick(4, 3, 2),
            layer_types=pick(["linear_attention", "full_attention"] * 2, ["linear_attention"] * 3 + ["full_attention"]),
            rope_parameters=dict(rope_type="default", rope_theta=500.0, partial_rotary_factor=pick(0.5, 0.25, 1.0)))

# Layers of one thing each, heads that read and write in groups. transformers raises times to time_step_min, and weft has no such limit.
NEMOTRON = dict(vocab_size=WORDS, hidden_size=32, num_attention_heads=HEADS, num_key_value_heads=HEADS // 2, head_dim=8,
                intermediate_size=SMALL["intermediate_size"], max_position_embeddings=32, mamba_num_heads=pick(4, 2, 6), mamba_head_dim=pick(6, 4, 8),
                n_groups=2, ssm_state_size=pick(5, 4, 8), conv_kernel=pick(4, 3, 2), n_routed_experts=8, moe_intermediate_size=pick(12, 20),
                moe_shared_expert_intermediate_size=pick(16, 24), num_experts_per_tok=4, routed_scaling_factor=pick(2.5, 1.0), time_step_min=1e-30)
# Layers that look through a window turn by angles of their own; of Exaone the others turn nothing.
FOUR = {**SMALL, "num_hidden_layers": 4}
TWO_KINDS = pick(["sliding_attention", "full_attention"] * 2, ["sliding_attention"] * 3 + ["full_attention"])
TWO_ANGLES = lambda near, far: dict(sliding_attention=dict(rope_type="default", rope_theta=near), full_attention=far)
GEMMA3 = dict(head_dim=8, query_pre_attn_scalar=pick(6, 8, 11), sliding_window=pick(5, 2, 9), layer_types=TWO_KINDS,
              rope_parameters=TWO_ANGLES(500.0, pick(dict(rope_type="linear", rope_theta=2000.0, factor=8.0), dict(rope_type="default", rope_theta=500.0))))
LLAMA4 = dict(head_dim=8, intermediate_size_mlp=pick(20, 48), num_local_experts=EXPERTS, interleave_moe_layer_step=pick(2, 1),
              no_rope_layer_interval=pick(2, 4), use_qk_norm=pick(True, False), **turned(**LLAMA3))
SIGLIP = dict(model_type="siglip_vision_model", hidden_size=8, intermediate_size=8, num_hidden_layers=1, num_attention_heads=2, patch_size=2, image_size=4,
              vision_use_head=False)

STATE, ATTENTION = "linear_attention", "full_attention"

MAMBA = dict(mamba_expand=2, mamba_n_heads=pick(4, 8, 2), mamba_n_groups=pick(2, 1), mamba_d_state=pick(5, 4, 8), mamba_d_conv=pick(4, 3, 2))
HALF = 0.5 if WIDTH % 4 == 0 else 1.0  # of a head turns, an even number of channels
FOUR_WIDE = dict(hidden_size=16, num_attention_heads=4, num_key_value_heads=2)  # half of a head always turns there
BIASES = dict.fromkeys(("attention_bias", "mlp_bias"), pick(True, False))  # weft has both or neither
GRANITE = dict(embedding_multiplier=pick(12.0, 6.0), attention_multiplier=pick(0.4, 0.015625), residual_multiplier=pick(0.22, 0.6), logits_scaling=pick(7.0, 49.0))

# What sees pictures, as small as it may be: weft passes it over.
EYES = dict(depth=1, hidden_size=8, intermediate_size=8, num_heads=2, patch_size=2, temporal_patch_size=1, spatial_merge_size=1,
            num_position_embeddings=4)
PIXTRAL = dict(model_type="pixtral", hidden_size=8, intermediate_size=8, num_hidden_layers=1, num_attention_heads=2, patch_size=2, image_size=4,
               rope_parameters=dict(rope_type="default", rope_theta=100.0))

MODELS = {
    "gpt2": (t.GPT2LMHeadModel, t.GPT2Config(vocab_size=WORDS, n_positions=24, n_embd=HEADS * WIDTH, n_layer=LAYERS,
                                               n_head=HEADS, bos_token_id=0, eos_token_id=0), {}),
    "gpt_neox": (t.GPTNeoXForCausalLM, t.GPTNeoXConfig(**ONE_KEY_A_HEAD, hidden_act=pick("gelu", "gelu_new"), **turned(
        rope_type="default", rope_theta=500.0, partial_rotary_factor=HALF)), {}),
    "gpt_neox_serial": (t.GPTNeoXForCausalLM, t.GPTNeoXConfig(**ONE_KEY_A_HEAD, use_parallel_residual=False, tie_word_embeddings=True, **turned(
        rope_type="linear", rope_theta=500.0, factor=2.0, partial_rotary_factor=1.0)), dict(dtype=torch.bfloat16)),
    "gptj": (t.GPTJForCausalLM, t.GPTJConfig(vocab_size=WORDS, n_positions=32, n_embd=HEADS * WIDTH, n_layer=LAYERS, n_head=HEADS, rotary_dim=WIDTH - pick(2, 0),
                                             n_inner=pick(None, 40), bos_token_id=1, eos_token_id=2), {}),
    "phi": (t.PhiForCausalLM, t.PhiConfig(**SMALL, qk_layernorm=pick(True, False), **turned(
        rope_type="default", rope_theta=500.0, partial_rotary_factor=HALF)), {}),
    "falcon": (t.FalconForCausalLM, t.FalconConfig(**FALCON, multi_query=pick(True, False), alibi=False), {}),
    "falcon_grouped": (t.FalconForCausalLM, t.FalconConfig(**FALCON, new_decoder_architecture=True, num_kv_heads=HEADS // 2, bias=pick(True, False),
                                                           num_ln_in_parallel_attn=pick(2, 1)), dict(max_shard_size="8KB")),
    "falcon_serial": (t.FalconForCausalLM, t.FalconConfig(**FALCON, parallel_attn=False, multi_query=pick(False, True), bias=pick(True, False)),
                      dict(dtype=torch.float16)),
    "cohere": (t.CohereForCausalLM, t.CohereConfig(**SMALL, logit_scale=pick(0.25, 0.0625), **turned(rope_type="default", rope_theta=500.0)), {}),
    "cohere2": (t.Cohere2ForCausalLM, t.Cohere2Config(**FOUR, logit_scale=pick(0.25, 0.0625), sliding_window=pick(5, 2, 9), layer_types=TWO_KINDS, **turned(
        rope_type="default", rope_theta=500.0)), dict(dtype=torch.bfloat16)),
    "gpt_bigcode": (t.GPTBigCodeForCausalLM, t.GPTBigCodeConfig(**GPT2_WORDS), {}),
    "gpt_bigcode_heads": (t.GPTBigCodeForCausalLM, t.GPTBigCodeConfig(**GPT2_WORDS, multi_query=False), {}),
    "gpt_neo": (t.GPTNeoForCausalLM, t.GPTNeoConfig(
        vocab_size=WORDS, hidden_size=HEADS * WIDTH, num_layers=2 * LAYERS, num_heads=HEADS, intermediate_size=pick(None, 40), window_size=pick(5, 3),
        attention_types=[[["global", "local"], LAYERS]], max_position_embeddings=32, bos_token_id=1, eos_token_id=2), {}),
    "opt": (t.OPTForCausalLM, t.OPTConfig(**SMALL_OPT, activation_function=pick("relu", "gelu")), {}),
    "opt_unbiased": (t.OPTForCausalLM, t.OPTConfig(**SMALL_OPT, activation_function=pick("gelu", "relu"), enable_bias=False), {}),
    "bloom": (t.BloomForCausalLM, t.BloomConfig(vocab_size=WORDS, hidden_size=HEADS * WIDTH, n_layer=LAYERS, n_head=HEADS, bos_token_id=1,
                                                eos_token_id=2), {}),
    "mpt": (t.MptForCausalLM, t.MptConfig(vocab_size=WORDS, d_model=HEADS * WIDTH, n_heads=HEADS, n_layers=LAYERS, max_seq_len=32,
                                          attn_config=t.models.mpt.configuration_mpt.MptAttentionConfig(alibi_bias_max=8)), {}),
    "falcon_falling": (t.FalconForCausalLM, t.FalconConfig(**FALCON, alibi=True, multi_query=False, parallel_attn=False, bias=True,
                                                           new_decoder_architecture=False), {}),
    "stablelm": (t.StableLmForCausalLM, t.StableLmConfig(**SMALL, use_qkv_bias=pick(True, False), **turned(
        rope_type="default", rope_theta=500.0, partial_rotary_factor=HALF)), {}),
    "stablelm_beside": (t.StableLmForCausalLM, t.StableLmConfig(**SMALL, use_parallel_residual=True, **turned(
        rope_type="default", rope_theta=500.0, partial_rotary_factor=HALF)), {}),
    "starcoder2": (t.Starcoder2ForCausalLM, t.Starcoder2Config(**SMALL, sliding_window=pick(5, None, 9), use_bias=pick(True, False), **turned(
        rope_type="default", rope_theta=500.0)), {}),
    "nemotron": (t.NemotronForCausalLM, t.NemotronConfig(**SMALL, head_dim=8, **turned(
        rope_type="default", rope_theta=500.0, partial_rotary_factor=pick(0.5, 0.25, 1.0))), dict(max_shard_size="8KB")),
    "llama2": (t.LlamaForCausalLM, t.LlamaConfig(**{**SMALL, "num_key_value_heads": HEADS}, rms_norm_eps=1e-5),
               dict(max_shard_size="8KB")),
    "llama3": (t.LlamaForCausalLM, t.LlamaConfig(**SMALL, **turned(**LLAMA3), attention_bias=True, mlp_bias=True), {}),
    "mistral": (t.MistralForCausalLM, t.MistralConfig(**SMALL, head_dim=8, sliding_window=pick(5, 2, 9)), dict(dtype=torch.bfloat16)),
    "qwen2": (t.Qwen2ForCausalLM, t.Qwen2Config(**SMALL, tie_word_embeddings=True, **turned(**YARN)), {}),
    "qwen2_window": (t.Qwen2ForCausalLM, t.Qwen2Config(**SMALL, use_sliding_window=True, sliding_window=4,
                                                       max_window_layers=1), dict(dtype=torch.float16)),
    "qwen3": (t.Qwen3ForCausalLM, t.Qwen3Config(**SMALL, head_dim=8, **turned(rope_type="default", rope_theta=1e6)), {}),
    "phi3": (t.Phi3ForCausalLM, t.Phi3Config(**SMALL, head_dim=8, sliding_window=pick(5, None, 9),
                                             **turned(rope_type="default", rope_theta=500.0, partial_rotary_factor=pick(0.75, 0.5, 1.0))), {}),
    "phi3_long": (t.Phi3ForCausalLM, t.Phi3Config(**SMALL, sliding_window=None, original_max_position_embeddings=pick(8, 28, 4), **turned(
        rope_type="longrope", rope_theta=500.0, short_factor=[1 + 0.75 * i for i in range(WIDTH // 2)],
        long_factor=[1.5 + 2.25 * i for i in range(WIDTH // 2)])), dict(dtype=torch.bfloat16)),
    "llama4_text": (t.Llama4ForCausalLM, t.Llama4TextConfig(**SMALL, **LLAMA4), {}),
    "llama4_long": (t.Llama4ForCausalLM, t.Llama4TextConfig(**SMALL, **LLAMA4, attention_chunk_size=pick(5, 3), floor_scale=pick(4, 2),
                                                            attn_scale=pick(0.5, 0.1)), {}),
    "smollm3": (t.SmolLM3ForCausalLM, t.SmolLM3Config(**{**SMALL, "num_hidden_layers": 4}, no_rope_layer_interval=pick(2, 4, 3),
                                                      use_sliding_window=pick(True, False), sliding_window=pick(5, None)), dict(dtype=torch.bfloat16)),
    "olmo2": (t.Olmo2ForCausalLM, t.Olmo2Config(**SMALL, **turned(rope_type="default", rope_theta=500.0)), {}),
    "olmo3": (t.Olmo3ForCausalLM, t.Olmo3Config(**FOUR, sliding_window=pick(5, 2, 9), layer_types=TWO_KINDS,
                                                rope_parameters=TWO_ANGLES(500.0, dict(**{**YARN, "rope_theta": 500.0}))), {}),
    "exaone4": (t.Exaone4ForCausalLM, t.Exaone4Config(**FOUR, head_dim=8, sliding_window=pick(5, 2, 9), layer_types=TWO_KINDS, **turned(**LLAMA3)),
                dict(dtype=torch.bfloat16)),
    "exaone4_full": (t.Exaone4ForCausalLM, t.Exaone4Config(**SMALL, sliding_window=None, layer_types=["full_attention"] * LAYERS,
                                                           **turned(rope_type="default", rope_theta=500.0)), dict(dtype=torch.float16)),
    "gemma2": (t.Gemma2ForCausalLM, t.Gemma2Config(
        **FOUR, head_dim=8, query_pre_attn_scalar=pick(6, 8, 11), sliding_window=pick(5, 2, 9), attn_logit_softcapping=pick(0.8, 50.0),
        final_logit_softcapping=pick(1.5, 30.0), layer_types=TWO_KINDS, **turned(rope_type="default", rope_theta=500.0)), {}),
    "gemma3_text": (t.Gemma3ForCausalLM, t.Gemma3TextConfig(**FOUR, **GEMMA3), dict(dtype=torch.bfloat16)),
    "gemma3": (t.Gemma3ForConditionalGeneration, t.Gemma3Config(text_config=dict(model_type="gemma3_text", **FOUR, **GEMMA3), vision_config=SIGLIP,
                                                                mm_tokens_per_image=4), dict(dtype=torch.bfloat16)),
    "glm4": (t.Glm4ForCausalLM, t.Glm4Config(**SMALL, head_dim=8, attention_bias=pick(True, False),
                                             rope_parameters=dict(rope_type="default", rope_theta=500.0, partial_rotary_factor=pick(0.5, 1.0))), {}),
    "granite": (t.GraniteForCausalLM, t.GraniteConfig(**SMALL, embedding_multiplier=pick(12.0, 6.0), attention_multiplier=pick(0.4, 0.015625),
                                                      residual_multiplier=pick(0.22, 0.6), logits_scaling=pick(7.0, 49.0), **BIASES,
                                                      **turned(rope_type="default", rope_theta=500.0)), {}),
    "glm": (t.GlmForCausalLM, t.GlmConfig(**SMALL, head_dim=8, attention_bias=pick(True, False), rope_parameters=dict(
        rope_type="default", rope_theta=500.0, partial_rotary_factor=pick(0.5, 1.0))), {}),
    "arcee": (t.ArceeForCausalLM, t.ArceeConfig(**SMALL, head_dim=8, **BIASES, **turned(**YARN)), {}),
    "seed_oss": (t.SeedOssForCausalLM, t.SeedOssConfig(**SMALL, head_dim=8, attention_bias=pick(True, False), **turned(rope_type="default", rope_theta=500.0)),
                 dict(dtype=torch.bfloat16)),
    "ernie4_5": (t.Ernie4_5ForCausalLM, t.Ernie4_5Config(**SMALL, head_dim=8, use_bias=pick(False, True), **turned(rope_type="default", rope_theta=500.0)), {}),
    "dots1": (t.Dots1ForCausalLM, t.Dots1Config(
        **{**SMALL, "num_hidden_layers": 3}, n_routed_experts=8, num_experts_per_tok=4, **pick(dict(n_group=4, topk_group=2), dict(n_group=1, topk_group=1)), n_shared_experts=pick(1, 2),
        moe_intermediate_size=pick(12, 20), first_k_dense_replace=1, norm_topk_prob=True, routed_scaling_factor=2.5, head_dim=8, sliding_window=pick(5, 9),
        max_window_layers=pick(1, 3), **turned(rope_type="default", rope_theta=500.0)), {}),
    "minimax_m2": (t.MiniMaxM2ForCausalLM, t.MiniMaxM2Config(
        **SMALL, head_dim=8, num_local_experts=EXPERTS, num_experts_per_tok=pick(2, 3), **turned(
            rope_type="default", rope_theta=500.0, partial_rotary_factor=pick(0.5, 0.25, 1.0))), dict(max_shard_size="30KB")),
    "ministral3": (t.Ministral3ForCausalLM, t.Ministral3Config(**SMALL, head_dim=8, sliding_window=pick(None, 9), rope_parameters=pick(
        YARN | dict(original_max_position_embeddings=4, mscale=1.0, mscale_all_dim=1.0, llama_4_scaling_beta=0.7),
        dict(rope_type="default", rope_theta=500.0, original_max_position_embeddings=5, llama_4_scaling_beta=0.1))), {}),
    "mixtral": (t.MixtralForCausalLM, t.MixtralConfig(**SMALL, num_local_experts=EXPERTS, num_experts_per_tok=2,
                                                      sliding_window=pick(None, 5)), {}),
    "qwen2_moe": (t.Qwen2MoeForCausalLM, t.Qwen2MoeConfig(**SMALL, **CHOSEN, shared_expert_intermediate_size=pick(16, 24),
                                                          mlp_only_layers=[0], norm_topk_prob=False), {}),
    "qwen3_moe": (t.Qwen3MoeForCausalLM, t.Qwen3MoeConfig(**SMALL, **CHOSEN, head_dim=8, norm_topk_prob=True,
                                                          decoder_sparse_step=pick(2, 1)), dict(dtype=torch.bfloat16)),
    "olmoe": (t.OlmoeForCausalLM, t.OlmoeConfig(**SMALL, num_experts=EXPERTS, num_experts_per_tok=2), dict(max_shard_size="8KB")),
    "gpt_oss": (t.GptOssForCausalLM, t.GptOssConfig(**SMALL, **OSS), dict(max_shard_size="30KB")),
    "gpt_oss_packed": (t.GptOssForCausalLM, t.GptOssConfig(**{**SMALL, "hidden_size": 32, "intermediate_size": 32}, **OSS), dict(packed=True)),
    "qwen3_next": (t.Qwen3NextForCausalLM, t.Qwen3NextConfig(**NARROW, **CHOSEN, **NEXT, intermediate_size=SMALL["intermediate_size"],
                                                             shared_expert_intermediate_size=pick(16, 24), mlp_only_layers=[1],
                                                             norm_topk_prob=pick(True, False)), {}),
    "qwen3_5": (t.Qwen3_5ForCausalLM, t.Qwen3_5TextConfig(**NARROW, **NEXT, intermediate_size=SMALL["intermediate_size"]), {}),
    "qwen3_5_moe": (t.Qwen3_5MoeForCausalLM, t.Qwen3_5MoeTextConfig(**NARROW, **CHOSEN, **NEXT,
                                                                    shared_expert_intermediate_size=pick(16, 24)), dict(max_shard_size="60KB")),
    "qwen3_5_moe_seeing": (t.Qwen3_5MoeForConditionalGeneration, t.Qwen3_5MoeConfig(
        text_config=dict(**{**NARROW, **NEXT, "num_hidden_layers": 2, "layer_types": ["linear_attention", "full_attention"]}, **CHOSEN,
                         shared_expert_intermediate_size=pick(16, 24)), vision_config=dict(**EYES, out_hidden_size=32)),
        dict(save_original_format=False)),  # all experts of a layer in two tensors, as it is published
    "qwen3_5_seeing": (t.Qwen3_5ForConditionalGeneration, t.Qwen3_5Config(
        text_config=dict(**NARROW, **NEXT, intermediate_size=SMALL["intermediate_size"], tie_word_embeddings=True), tie_word_embeddings=True,
        vision_config=dict(**EYES, out_hidden_size=32)), dict(dtype=torch.bfloat16)),
    "mistral3": (t.Mistral3ForConditionalGeneration, t.Mistral3Config(
        text_config=dict(model_type="mistral", **SMALL, head_dim=8, sliding_window=None), vision_config=PIXTRAL, spatial_merge_size=1,
        tie_word_embeddings=False), {}),
    "glm4_moe": (t.Glm4MoeForCausalLM, t.Glm4MoeConfig(**SMALL, **GLM), dict(max_shard_size="30KB")),
    "nemotron_h": (t.NemotronHForCausalLM, t.NemotronHConfig(**NEMOTRON, layers_block_type=pick([STATE, "moe", ATTENTION, "mlp"],
                                                                                                 [STATE, "mlp", STATE, "mlp", ATTENTION])), {}),
    "nemotron_h_latent": (t.NemotronHForCausalLM, t.NemotronHConfig(**NEMOTRON, **pick(dict(n_group=4, topk_group=2), {}), moe_latent_size=pick(8, 16),
                                                                    layers_block_type=[ATTENTION, STATE, "moe"]), dict(max_shard_size="30KB")),
    "mamba2": (t.Mamba2ForCausalLM, t.Mamba2Config(
        vocab_size=WORDS, hidden_size=16, num_hidden_layers=LAYERS, **pick(dict(num_heads=4, head_dim=8), dict(num_heads=8, head_dim=4)), n_groups=pick(2, 1, 4), state_size=pick(5, 4, 8),
        conv_kernel=pick(4, 3, 2), residual_in_fp32=False, tie_word_embeddings=pick(True, False), pad_token_id=0, bos_token_id=1, eos_token_id=2), {}),
    "bamba": (t.BambaForCausalLM, t.BambaConfig(**{**SMALL, **FOUR_WIDE, "num_hidden_layers": 3}, **MAMBA, attn_layer_indices=pick([1], [0, 2]), **turned(
        rope_type="default", rope_theta=500.0, partial_rotary_factor=0.5)), dict(max_shard_size="30KB")),
    "granitemoehybrid": (t.GraniteMoeHybridForCausalLM, t.GraniteMoeHybridConfig(
        **{**SMALL, "num_hidden_layers": 3, "intermediate_size": pick(12, 20)}, **MAMBA, **GRANITE, num_local_experts=EXPERTS, num_experts_per_tok=pick(2, 3),
        shared_intermediate_size=pick(20, 16), layer_types=[STATE, ATTENTION, STATE]), {}),
    "granitemoehybrid_dense": (t.GraniteMoeHybridForCausalLM, t.GraniteMoeHybridConfig(
        **{**SMALL, "num_hidden_layers": 3}, **MAMBA, **GRANITE, num_local_experts=0, shared_intermediate_size=SMALL["intermediate_size"],
        position_embedding_type="rope", layer_types=[STATE, STATE, ATTENTION], tie_word_embeddings=True, **turned(rope_type="default", rope_theta=500.0)),
        dict(dtype=torch.bfloat16)),
    "deepseek_v3": (t.DeepseekV3ForCausalLM, t.DeepseekV3Config(**{**SMALL, "num_key_value_heads": HEADS}, **DEEPSEEK), {}),
    "glm4_moe_lite": (t.Glm4MoeLiteForCausalLM, t.Glm4MoeLiteConfig(
        **{**SMALL, "num_key_value_heads": HEADS}, **{name: DEEPSEEK[name] for name in DEEPSEEK if name not in ("first_k_dense_replace", "rope_scaling", "num_nextn_predict_layers")},
        mlp_layer_types=(["dense"] + ["sparse"] * (LAYERS - 1) if LAYERS > 1 else ["sparse"]), **turned(rope_type="default", rope_theta=500.0)), dict(dtype=torch.bfloat16)),
    "deepseek_v3_coded": (t.DeepseekV3ForCausalLM, t.DeepseekV3Config(**{**SMALL, "num_key_value_heads": HEADS}, **DEEPSEEK), dict(coded=True)),
    "deepseek_v2": (t.DeepseekV2ForCausalLM, t.DeepseekV2Config(**{**SMALL, "num_key_value_heads": HEADS}, **DEEPSEEK2), {}),
    "bert": (t.BertForPreTraining, t.BertConfig(**ENCODER), {}),
    "megatron_bert": (t.MegatronBertForPreTraining, t.MegatronBertConfig(**ENCODER), {}),
    "bert_words": (t.BertForMaskedLM, t.BertConfig(**ENCODER), {}),
    "megatron_bert_words": (t.MegatronBertForMaskedLM, t.MegatronBertConfig(**ENCODER), {}),
    "bert_untied": (t.BertForPreTraining, t.BertConfig(**ENCODER, tie_word_embeddings=False), {}),
    "roberta": (t.RobertaForMaskedLM, t.RobertaConfig(**ENCODER, type_vocab_size=1), {}),
    "xlm_roberta": (t.XLMRobertaForMaskedLM, t.XLMRobertaConfig(**ENCODER, type_vocab_size=1, tie_word_embeddings=pick(False, True)), {}),
    "mt5": (t.MT5ForConditionalGeneration, t.MT5Config(**TWO_STACKS), {}),
    "t5": (t.T5ForConditionalGeneration, t.T5Config(**TWO_STACKS), dict(max_shard_size="30KB")),
    "t5_gated": (t.T5ForConditionalGeneration, t.T5Config(**TWO_STACKS, feed_forward_proj="gated-gelu"), {}),
    "t5_gated_tied": (t.T5ForConditionalGeneration, t.T5Config(**TWO_STACKS, feed_forward_proj=pick("gated-silu", "gated-gelu", "gated-relu")), {}),
    "t5_untied": (t.T5ForConditionalGeneration, t.T5Config(**TWO_STACKS, feed_forward_proj=pick("relu", "gelu_new")), {}),
    "gemma": (t.GemmaForCausalLM, t.GemmaConfig(**{**SMALL, "num_key_value_heads": 1}, head_dim=8), {}),
}
MODELS |= details.models(t, torch, pick, globals())


OWN_OUTPUT = ("t5_gated", "t5_untied", "mt5")


def randomize(model, name):
    """Large enough that every part shows in the logits."""
    noises = torch.Generator().manual_seed(SEED)
    for path, p in model.named_parameters():
        noise = torch.randn(p.shape, generator=noises)
        gain = p.dim() == 1 and path.endswith("weight")
        from_zero = name.startswith(("gemma", "nemotron")) and not name.startswith("nemotron_h") or name.startswith(("qwen3_next", "qwen3_5")) and "linear_attn" not in path
        wide = 1.0 if "conv1d" in path else 0.3  # or values are so small that their norm makes much of rounding
        p.data = (0.0 if from_zero or not gain else 1.0) + (0.2 if p.dim() == 1 else wide) * noise
    for path, b in model.named_buffers():
        if path.endswith("e_score_correction_bias"):
            # Above zero: transformers gives experts of groups that are not kept a 0, which would beat one below it.
            b.data = 0.2 * torch.rand(b.shape, generator=noises)


def pack(model):
    """Experts' matrices in four bits, as gpt-oss is published: drawn codes and scales by their names there, of which transformers makes the
    model's weights."""
    noises = torch.Generator().manual_seed(SEED)
    out = {}
    for path, p in model.named_parameters():
        if path.endswith(("gate_up_proj", "down_proj")) and p.dim() == 3:
            experts, columns, rows = p.shape
            out[path + "_blocks"] = torch.randint(0, 256, (experts, rows, columns // 32, 16), generator=noises, dtype=torch.uint8)
            out[path + "_scales"] = torch.randint(122, 127, (experts, rows, columns // 32), generator=noises, dtype=torch.uint8)
            p.data = convert_moe_packed_tensors(out[path + "_blocks"], out[path + "_scales"], dtype=torch.float32)
        else:
            out[path] = p.data
    return out


def coded(weight):
    """The codes of a matrix in eight bits, the scales of its rectangles, and what they say."""
    rows, columns = BLOCK
    tall, wide = -(-weight.shape[0] // rows), -(-weight.shape[1] // columns)
    cut = [[weight[i * rows:(i + 1) * rows, j * columns:(j + 1) * columns] for j in range(wide)] for i in range(tall)]
    scales = torch.tensor([[float(part.abs().max()) / 448 for part in line] for line in cut])
    spread = scales.repeat_interleave(rows, 0)[:weight.shape[0]].repeat_interleave(columns, 1)[:, :weight.shape[1]]
    codes = (weight / spread).to(torch.float8_e4m3fn)
    return codes, scales, codes.float() * spread


def save_coded(kind, model, directory):
    """Matrices of layers, but for routers', in eight bits, as DeepSeek V3 is published. Comes back: the model of what they say."""
    model.save_pretrained(directory)
    stored, told = load_file(directory / "model.safetensors"), {}
    for name, weight in list(stored.items()):
        if weight.dim() == 2 and ".layers." in name and not name.endswith(".gate.weight"):
            stored[name], stored[name + "_scale_inv"], told[name] = coded(weight)
    save_file({name: told.get(name, weight) for name, weight in stored.items() if not name.endswith("_scale_inv")}, directory / "model.safetensors",
              metadata={"format": "pt"})
    model = loaded(kind, directory)
    save_file(stored, directory / "model.safetensors", metadata={"format": "pt"})
    said = json.loads((directory / "config.json").read_text())
    said["quantization_config"] = {"activation_scheme": "dynamic", "fmt": "e4m3", "quant_method": "fp8", "weight_block_size": list(BLOCK)}
    (directory / "config.json").write_text(json.dumps(said, indent=2) + "\n")
    return model


def save_packed(model, directory):
    directory.mkdir(exist_ok=True)
    save_file(pack(model), directory / "model.safetensors", metadata={"format": "pt"})
    model.config.save_pretrained(directory)
    said = json.loads((directory / "config.json").read_text())
    said |= {"architectures": ["GptOssForCausalLM"], "quantization_config": {"quant_method": "mxfp4", "modules_to_not_convert": ["lm_head"]}}
    (directory / "config.json").write_text(json.dumps(said, indent=2) + "\n")


def untie(model):
    """An output of its own, but one embedding: some versions of transformers make three of it then."""
    for stack in (model.encoder, model.decoder):
        stack.embed_tokens.weight.data = model.shared.weight.data


def attention_of(config):
    """transformers 5 adds what a Falcon's scores fall by twice, but in one of its ways."""
    return "sdpa" if getattr(config, "alibi", False) else "eager"


def loaded(kind, directory):
    """In f32; newer versions of transformers take a T5's output for tied whatever its config.json says."""
    config = kind.config_class.from_pretrained(directory)
    if name in OWN_OUTPUT:
        config.tie_word_embeddings = config.scale_decoder_outputs = False
    model = kind.from_pretrained(directory, config=config, dtype=torch.float32, attn_implementation=attention_of(config)).eval()
    if name in OWN_OUTPUT:
        untie(model)
    return model


def answers(model, prompt):
    """What stands in logits.json."""
    source = [(5 * i * i + 2 * i + SEED) % WORDS for i in range(LENGTH - 1)] + [1]
    two = model.config.is_encoder_decoder
    prompt = [0] + prompt[:LENGTH - 6] if two else prompt
    with torch.no_grad():
        out = model(torch.tensor([source]), decoder_input_ids=torch.tensor([prompt])) if two else model(torch.tensor([prompt]))
    logits = (out.prediction_logits if hasattr(out, "prediction_logits") else out.logits)[0]
    short = lambda row: [float(f"{x:.8g}") for x in row]
    order = {"order": short(out.seq_relationship_logits[0].tolist())} if hasattr(out, "seq_relationship_logits") else {}
    return {"prompt": prompt, **({"source": source} if two else {}), **order, "logits": [short(row) for row in logits.tolist()]}


for name, (kind, config, how) in MODELS.items():
    config._attn_implementation = attention_of(config)
    if name in OWN_OUTPUT:
        config.tie_word_embeddings = config.scale_decoder_outputs = False
    model = kind(config).eval()
    randomize(model, name)
    if name in OWN_OUTPUT:
        untie(model)
    how = dict(how)
    if how.pop("packed", False):
        save_packed(model, HERE / name)
    elif how.pop("coded", False):
        model = save_coded(kind, model, HERE / name)
    else:
        model.to(how.pop("dtype", torch.float32)).save_pretrained(HERE / name, **how)
        model = loaded(kind, HERE / name)
    prompt = [(7 * i * i + 3 * i + SEED) % WORDS for i in range(LENGTH)]
    if "roberta" in name:
        prompt = [3 if one == 1 else one for one in prompt]  # which pads there, and has no place
    told = answers(model, prompt)
    with open(HERE / name / "logits.json", "w") as file:
        json.dump(told, file)
        file.write("\n")
    print(name, sorted(path.name for path in (HERE / name).iterdir()), f"largest {max(abs(x) for row in told['logits'] for x in row):.3g}")
