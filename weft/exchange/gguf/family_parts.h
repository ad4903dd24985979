// What several architectures have in common.
#pragma once

#include "weft/exchange/gguf/architecture.h"

namespace weft::exchange::gguf {

// ---- names

inline constexpr TensorName around[]{{"model.embed_tokens.weight", "token_embd.weight"},
                                     {"model.norm.weight", "output_norm.weight"},
                                     {"lm_head.weight", "output.weight"}};
inline constexpr TensorName norms_before[]{{"input_layernorm.weight", "attn_norm.weight"},
                                           {"post_attention_layernorm.weight", "ffn_norm.weight"}};
inline constexpr TensorName attention[]{{"self_attn.q_proj.weight", "attn_q.weight"},
                                        {"self_attn.k_proj.weight", "attn_k.weight"},
                                        {"self_attn.v_proj.weight", "attn_v.weight"},
                                        {"self_attn.o_proj.weight", "attn_output.weight"}};
inline constexpr TensorName attention_biases[]{{"self_attn.q_proj.bias", "attn_q.bias"},
                                               {"self_attn.k_proj.bias", "attn_k.bias"},
                                               {"self_attn.v_proj.bias", "attn_v.bias"}};
inline constexpr TensorName head_norms[]{{"self_attn.q_norm.weight", "attn_q_norm.weight"},
                                         {"self_attn.k_norm.weight", "attn_k_norm.weight"}};
inline constexpr TensorName gated_mlp[]{{"mlp.gate_proj.weight", "ffn_gate.weight"},
                                        {"mlp.up_proj.weight", "ffn_up.weight"},
                                        {"mlp.down_proj.weight", "ffn_down.weight"}};
inline constexpr TensorName experts[]{{"mlp.gate.weight", "ffn_gate_inp.weight"},
                                      {"mlp.experts.*.gate_proj.weight", "ffn_gate_exps.weight"},
                                      {"mlp.experts.*.up_proj.weight", "ffn_up_exps.weight"},
                                      {"mlp.experts.*.down_proj.weight", "ffn_down_exps.weight"}};
// ---- settings

inline constexpr Setting rotary_settings[]{
    {"block_count", "num_hidden_layers"},
    {"context_length", "max_position_embeddings"},
    {"embedding_length", "hidden_size"},
    {"feed_forward_length", "intermediate_size"},
    {"attention.head_count", "num_attention_heads"},
    {"attention.head_count_kv", "num_key_value_heads", true, "attention.head_count"},
    {"attention.layer_norm_rms_epsilon", "rms_norm_eps", false}};
/// Heads' width is that of all channels over the heads, where a file does not say it. `turning`: the part of
/// it that turns, in theirs under "partial_rotary_factor".
enum class Turning : std::uint8_t { all, part };
void write_heads(const Json& theirs, KeysToWrite& keys);
void read_heads(const Keys& keys, Json& theirs, Turning turning = Turning::all);
/// Fails with Kind::usage where heads do not fill the hidden size, as those of some architectures do.
void must_fill(std::string_view architecture, const Json& theirs);
/// Fails with Kind::usage where the output is the embedding, of an architecture that has one of its own.
void must_have_output(std::string_view architecture, const Json& theirs);

/// Layers of two kinds, of which one looks through a window: of `every` layers all but the last, where a file
/// has no list of them.
void write_window(const Json& theirs, KeysToWrite& keys);
void read_window(const Keys& keys, Json& theirs, std::int64_t every);

std::vector<Architecture> plain_architectures();
std::vector<Architecture> architectures_with_experts();
std::vector<Architecture> architectures_of_gemma();
std::vector<Architecture> further_architectures();

}  // namespace weft::exchange::gguf
