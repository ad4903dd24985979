// Writing: the plainest type that has what the model has; a feature that none has is refused by name.
#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>

#include "weft/base/error.h"
#include "weft/base/format.h"
#include "weft/model/gpt/hub.h"
#include "weft/model/hub_settings.h"
#include "weft/model/layer_parts.h"
#include "weft/model/rotary.h"

namespace weft {
namespace {

using nlohmann::ordered_json;

bool near(double a, double b) { return std::abs(a - b) <= 1e-9 * std::abs(b); }

bool has_window(const ModelConfig& m) {
  const auto& layers = m.window_layers;
  return m.window > 0 && (layers.empty() || std::ranges::any_of(layers, [](int w) { return w != 0; }));
}
bool all_windowed(const ModelConfig& m) {
  return std::ranges::all_of(m.window_layers, [](int w) { return w != 0; });
}

bool has_mlp(const ModelConfig& m) {
  if (m.hybrid.on()) return parts_in_all(m, LayerPart::mlp) > 0;
  return m.experts.count == 0 || std::ranges::any_of(m.experts.layers, [](int one) { return one == 0; });
}

double usual_scale(ModelConfig m) {
  m.softmax_scale = 0;
  return attention_scale(m);
}

// What must hold for any family: the reason that none has it, else nothing.
std::string_view nobody_has(const ModelConfig& m) {
  if (m.positions == Positions::none && !m.hybrid.on()) return "no positions";
  if (m.residual_after_norm) return "blocks that add to what their norm gave";
  if (m.norm_places != NormPlaces::before) return "norms of what attention and MLPs give";
  if (m.residual_multiplier != 1) return "a multiplier of what attention and MLPs add";
  if (m.rotary.window_base) return "angles of their own in layers that look through a window";
  if (m.qk_norm_plain) return "norms of queries and keys without gains";
  if (m.positions == Positions::rotary && m.rotary.percent != 1 && !m.delta.on)
    return "rotary positions on a part of each head";
  if (m.positions == Positions::rotary && m.rotary.skip_every != 0) return "layers without rotary positions";
  if (!near(plain_gpt(m).softmax_scale, usual_scale(m))) return "a softmax scale of its own";
  if (m.latent.on && m.rotary.scaling == RotaryScaling::llama3)
    return "latent attention with angles that are stretched as Llama 3's";
  if (m.rotary.scaling == RotaryScaling::yarn && m.rotary.mscale != 1 && m.rotary.mscale_all == 0)
    return "a growth of the attention temperature without one for all channels";
  if (!m.latent.on && m.ahead.depths > 0 && !m.hybrid.on()) return "further tokens without latent attention";
  if (m.ahead.layers() < m.ahead.depths) return "several further tokens through one layer";
  if (m.delta.on && m.sink != Sink::none) return "layers that remember, with attention sinks";
  if (m.delta.on && has_window(m)) return "layers that remember, with a window";
  if (m.attention_gate && !m.delta.on) return "gates of what heads give, without layers that remember";
  if (m.sink == Sink::zero) return "attention sinks that do not learn";
  if (m.sink == Sink::none && m.gated && (m.gate_limit != 0 || m.gate_offset != 0))
    return "gates with a limit or an offset, without attention sinks";
  if (m.experts.weigh_input) return "weights of what experts read";
  if (m.experts.residual) return "experts beside an MLP, weighed by a gate";
  if (m.output_multiplier != 1) return "an output multiplier";
  if (m.mup.output_multiplier != 1 || m.mup.embedding_multiplier != 1) return "multipliers of muP";
  return "";
}

std::string_view no_gpt2(const ModelConfig& m) {
  if (m.norm != NormKind::layer) return "learned positions with an RMS norm";
  if (m.experts.count > 0) return "learned positions with experts";
  if (m.latent.on) return "learned positions with latent attention";
  if (m.gated) return "learned positions with a gated MLP";
  if (!m.linear_bias || !m.qkv_bias) return "learned positions without biases";
  if (m.groups != m.heads) return "learned positions with grouped heads";
  if (m.qk_norm) return "learned positions with query and key norms";
  if (m.channels * m.heads != m.hidden)
    return "learned positions with heads that are not hidden / heads wide";
  if (has_window(m)) return "learned positions with a window";
  if (m.embedding_multiplier != 1) return "learned positions with an embedding multiplier";
  return "";
}

std::string_view no_mixture(const ModelConfig& m) {
  const GptType type = type_of_experts(m);
  if (m.linear_bias) return "experts or latent attention with biases";
  if (has_window(m) && (type == GptType::olmoe || is_deepseek(type)))
    return "a window with latent attention, or with norms of whole queries and keys";
  if (has_window(m) && !all_windowed(m) && type == GptType::mixtral)
    return "a window in some layers, with experts";
  return no_such_experts(m, type);
}

std::string_view no_llama(const ModelConfig& m) {
  if (m.norm != NormKind::rms) return "rotary positions with a layer norm";
  if (!m.gated) return "rotary positions with an MLP that is not gated";
  if (m.linear_bias && (!m.qkv_bias || m.qk_norm)) return "biases in the MLP with query and key norms";
  if (m.qkv_bias && m.qk_norm) return "biases and norms of queries and keys";
  if (has_window(m) && m.linear_bias) return "a window with biases";
  if (m.experts.count > 0 || m.latent.on) return no_mixture(m);
  if (m.qk_norm_whole) return "norms of whole queries and keys, without experts";
  if (has_window(m) && !all_windowed(m) && !m.qkv_bias && !m.qk_norm)
    return "a window in some layers, without biases or norms of queries and keys";
  return "";
}

std::string_view no_hybrid(const ModelConfig& m) {
  if (m.sink != Sink::none) return "layers of one thing each, with attention sinks";
  if (has_window(m)) return "layers of one thing each, with a window";
  return no_nemotron_h(m);
}

bool is_gemma(const ModelConfig& m) {
  return m.gated && m.activation == Activation::gelu && m.tied_output && m.experts.count == 0 &&
         !m.latent.on &&
         std::abs(m.embedding_multiplier - std::sqrt(double(m.hidden))) < 1e-6 * m.embedding_multiplier &&
         m.norm_centered_gain && m.sink == Sink::none && !m.qk_norm && !m.qkv_bias && !m.linear_bias &&
         !has_window(m);
}

ordered_json activation_word(const ModelConfig& m) {
  if (m.activation == Activation::gelu && m.positions != Positions::learned) return "gelu_pytorch_tanh";
  return hub_activation_word(m.activation);
}

void add_rotary(ordered_json& out, const RotaryConfig& r) {
  out["rope_theta"] = r.base;
  if (r.scaling == RotaryScaling::none) {
    out["rope_scaling"] = nullptr;
    return;
  }
  ordered_json& s = out["rope_scaling"];
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
  s["mscale"] = r.mscale;
  s["mscale_all_dim"] = r.mscale_all;
}

void add_window(ordered_json& out, const ModelConfig& m, GptType type) {
  if (type == GptType::mistral) out["sliding_window"] = m.window;
  if (type == GptType::mixtral)
    out["sliding_window"] = has_window(m) ? ordered_json(m.window) : ordered_json();
  const bool in_turn = type == GptType::gpt_oss;
  const bool by_layer = type == GptType::qwen2 || type == GptType::qwen3 || type == GptType::qwen2_moe ||
                        type == GptType::qwen3_moe || in_turn;
  if (!by_layer) return;
  const bool on = has_window(m);
  if (!in_turn) out["use_sliding_window"] = on;
  out["sliding_window"] = on ? ordered_json(m.window) : ordered_json();
  for (int layer = 0; layer < m.layers; ++layer) {
    const bool here = on && (m.window_layers.empty() || m.window_layers[std::size_t(layer)] != 0);
    out["layer_types"].push_back(here ? "sliding_attention" : "full_attention");
  }
}

ordered_json gpt2_json(const ModelConfig& m) {
  return {{"architectures", {"GPT2LMHeadModel"}},
          {"model_type", "gpt2"},
          {"n_layer", m.layers},
          {"n_embd", m.hidden},
          {"n_head", m.heads},
          {"n_inner", m.ffn_hidden},
          {"n_positions", m.max_positions},
          {"n_ctx", m.max_positions},
          {"layer_norm_epsilon", m.norm_epsilon},
          {"activation_function", activation_word(m)},
          {"resid_pdrop", m.hidden_dropout},
          {"embd_pdrop", m.hidden_dropout},
          {"attn_pdrop", m.attention_dropout},
          {"scale_attn_weights", true}};
}

constexpr std::array<std::string_view, gpt_types.size()> class_names{
    "GPT2LMHeadModel",      "LlamaForCausalLM",      "MistralForCausalLM",   "Qwen2ForCausalLM",
    "Qwen3ForCausalLM",     "GemmaForCausalLM",      "Qwen3_5ForCausalLM",   "MixtralForCausalLM",
    "Qwen2MoeForCausalLM",  "Qwen3MoeForCausalLM",   "OlmoeForCausalLM",     "GptOssForCausalLM",
    "Qwen3NextForCausalLM", "Qwen3_5MoeForCausalLM", "NemotronHForCausalLM", "DeepseekV3ForCausalLM",
    "DeepseekV2ForCausalLM"};

ordered_json llama_like_json(const ModelConfig& m, GptType type) {
  ordered_json out{{"architectures", {class_names[std::size_t(type)]}},
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
  if (type == GptType::gemma) out["hidden_activation"] = activation_word(m);
  if (type == GptType::llama) out["mlp_bias"] = m.linear_bias;
  if (type == GptType::llama || type == GptType::qwen3 || type == GptType::gemma ||
      type == GptType::qwen3_moe || type == GptType::olmoe || type == GptType::gpt_oss || is_deepseek(type) ||
      remembers(type))
    out["attention_bias"] = m.linear_bias;
  add_rotary(out, m.rotary);
  add_window(out, m, type);
  if (remembers(type)) write_hub_delta(out, m);
  if (is_deepseek(type))
    write_hub_latent(out, m, type);
  else if (has_experts(type))
    write_hub_experts(out, m, type);
  return out;
}

GptType plainest(const ModelConfig& m) {
  std::string_view reason = nobody_has(m);
  const bool learned = m.positions == Positions::learned;
  if (reason.empty() && !is_gemma(m)) {
    reason = m.hybrid.on()          ? no_hybrid(m)
             : m.sink != Sink::none ? no_gpt_oss(m)
             : m.delta.on           ? no_qwen3_next(m)
             : learned              ? no_gpt2(m)
                                    : no_llama(m);
    if (reason.empty() && m.embedding_multiplier != 1) reason = "an embedding multiplier";
  }
  if (!reason.empty())
    fail(Kind::usage, "exchange: no Hugging Face model that weft writes (", join(gpt_types, ", "), ") has ",
         reason);
  if (m.hybrid.on()) return GptType::nemotron_h;
  if (m.sink != Sink::none) return GptType::gpt_oss;
  if (m.delta.on) return m.experts.count > 0 ? GptType::qwen3_next : GptType::qwen3_5_text;
  if (learned) return GptType::gpt2;
  if (is_gemma(m)) return GptType::gemma;
  if (m.experts.count > 0 || m.latent.on) return type_of_experts(m);
  if (m.qk_norm) return GptType::qwen3;
  if (m.qkv_bias && !m.linear_bias) return GptType::qwen2;
  return has_window(m) ? GptType::mistral : GptType::llama;
}

}  // namespace

ModelConfig plain_gpt(ModelConfig m) {
  if (m.softmax_scale == 0) m.softmax_scale = attention_scale(m);
  if (m.experts.count > 0) m.experts.every = 1;
  if (!has_mlp(m)) m.ffn_hidden = m.experts.ffn_hidden;  // of no layer
  if (!m.hybrid.on() || parts_in_all(m, LayerPart::state) == 0) m.state = {};
  m.delta.attends_every = 0;  // the layers say it
  const RotaryConfig r = m.rotary;
  m.rotary = {};
  if (m.positions == Positions::none) m.max_positions = 0;
  if (m.positions == Positions::rotary) {
    m.max_positions = 0;  // a table that can be made at any length
    m.rotary = {.base = r.base,
                .percent = r.percent,
                .interleaved = r.interleaved,
                .scaling = r.scaling,
                .skip_every = r.skip_every};
    if (r.scaling != RotaryScaling::none) m.rotary.factor = r.factor;
    if (r.scaling == RotaryScaling::llama3) {
      m.rotary.low = r.low;
      m.rotary.high = r.high;
      m.rotary.original_positions = r.original_positions;
    }
    if (r.scaling == RotaryScaling::yarn) {
      m.rotary.beta_fast = r.beta_fast;
      m.rotary.beta_slow = r.beta_slow;
      m.rotary.whole_channels = r.whole_channels;
      m.rotary.mscale = r.mscale;
      m.rotary.mscale_all = r.mscale_all;
      m.rotary.original_positions = r.original_positions;
    }
  }
  if (!m.gated) m.gate_limit = m.gate_offset = 0;
  if (m.mup.output_multiplier == 1 && m.mup.embedding_multiplier == 1) m.mup = {};
  const bool windowed = has_window(m);
  if (!windowed) m.window = 0;
  if (!windowed || all_windowed(m)) m.window_layers.clear();
  return m;
}

std::string_view type_for_gpt(const ModelConfig& m) { return gpt_types[std::size_t(plainest(m))]; }

ordered_json write_gpt(const ModelConfig& m, std::string_view type) {
  if (gpt_type(type) == GptType::nemotron_h) return nemotron_h_json(m);
  return gpt_type(type) == GptType::gpt2 ? gpt2_json(m) : llama_like_json(m, gpt_type(type));
}

}  // namespace weft
