// Phi-3, OLMo 2, Granite and GLM-4 0414.
#include "weft/exchange/gguf/family_parts.h"

namespace weft::exchange::gguf {
namespace {

constexpr TensorName in_one[]{{"self_attn.qkv_proj.weight", "attn_qkv.weight"},
                              {"self_attn.o_proj.weight", "attn_output.weight"}};
constexpr TensorName mlp_in_one[]{{"mlp.gate_up_proj.weight", "ffn_up.weight"},
                                  {"mlp.down_proj.weight", "ffn_down.weight"}};
constexpr TensorName norms_behind[]{{"post_attention_layernorm.weight", "post_attention_norm.weight"},
                                    {"post_feedforward_layernorm.weight", "post_ffw_norm.weight"}};
constexpr TensorName norms_of_glm4[]{{"input_layernorm.weight", "attn_norm.weight"},
                                     {"post_self_attn_layernorm.weight", "post_attention_norm.weight"},
                                     {"post_attention_layernorm.weight", "ffn_norm.weight"},
                                     {"post_mlp_layernorm.weight", "post_ffw_norm.weight"}};
constexpr TensorName of_granite[]{{"self_attn.q_proj.weight", "attn_q.weight", Order::queries},
                                  {"self_attn.k_proj.weight", "attn_k.weight", Order::keys},
                                  {"self_attn.v_proj.weight", "attn_v.weight"},
                                  {"self_attn.o_proj.weight", "attn_output.weight"},
                                  {"self_attn.q_proj.bias", "attn_q.bias", Order::queries},
                                  {"self_attn.k_proj.bias", "attn_k.bias", Order::keys},
                                  {"self_attn.v_proj.bias", "attn_v.bias"},
                                  {"self_attn.o_proj.bias", "attn_output.bias"},
                                  {"mlp.gate_proj.bias", "ffn_gate.bias"},
                                  {"mlp.up_proj.bias", "ffn_up.bias"},
                                  {"mlp.down_proj.bias", "ffn_down.bias"}};

// llama.cpp turns the window of a phi3 off, so what has one has no word there.
void write_phi3(const Json& theirs, KeysToWrite& keys) {
  must_fill("phi3", theirs);
  write_heads(theirs, keys);
  keys.add("attention.sliding_window", whole(0));
}
void read_phi3(const Keys& keys, Json& theirs) {
  read_heads(keys, theirs, Turning::part);
  theirs["sliding_window"] = nullptr;
}

void write_olmo2(const Json& theirs, KeysToWrite& keys) {
  must_fill("olmo2", theirs);
  must_have_output("olmo2", theirs);
  write_heads(theirs, keys);
}
void read_olmo2(const Keys& keys, Json& theirs) {
  keys.must_be("attention.sliding_window", 0);
  read_heads(keys, theirs);
}

constexpr Setting multipliers[]{{"attention.scale", "attention_multiplier", false},
                                {"embedding_scale", "embedding_multiplier", false},
                                {"residual_scale", "residual_multiplier", false},
                                {"logit_scale", "logits_scaling", false}};
void read_granite(const Keys& keys, Json& theirs) {
  keys.must_be("expert_count", 0);
  read_heads(keys, theirs);
  theirs["attention_bias"] = keys.contents().has("blk.0.attn_q.bias");
  theirs["mlp_bias"] = keys.contents().has("blk.0.ffn_gate.bias");
}

void read_glm4(const Keys& keys, Json& theirs) {
  read_heads(keys, theirs, Turning::part);
  theirs["attention_bias"] = keys.contents().has("blk.0.attn_q.bias");
}

constexpr std::string_view phi3_types[]{"phi3"};
constexpr std::string_view olmo2_types[]{"olmo2"};
constexpr std::string_view granite_types[]{"granite"};
constexpr std::string_view glm4_types[]{"glm4"};

}  // namespace

std::vector<Architecture> further_architectures() {
  return {{.name = "phi3",
           .types = phi3_types,
           .layers = "model.layers.",
           .names = {around, norms_before, in_one, mlp_in_one},
           .settings = {rotary_settings},
           .write = write_phi3,
           .read = read_phi3},
          {.name = "olmo2",
           .types = olmo2_types,
           .layers = "model.layers.",
           .names = {around, norms_behind, attention, head_norms, gated_mlp},
           .settings = {rotary_settings},
           .write = write_olmo2,
           .read = read_olmo2},
          {.name = "granite",
           .types = granite_types,
           .layers = "model.layers.",
           .names = {around, norms_before, of_granite, gated_mlp},
           .settings = {rotary_settings, multipliers},
           .write = write_heads,
           .read = read_granite},
          {.name = "glm4",
           .types = glm4_types,
           .layers = "model.layers.",
           .names = {around, norms_of_glm4, attention, attention_biases, mlp_in_one},
           .settings = {rotary_settings},
           .write = write_heads,
           .read = read_glm4}};
}

}  // namespace weft::exchange::gguf
