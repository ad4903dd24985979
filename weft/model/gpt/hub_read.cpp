// Reading: what is missing has the default of its type, what weft cannot compute is refused by name.
#include <algorithm>
#include <cmath>

#include "weft/model/gpt/hub.h"
#include "weft/model/hub_settings.h"

namespace weft {
namespace {

/// transformers writes 0 where no layer looks through one.
std::int64_t read_width(HubSettings& s, std::int64_t otherwise) {
  const HubSettings::Json* found = s.find("sliding_window");
  return found != nullptr && *found == 0 ? 0 : s.size_or("sliding_window", otherwise);
}

// Which layers look through the window: Qwen's first ones see everything, or a list says it.
void read_window(ModelConfig& model, GptType type, HubSettings& s) {
  const bool everywhere = slides_everywhere(type), can = everywhere || slides_by_layer(type);
  const HubSettings::Json* types = s.find("layer_types");
  const bool in_turn = type == GptType::gpt_oss, smol = type == GptType::smollm3,
             on = everywhere || in_turn || s.yes("use_sliding_window", false);
  const bool unsaid = type == GptType::mistral && !s.says("sliding_window");
  const std::int64_t window = read_width(s, in_turn ? 128 : (everywhere && !unsaid) || smol ? 0 : 4096);
  const std::int64_t full = s.size_or("max_window_layers", 28);
  if (!can || !on || window == 0) {
    if (types != nullptr)
      for (const HubSettings::Json& one : *types)
        if (one != "full_attention") s.refuse("layer_types", "but no window is switched on");
    return;
  }
  model.window = window;
  if (types == nullptr) {
    if (everywhere) return;
    for (int layer = 0; layer < model.layers; ++layer)
      model.window_layers.push_back(in_turn ? layer % 2 == 0
                                    : smol  ? !turns_in(model.rotary, layer)
                                            : layer >= full);
    return;
  }
  if (!types->is_array() || std::ssize(*types) != model.layers)
    s.refuse("layer_types", text("expected a list of ", model.layers, " words"));
  for (const HubSettings::Json& one : *types) {
    if (one != "sliding_attention" && one != "full_attention")
      s.refuse("layer_types", "weft knows full_attention and sliding_attention");
    model.window_layers.push_back(one == "sliding_attention");
  }
}

void read_gpt2(ModelConfig& m, HubSettings& s) {
  m.layers = int(s.size("n_layer", HubSettings::most_layers));
  m.hidden = s.size("n_embd", HubSettings::widest);
  m.heads = int(s.size("n_head", HubSettings::most_heads));
  m.ffn_hidden = s.size_or("n_inner", 4 * m.hidden, HubSettings::widest);
  m.max_positions = s.size("n_positions");
  m.norm_epsilon = s.positive("layer_norm_epsilon", 1e-5);
  m.activation = hub_activation(s.word("activation_function", "gelu_new"), s, "activation_function");
  m.hidden_dropout = s.fraction("resid_pdrop", 0.1);
  m.attention_dropout = s.fraction("attn_pdrop", 0.1);
  m.tied_output = s.yes("tie_word_embeddings", true);
  s.must_be("scale_attn_weights", true);
  s.must_be("scale_attn_by_inverse_layer_idx", false);
  s.must_be("add_cross_attention", false);
}

void read_biases(ModelConfig& m, GptType type, HubSettings& s) {
  m.qkv_bias = m.linear_bias = false;
  if (type == GptType::qwen2) m.qkv_bias = true;
  if (type == GptType::qwen2_moe) m.qkv_bias = s.yes("qkv_bias", true);
  if (type == GptType::gpt_oss) {
    s.must_be("attention_bias", true);
    m.qkv_bias = m.linear_bias = true;
    return;
  }
  if (type == GptType::glm4_moe) m.qkv_bias = s.yes("attention_bias", false);
  if (type == GptType::glm4_moe) return;
  if (type == GptType::phi3)  // transformers has none, and the model's own program only these
    for (const char* name : {"attention_bias", "mlp_bias", "lm_head_bias"}) s.must_be(name, false);
  if (slides_everywhere(type) || type == GptType::qwen2 || type == GptType::qwen2_moe) return;
  const bool attention = s.yes("attention_bias", false);
  if (type == GptType::deepseek_v2) s.must_be("mlp_bias", false);
  const bool both = type == GptType::llama || type == GptType::smollm3;
  const bool mlp = both && s.yes("mlp_bias", false);
  if (attention != mlp) s.refuse("attention_bias", "weft has biases in attention and MLP, or in neither");
  m.qkv_bias = m.linear_bias = attention;
}

void read_heads(ModelConfig& m, GptType type, HubSettings& s) {
  if (is_deepseek(type)) return;
  const bool may_lack =
      type == GptType::llama || type == GptType::olmoe || type == GptType::phi3 || type == GptType::smollm3;
  const bool four = type == GptType::smollm3 && !s.says("num_key_value_heads");
  m.groups = int(may_lack ? s.size_or("num_key_value_heads", four ? 4 : m.heads, HubSettings::most_heads)
                          : s.size("num_key_value_heads", HubSettings::most_heads));
  const bool own_width = type == GptType::qwen3 || type == GptType::gemma;
  if (remembers(type)) {
    m.channels = s.size_or("head_dim", 256, HubSettings::widest / 16);
    return;
  }
  m.channels = own_width ? s.size("head_dim", HubSettings::widest / 16)
                         : s.size_or("head_dim", 0, HubSettings::widest / 16);
}

bool has_head_norms(GptType type, HubSettings& s) {
  if (type == GptType::glm4_moe) return s.yes("use_qk_norm", false);
  return type == GptType::qwen3 || type == GptType::qwen3_moe || type == GptType::olmoe || remembers(type);
}

void read_llama_like(ModelConfig& m, GptType type, HubSettings& s) {
  m.layers = int(s.size("num_hidden_layers", HubSettings::most_layers));
  m.hidden = s.size("hidden_size", HubSettings::widest);
  m.heads = int(s.size("num_attention_heads", HubSettings::most_heads));
  read_heads(m, type, s);
  m.ffn_hidden = s.size(type == GptType::qwen3_5_moe_text ? "moe_intermediate_size" : "intermediate_size",
                        HubSettings::widest);
  m.max_positions = s.size("max_position_embeddings");
  m.norm = NormKind::rms;
  m.norm_epsilon = s.positive("rms_norm_eps", ways_of(type).epsilon);
  m.gated = true;
  m.hidden_dropout = type == GptType::phi3 ? s.fraction("resid_pdrop", 0) : 0;
  m.attention_dropout = s.fraction("attention_dropout", 0);
  m.tied_output = s.yes("tie_word_embeddings", ways_of(type).tied);
  m.qk_norm = has_head_norms(type, s);
  m.qk_norm_whole = type == GptType::olmoe;
  read_biases(m, type, s);
  read_hub_rotary(m, type, s);
  if (remembers(type))
    read_hub_delta(m, type, s);
  else
    read_window(m, type, s);
  if (is_deepseek(type)) read_hub_latent(m, s);
  if (has_experts(type)) read_hub_experts(m, type, s);
  if (type == GptType::gemma) {
    // transformers computes the tanh form whatever the older of the two settings says.
    m.activation = hub_activation(s.word("hidden_activation", "gelu_pytorch_tanh"), s, "hidden_activation");
    (void)s.find("hidden_act");
    m.norm_centered_gain = true;
    m.embedding_multiplier = std::sqrt(double(m.hidden));
    s.must_be("use_bidirectional_attention", false);
  } else if (type == GptType::gpt_oss) {
    read_hub_gates(m, s);
  } else {
    m.activation = hub_activation(s.word("hidden_act", "silu"), s, "hidden_act");
  }
}

}  // namespace

GptType gpt_type(std::string_view word) {
  return GptType(std::ranges::find(gpt_types, word) - gpt_types.begin());
}

void read_gpt(ModelConfig& model, HubSettings& settings, std::string_view type) {
  if (gpt_type(type) == GptType::gpt2)
    read_gpt2(model, settings);
  else if (gpt_type(type) == GptType::nemotron_h)
    read_nemotron_h(model, settings);
  else
    read_llama_like(model, gpt_type(type), settings);
}

}  // namespace weft
