// Writing config.json in the words of a type.
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "weft/model/gpt/hub.h"
#include "weft/model/hub_settings.h"
#include "weft/model/rotary.h"

namespace weft {
namespace {

using nlohmann::ordered_json;

void add_skips(ordered_json& out, const ModelConfig& m) {
  const auto first = std::ranges::find(m.rotary.skip_layers, 1) - m.rotary.skip_layers.begin();
  out["no_rope_layer_interval"] = skips(m) ? first + 1 : m.layers + 1;
  for (int layer = 0; layer < m.layers; ++layer)
    out["no_rope_layers"].push_back(turns_in(m.rotary, layer) ? 1 : 0);
}

void add_biases(ordered_json& out, const ModelConfig& m, GptType type) {
  const bool both = says_biases_twice(type);
  if (both) out["mlp_bias"] = has_mlp_bias(m);
  if (type == GptType::glm4_moe || type == GptType::glm4 || type == GptType::glm)
    out["attention_bias"] = m.qkv_bias;
  else if (both || type == GptType::olmo2 || type == GptType::olmo3 || is_later_gemma(type) ||
           type == GptType::qwen3 || type == GptType::gemma || type == GptType::qwen3_moe ||
           type == GptType::olmoe || type == GptType::gpt_oss || is_deepseek(type) || remembers(type) ||
           is_granite_mixture(type) || is_hunyuan(type))
    out["attention_bias"] = m.linear_bias;
}

ordered_json llama_like_json(const ModelConfig& m, GptType type) {
  ordered_json out{{"architectures", {ways_of(type).class_name}},
                   {"model_type", gpt_types[std::size_t(type)]},
                   {"num_hidden_layers", m.layers},
                   {"hidden_size", m.hidden},
                   {"num_attention_heads", m.heads},
                   {"num_key_value_heads", m.groups},
                   {"head_dim", m.channels},
                   {"intermediate_size", m.ffn_hidden},
                   {"max_position_embeddings", m.max_positions},
                   {"rms_norm_eps", m.norm_epsilon},
                   {"hidden_act", type == GptType::gpt_oss ? "silu" : activation_word(m)},
                   {"attention_dropout", m.attention_dropout}};
  if (is_gemma_type(type)) out["hidden_activation"] = activation_word(m);
  // Unsaid it is a word of theirs, which a smaller vocabulary has not.
  if (type == GptType::phi3 || type == GptType::smollm3 || type == GptType::glm4 || type == GptType::glm)
    out["pad_token_id"] = nullptr;
  if (type == GptType::phi3) out["resid_pdrop"] = out["embd_pdrop"] = m.hidden_dropout;
  if (turns_partly(type)) out["partial_rotary_factor"] = m.rotary.percent;
  if (type == GptType::smollm3 || type == GptType::llama4_text) add_skips(out, m);
  add_biases(out, m, type);
  write_hub_rotary(out, m.rotary);
  write_hub_window(out, m, type);
  if (type == GptType::ministral3) write_ministral3(out, m);
  write_hub_norms(out, m, type);
  if (remembers(type)) write_hub_delta(out, m);
  if (type == GptType::llama4_text)
    write_llama4(out, m);
  else if (is_deepseek(type))
    write_hub_latent(out, m, type);
  else if (has_experts(type))
    write_hub_experts(out, m, type);
  return out;
}

}  // namespace

ordered_json activation_word(const ModelConfig& m) {
  if (m.activation == Activation::gelu && m.positions != Positions::learned) return "gelu_pytorch_tanh";
  return hub_activation_word(m.activation);
}

void write_hub_window(ordered_json& out, const ModelConfig& m, GptType type) {
  if (type == GptType::mistral) out["sliding_window"] = m.window;
  if (type == GptType::mixtral || type == GptType::phi3 || type == GptType::starcoder2)
    out["sliding_window"] = has_window(m) ? ordered_json(m.window) : ordered_json();
  if (!slides_by_layer(type)) return;
  const bool on = has_window(m);
  if (!slides_unasked(type)) out["use_sliding_window"] = on;
  out["sliding_window"] = on ? ordered_json(m.window) : ordered_json();
  for (int layer = 0; layer < m.layers; ++layer) {
    const bool here = on && (m.window_layers.empty() || m.window_layers[std::size_t(layer)] != 0);
    out["layer_types"].push_back(here ? "sliding_attention" : "full_attention");
  }
}

void write_hub_rotary(ordered_json& out, const RotaryConfig& r) {
  out["rope_theta"] = r.base;
  if (r.scaling == RotaryScaling::none) {
    out["rope_scaling"] = nullptr;
    return;
  }
  ordered_json& s = out["rope_scaling"];
  if (r.scaling == RotaryScaling::longrope) {  // of these three words, as transformers 4 asks for them
    s = {{"type", "longrope"}, {"short_factor", r.short_factors}, {"long_factor", r.long_factors}};
    out["original_max_position_embeddings"] = r.original_positions;
    out["max_position_embeddings"] = std::llround(r.factor * double(r.original_positions));
    return;
  }
  s["rope_type"] = words(r.scaling)[std::size_t(r.scaling)];
  s["factor"] = r.factor;
  if (r.scaling == RotaryScaling::linear) return;
  s["original_max_position_embeddings"] = r.original_positions;
  if (r.scaling == RotaryScaling::llama3) {
    s["low_freq_factor"] = r.low;
    s["high_freq_factor"] = r.high;
    return;
  }
  s["beta_fast"] = r.beta_fast;
  s["beta_slow"] = r.beta_slow;
  if (!r.whole_channels) s["truncate"] = false;
  if (r.mscale == 1 && r.mscale_all == 0) return;
  if (r.mscale == 0 || r.mscale_all == 0) {  // theirs knows both or neither
    s["attention_factor"] = growth_of_scores(r);
    return;
  }
  s["mscale"] = r.mscale;
  s["mscale_all_dim"] = r.mscale_all;
}

ordered_json write_gpt(const ModelConfig& m, std::string_view type) {
  if (gpt_type(type) == GptType::nemotron_h) return nemotron_h_json(m);
  if (has_states(gpt_type(type))) return states_json(m, gpt_type(type));
  if (has_layer_norms(gpt_type(type))) return beside_json(m, gpt_type(type));
  if (has_learned_places(gpt_type(type))) return learned_json(m, gpt_type(type));
  return llama_like_json(m, gpt_type(type));
}

}  // namespace weft
