// The plainest type that has what a model has; a feature that none has is refused by name.
#include <algorithm>
#include <cmath>

#include "weft/base/error.h"
#include "weft/base/format.h"
#include "weft/model/gpt/hub.h"
#include "weft/model/layer_parts.h"
#include "weft/model/rotary.h"

namespace weft {
namespace {

bool has_mlp(const ModelConfig& m) {
  if (m.hybrid.on()) return parts_in_all(m, LayerPart::mlp) > 0;
  return m.experts.count == 0 || std::ranges::any_of(m.experts.layers, [](int one) { return one == 0; });
}

bool stretches_pairs(const ModelConfig& m) {
  return turns_channels(m) && m.rotary.scaling == RotaryScaling::longrope;
}

std::string_view no_phi3(const ModelConfig& m) {
  if (m.sink != Sink::none) return "rotary positions on a part of each head, with attention sinks";
  if (m.experts.count > 0) return "rotary positions on a part of each head, with experts";
  if (m.linear_bias) return "rotary positions on a part of each head, with biases";
  if (m.qk_norm) return "rotary positions on a part of each head, with norms of queries and keys";
  if (m.rotary.scaling != RotaryScaling::none && !stretches_pairs(m))
    return "rotary positions on a part of each head, with angles that are stretched";
  if (has_window(m) && m.qkv_bias) return "rotary positions on a part of each head, with a window and biases";
  if (has_window(m) && !all_windowed(m))
    return "rotary positions on a part of each head, with a window in some layers";
  return "";
}

/// Of a model whose angles are stretched pair by pair, up to a length that is a whole number.
bool is_phi3(const ModelConfig& m) {
  const double longest = m.rotary.factor * double(m.rotary.original_positions);
  return no_phi3(m).empty() && !m.qkv_bias && m.norm_places == NormPlaces::before &&
         m.norm == NormKind::rms && m.gated && !m.latent.on && !m.delta.on && !m.hybrid.on() && !skips(m) &&
         !has_multipliers(m) && !m.rotary.window_base && std::abs(longest - std::round(longest)) < 1e-6;
}

std::string_view no_smollm3(const ModelConfig& m) {
  if (turns_a_part(m)) return "layers without rotary positions among others of which a part turns";
  if (m.sink != Sink::none) return "layers without rotary positions, with attention sinks";
  if (m.delta.on) return "layers without rotary positions among layers that remember";
  if (m.latent.on) return "layers without rotary positions, with latent attention";
  if (m.experts.count > 0) return "layers without rotary positions, with experts";
  if (m.qk_norm) return "layers without rotary positions, with norms of queries and keys";
  if (m.qkv_bias != m.linear_bias) return "layers without rotary positions, with biases in some places";
  return "";
}

std::string_view no_such_turning(const ModelConfig& m) {
  if (skips(m)) return no_smollm3(m);
  if (!turns_a_part(m)) return "";
  if (std::int64_t(double(m.channels) * m.rotary.percent) % 2 != 0)
    return "rotary positions on an odd number of channels";
  return m.delta.on || has_glm_experts(m) ? "" : no_phi3(m);
}

bool is_gemma(const ModelConfig& m) {
  return m.gated && m.activation == Activation::gelu && m.experts.count == 0 && !m.latent.on &&
         multiplies_as_gemma(m) && m.norm_centered_gain && m.sink == Sink::none && !turns_a_part(m) &&
         !skips(m) && !m.qk_norm && !m.qkv_bias && !m.linear_bias && !has_window(m) &&
         m.norm_places == NormPlaces::before && m.residual_multiplier == 1 && m.output_multiplier == 1 &&
         !scales_scores(m);
}

// What must hold for any family: the reason that none has it, else nothing.
std::string_view nobody_has(const ModelConfig& m) {
  if (m.positions == Positions::none && !m.hybrid.on()) return "no positions";
  if (m.residual_after_norm) return "blocks that add to what their norm gave";
  if (m.mup.output_multiplier != 1 || m.mup.embedding_multiplier != 1) return "multipliers of muP";
  if (m.latent.on && m.rotary.scaling == RotaryScaling::llama3)
    return "latent attention with angles that are stretched as Llama 3's";
  if (m.latent.on && m.rotary.scaling == RotaryScaling::yarn && m.rotary.mscale != 1 &&
      m.rotary.mscale_all == 0)
    return "a growth of the attention temperature without one for all channels";
  if (!m.latent.on && m.ahead.depths > 0 && !m.hybrid.on() && !has_glm_experts(m))
    return "further tokens without latent attention";
  if (m.ahead.layers() < m.ahead.depths) return "several further tokens through one layer";
  if (m.delta.on && m.sink != Sink::none) return "layers that remember, with attention sinks";
  if (m.delta.on && has_window(m)) return "layers that remember, with a window";
  if (m.attention_gate && !m.delta.on) return "gates of what heads give, without layers that remember";
  if (m.sink == Sink::zero) return "attention sinks that do not learn";
  if (m.sink == Sink::none && m.gated && (m.gate_limit != 0 || m.gate_offset != 0))
    return "gates with a limit or an offset, without attention sinks";
  if (m.experts.residual) return "experts beside an MLP, weighed by a gate";
  if (stretches_pairs(m) && !is_phi3(m))
    return "angles that are stretched pair by pair, in a model that is not as Phi-3";
  if (is_beside(m)) return no_beside(m);
  if (is_states(m)) return no_states(m);
  if (is_ministral3(m)) return no_ministral3(m);
  if (is_llama4(m)) return no_llama4(m);
  if (m.qk_norm_turned) return no_hunyuan(m);
  if (has_caps(m) && m.norm_places != NormPlaces::around)
    return "caps of scores or logits, without norms around layers";
  if (m.norm_places != NormPlaces::before) return no_norms_elsewhere(m);
  if (m.rotary.window_base) return "angles of their own in layers that look through a window";
  if (const auto reason = no_such_turning(m); !reason.empty()) return reason;
  if (m.positions == Positions::learned && !m.hybrid.on() && !m.delta.on && m.sink == Sink::none)
    return no_learned(m);
  return has_multipliers(m) && !is_gemma(m) ? no_granite(m) : "";
}

std::string_view no_mixture(const ModelConfig& m) {
  const GptType type = type_of_experts(m);
  if (m.linear_bias && (type != GptType::qwen3_moe || !biases_attention_alone(m)))
    return "experts or latent attention with biases";
  if (has_window(m) && (type == GptType::olmoe || is_deepseek(type)))
    return "a window with latent attention, or with norms of whole queries and keys";
  if (has_window(m) && !all_windowed(m) && type == GptType::mixtral)
    return "a window in some layers, with experts";
  return no_such_experts(m, type);
}

/// RMS norms and MLPs that are not gated.
bool is_arcee(const ModelConfig& m) {
  return m.positions == Positions::rotary && m.norm == NormKind::rms && !m.gated && m.experts.count == 0;
}

std::string_view no_arcee(const ModelConfig& m) {
  if (m.latent.on) return "latent attention with an MLP that is not gated";
  if (m.qk_norm) return "RMS norms and an MLP that is not gated, with norms of queries and keys";
  if (m.qkv_bias != m.linear_bias)
    return "RMS norms and an MLP that is not gated, with biases in some places";
  if (has_window(m)) return "RMS norms and an MLP that is not gated, with a window";
  if (skips(m) || turns_a_part(m))
    return "RMS norms and an MLP that is not gated, with heads or layers that do not turn";
  return "";
}

std::string_view no_llama(const ModelConfig& m) {
  if (m.norm != NormKind::rms) return "rotary positions with a layer norm";
  if (is_arcee(m)) return no_arcee(m);
  if (!m.gated) return "rotary positions with experts that are not gated";
  if (has_glm_experts(m)) return no_glm4_moe(m);
  if (skips(m)) return "";  // nobody_has looked already
  const bool alone = m.qk_norm && biases_attention_alone(m);
  if (m.linear_bias && (!m.qkv_bias || m.qk_norm) && !alone)
    return "biases in the MLP with query and key norms";
  if (m.qkv_bias && m.qk_norm && !alone) return "biases and norms of queries and keys";
  if (has_window(m) && m.linear_bias && !alone) return "a window with biases";
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

[[noreturn]] void no_type_has(std::string_view reason) {
  fail(Kind::usage, "exchange: no Hugging Face model that weft writes has ", reason, "; it writes ",
       join(gpt_types, ", "));
}

GptType plainest(const ModelConfig& m) {
  std::string_view reason = nobody_has(m);
  const bool learned = m.positions == Positions::learned;
  const bool elsewhere = m.norm_places != NormPlaces::before;
  if (reason.empty() && !is_gemma(m) && !elsewhere && !is_ministral3(m) && !is_llama4(m) && !is_beside(m) &&
      !is_states(m) && !m.qk_norm_turned && !is_granite_mixture(m)) {
    reason = m.hybrid.on()          ? no_hybrid(m)
             : m.sink != Sink::none ? no_gpt_oss(m)
             : m.delta.on           ? no_qwen3_next(m)
             : learned              ? ""  // nobody_has looked already
                                    : no_llama(m);
  }
  if (!reason.empty()) no_type_has(reason);
  if (is_beside(m)) return type_of_beside(m);
  if (is_states(m)) return type_of_states(m);
  if (is_ministral3(m)) return GptType::ministral3;
  if (is_llama4(m)) return GptType::llama4_text;
  if (m.qk_norm_turned) return m.experts.count > 0 ? GptType::hunyuan_v1_moe : GptType::hunyuan_v1_dense;
  if (elsewhere) return type_of_norms(m);
  if (is_gemma(m)) return GptType::gemma;
  if (learned) return type_of_learned(m);
  if (is_granite_mixture(m))
    return m.experts.shared_hidden > 0 ? GptType::granitemoeshared : GptType::granitemoe;
  if (has_multipliers(m)) return GptType::granite;
  if (m.hybrid.on()) return GptType::nemotron_h;
  if (m.sink != Sink::none) return GptType::gpt_oss;
  if (m.delta.on) return m.experts.count > 0 ? GptType::qwen3_next : GptType::qwen3_5_text;
  if (m.experts.count > 0 || m.latent.on) return type_of_experts(m);
  if (is_arcee(m)) return GptType::arcee;
  if (skips(m)) return GptType::smollm3;
  if (turns_a_part(m) || stretches_pairs(m)) return m.qkv_bias ? GptType::glm : GptType::phi3;
  if (m.qk_norm) return GptType::qwen3;
  if (m.qkv_bias && !m.linear_bias) return GptType::qwen2;
  return has_window(m) ? GptType::mistral : GptType::llama;
}

}  // namespace

bool turns_a_part(const ModelConfig& m) { return m.positions == Positions::rotary && m.rotary.percent != 1; }
bool skips(const ModelConfig& m) {
  return turns_channels(m) && std::ranges::count(m.rotary.skip_layers, 1) > 0;
}

bool has_window(const ModelConfig& m) {
  const auto& layers = m.window_layers;
  return m.window > 0 && (layers.empty() || std::ranges::any_of(layers, [](int w) { return w != 0; }));
}
bool all_windowed(const ModelConfig& m) {
  return std::ranges::all_of(m.window_layers, [](int w) { return w != 0; });
}

namespace {

void drop_what_no_layer_has(ModelConfig& m) {
  if (m.hybrid.on() && parts_in_all(m, LayerPart::attention) == 0) {
    m.heads = m.groups = 1;  // of no layer
    m.channels = m.hidden;
    m.softmax_scale = 0;
  }
  if (m.hybrid.on() && !has_mlp(m) && m.experts.count == 0) {
    m.gated = false;
    m.activation = Activation::gelu;
  }
}

}  // namespace

ModelConfig plain_gpt(ModelConfig m) {
  if (m.softmax_scale == 0) m.softmax_scale = attention_scale(m);
  if (m.experts.count > 0) m.experts.every = 1;
  if (!has_mlp(m)) m.ffn_hidden = m.experts.ffn_hidden;  // of no layer
  if (!m.hybrid.on() || parts_in_all(m, LayerPart::state) == 0) m.state = {};
  drop_what_no_layer_has(m);
  m.delta.attends_every = 0;  // the layers say it
  const RotaryConfig r = m.rotary;
  m.rotary = {};
  if (m.positions == Positions::none || m.positions == Positions::alibi) m.max_positions = 0;
  if (m.positions != Positions::alibi) m.alibi = {};
  if (m.positions == Positions::rotary) {
    m.max_positions = 0;  // a table that can be made at any length
    m.rotary = {.base = r.base,
                .percent = r.percent,
                .interleaved = r.interleaved,
                .scaling = r.scaling,
                .skip_layers = r.skip_layers,
                .window_base = r.window_base};
    if (r.scaling != RotaryScaling::none) m.rotary.factor = r.factor;
    if (r.scaling == RotaryScaling::llama3) {
      m.rotary.low = r.low;
      m.rotary.high = r.high;
      m.rotary.original_positions = r.original_positions;
    }
    if (r.scaling == RotaryScaling::longrope) {
      m.rotary.short_factors = r.short_factors;
      m.rotary.long_factors = r.long_factors;
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
  if (m.latent.norm_epsilon == m.norm_epsilon) m.latent.norm_epsilon = 0;
  if (!skips(m)) m.rotary.skip_layers.clear();
  if (!skips(m) && m.qk_norm_plain) m.qk_norm_turning = true;  // all do
  if (!m.gated) m.gate_limit = m.gate_offset = 0;
  if (m.norm == NormKind::rms) m.norm_bias = true;  // it has none
  if (!m.linear_bias) m.project_bias = m.mlp_bias = true;
  if (!m.norm_gain) m.norm_bias = true;  // nor a bias
  if (!turns_channels(m)) m.qk_norm_turned = false;
  if (m.mup.output_multiplier == 1 && m.mup.embedding_multiplier == 1) m.mup = {};
  drop_idle_angles(m);
  const bool windowed = has_window(m);
  if (!windowed) m.window = 0;
  if (!windowed || all_windowed(m)) m.window_layers.clear();
  return m;
}

std::string_view type_for_gpt(const ModelConfig& m) {
  const GptType type = plainest(m);
  if (const auto reason = no_such_details(m, type); !reason.empty()) no_type_has(reason);
  return gpt_types[std::size_t(type)];
}

}  // namespace weft
