// Reading: what is missing has the default of its type, what weft cannot compute is refused by name.
#include <algorithm>
#include <cmath>
#include <optional>

#include "weft/model/gpt/hub.h"
#include "weft/model/hub_settings.h"

namespace weft {
namespace {

void read_biases_of_seed(ModelConfig& m, HubSettings& s) {
  m.qkv_bias = s.yes("attention_bias", true);
  m.linear_bias = s.yes("mlp_bias", false);
  s.must_be("attention_out_bias", m.linear_bias);
}

void read_biases(ModelConfig& m, GptType type, HubSettings& s) {
  m.qkv_bias = m.linear_bias = false;
  if (type == GptType::llama4_text) return;
  if (type == GptType::qwen2) m.qkv_bias = true;
  if (type == GptType::qwen2_moe) m.qkv_bias = s.yes("qkv_bias", true);
  if (type == GptType::gpt_oss) {
    s.must_be("attention_bias", true);
    m.qkv_bias = m.linear_bias = true;
    return;
  }
  if (type == GptType::glm4_moe || type == GptType::glm4 || type == GptType::glm) {
    m.qkv_bias = s.yes("attention_bias", type != GptType::glm4_moe);
    return;
  }
  if (type == GptType::ernie4_5) {
    m.qkv_bias = m.linear_bias = s.yes("use_bias", false);
    return;
  }
  if (type == GptType::seed_oss) return read_biases_of_seed(m, s);
  if (is_hunyuan(type)) s.must_be("mlp_bias", false);
  if (type == GptType::phi3)  // transformers has none, and the model's own program only these
    for (const char* name : {"attention_bias", "mlp_bias", "lm_head_bias"}) s.must_be(name, false);
  if (slides_everywhere(type) || type == GptType::qwen2 || type == GptType::qwen2_moe) return;
  const bool attention = s.yes("attention_bias", false);
  if (type == GptType::deepseek_v2) s.must_be("mlp_bias", false);
  const bool mlp = says_biases_twice(type) && s.yes("mlp_bias", false);
  if (mlp && !attention) s.refuse("attention_bias", "weft has biases in MLPs only where attention has some");
  if (attention && !mlp && !may_bias_attention_alone(type))
    s.refuse("attention_bias", "weft has biases in attention and MLP, or in neither");
  m.qkv_bias = m.linear_bias = attention;
  m.mlp_bias = mlp || !attention;
}

/// Of key groups, where nothing is said of them; 0: they are always said.
int usual_groups(const ModelConfig& m, GptType type, const HubSettings& s) {
  const bool unsaid = !s.says("num_key_value_heads");
  if (type == GptType::glm4 || type == GptType::glm) return 2;
  if (is_later_gemma(type)) return 4;
  if (type == GptType::smollm3) return unsaid ? 4 : m.heads;
  if (type == GptType::ernie4_5) return unsaid ? 2 : m.heads;
  if (type == GptType::seed_oss) return unsaid ? 8 : m.heads;
  const bool all = type == GptType::llama || type == GptType::olmoe || type == GptType::phi3 ||
                   type == GptType::olmo2 || type == GptType::olmo3 || type == GptType::granite ||
                   type == GptType::arcee || is_granite_mixture(type) || is_hunyuan(type);
  return all ? m.heads : 0;
}

/// Of a head's channels likewise; none: hidden / heads.
std::optional<std::int64_t> usual_channels(GptType type) {
  if (remembers(type) || is_later_gemma(type)) return 256;
  if (type == GptType::glm4 || type == GptType::glm || type == GptType::llama4_text ||
      type == GptType::seed_oss || type == GptType::ernie4_5 || type == GptType::minimax_m2)
    return 128;
  return std::nullopt;
}

void read_heads(ModelConfig& m, GptType type, HubSettings& s) {
  if (is_deepseek(type)) return;
  const int groups = usual_groups(m, type, s);
  m.groups = int(groups > 0 ? s.size_or("num_key_value_heads", groups, HubSettings::most_heads)
                            : s.size("num_key_value_heads", HubSettings::most_heads));
  constexpr std::int64_t widest = HubSettings::widest / 16;
  const bool own_width = type == GptType::qwen3 || type == GptType::gemma;
  m.channels = own_width ? s.size("head_dim", widest)
                         : s.size_or("head_dim", usual_channels(type).value_or(0), widest);
}

bool has_whole_norms(GptType type) {
  return type == GptType::olmoe || type == GptType::olmo2 || type == GptType::olmo3 ||
         type == GptType::minimax_m2;
}

bool has_head_norms(GptType type, HubSettings& s) {
  if (type == GptType::glm4_moe) return s.yes("use_qk_norm", false);
  return type == GptType::qwen3 || type == GptType::qwen3_moe || type == GptType::gemma3_text ||
         type == GptType::exaone4 || type == GptType::dots1 || has_whole_norms(type) || remembers(type) ||
         is_hunyuan(type);
}

/// Of an MLP.
const char* width_word(GptType type) {
  if (type == GptType::qwen3_5_moe_text) return "moe_intermediate_size";
  return type == GptType::llama4_text ? "intermediate_size_mlp" : "intermediate_size";
}

/// What Gemma 3's config.json leaves out where pictures are seen too, the others' must say.
void read_sizes(ModelConfig& m, GptType type, HubSettings& s) {
  const bool gemma2 = type == GptType::gemma2;
  const auto size = [&](const char* name, std::int64_t usual, std::int64_t greatest) {
    return is_later_gemma(type) ? s.size_or(name, usual, greatest) : s.size(name, greatest);
  };
  m.layers = int(size("num_hidden_layers", 26, HubSettings::most_layers));
  m.hidden = size("hidden_size", 2304, HubSettings::widest);
  m.heads = int(size("num_attention_heads", 8, HubSettings::most_heads));
  m.ffn_hidden = size(width_word(type), 9216, HubSettings::widest);
  m.max_positions = size("max_position_embeddings", gemma2 ? 8192 : 131072, HubSettings::most);
  if (is_later_gemma(type)) m.vocabulary = gemma2 ? 256000 : 262208;
}

/// null: none.
double cap_of(HubSettings& s, const char* name, double usual) {
  if (s.says(name) && s.find(name) == nullptr) return 0;
  return s.find(name) == nullptr ? usual : s.positive(name, 1);
}

void read_gemma(ModelConfig& m, GptType type, HubSettings& s) {
  // transformers computes the tanh form whatever the older of the two settings says.
  m.activation = hub_activation(s.word("hidden_activation", "gelu_pytorch_tanh"), s, "hidden_activation");
  (void)s.find("hidden_act");
  m.norm_centered_gain = true;
  m.embedding_multiplier = std::sqrt(double(m.hidden));
  s.must_be("use_bidirectional_attention", false);
  if (!is_later_gemma(type)) return;
  (void)s.find("cache_implementation");
  // Of Gemma 3 transformers computes without, whatever is said.
  const double cap = cap_of(s, "attn_logit_softcapping", 50);
  if (type == GptType::gemma2) m.scores.cap = cap;
  m.output_cap = cap_of(s, "final_logit_softcapping", type == GptType::gemma2 ? 30 : 0);
  const std::int64_t scalar = s.size_or("query_pre_attn_scalar", 256);
  if (scalar != m.channels) m.softmax_scale = 1 / std::sqrt(double(scalar));
}

void read_dropout(ModelConfig& m, GptType type, HubSettings& s) {
  const bool seed = type == GptType::seed_oss;
  m.hidden_dropout = type == GptType::phi3 ? s.fraction("resid_pdrop", 0)
                     : seed                ? s.fraction("residual_dropout", 0.1)
                                           : 0;
  m.attention_dropout = s.fraction("attention_dropout", seed ? 0.1 : 0);
}

void read_llama_like(ModelConfig& m, GptType type, HubSettings& s) {
  read_sizes(m, type, s);
  read_heads(m, type, s);
  m.norm = NormKind::rms;
  m.norm_epsilon = s.positive("rms_norm_eps", ways_of(type).epsilon);
  m.gated = type != GptType::arcee;
  read_dropout(m, type, s);
  m.tied_output = s.yes("tie_word_embeddings", ways_of(type).tied);
  m.qk_norm = has_head_norms(type, s);
  m.qk_norm_whole = has_whole_norms(type);
  m.qk_norm_turned = is_hunyuan(type);
  m.norm_places = norms_behind(type)   ? NormPlaces::behind
                  : norms_around(type) ? NormPlaces::around
                                       : NormPlaces::before;
  read_biases(m, type, s);
  read_hub_rotary(m, type, s);
  if (remembers(type))
    read_hub_delta(m, type, s);
  else if (type != GptType::llama4_text)
    read_hub_window(m, type, s);
  if (is_deepseek(type)) read_hub_latent(m, s);
  if (type == GptType::llama4_text)
    read_llama4(m, s);
  else if (has_experts(type))
    read_hub_experts(m, type, s);
  if (type == GptType::granite || is_granite_mixture(type)) read_granite(m, s);
  if (is_hunyuan(type)) read_hunyuan(m, s);
  if (is_gemma_type(type))
    read_gemma(m, type, s);
  else if (type == GptType::gpt_oss)
    read_hub_gates(m, s);
  else
    m.activation = hub_activation(s.word("hidden_act", m.gated ? "silu" : "relu2"), s, "hidden_act");
  if (type == GptType::ernie4_5) s.must_be("compression_ratio", 1.0);
}

}  // namespace

void read_hub_n_sizes(ModelConfig& m, HubSettings& s) {
  m.layers = int(s.size("n_layer", HubSettings::most_layers));
  m.hidden = s.size("n_embd", HubSettings::widest);
  m.heads = int(s.size("n_head", HubSettings::most_heads));
  m.ffn_hidden = s.size_or("n_inner", 4 * m.hidden, HubSettings::widest);
  m.max_positions = s.size("n_positions");
  m.norm_epsilon = s.positive("layer_norm_epsilon", 1e-5);
  m.activation = hub_activation(s.word("activation_function", "gelu_new"), s, "activation_function");
}

GptType gpt_type(std::string_view word) {
  return GptType(std::ranges::find(gpt_types, word) - gpt_types.begin());
}

void read_granite(ModelConfig& m, HubSettings& s) {
  m.softmax_scale = s.positive("attention_multiplier", 1);
  m.embedding_multiplier = s.positive("embedding_multiplier", 1);
  m.residual_multiplier = s.positive("residual_multiplier", 1);
  const double divisor = s.positive("logits_scaling", 1);
  if (divisor < 1e-9 || divisor > 1e9) s.refuse("logits_scaling", "expected a number from 1e-9 to 1e9");
  m.output_multiplier = 1 / divisor;
}

void read_gpt(ModelConfig& model, HubSettings& settings, std::string_view type) {
  if (has_learned_places(gpt_type(type)))
    read_learned(model, gpt_type(type), settings);
  else if (has_states(gpt_type(type)))
    read_states(model, gpt_type(type), settings);
  else if (has_layer_norms(gpt_type(type)))
    read_beside(model, gpt_type(type), settings);
  else if (gpt_type(type) == GptType::nemotron_h)
    read_nemotron_h(model, settings);
  else
    read_llama_like(model, gpt_type(type), settings);
}

}  // namespace weft
