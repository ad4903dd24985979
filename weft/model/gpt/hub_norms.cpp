// Norms behind attention and MLPs or around them, caps and multipliers: OLMo 2 and 3, Exaone 4, Gemma 2 and
// 3, GLM-4, Granite.
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "weft/model/gpt/hub.h"
#include "weft/model/hub_settings.h"
#include "weft/model/rotary.h"

namespace weft {
namespace {

using nlohmann::ordered_json;

/// But for the last bit, which other programs round otherwise.
bool near(double a, double b) { return std::abs(a - b) <= 1e-15 * std::abs(b); }

/// What Gemma 3 divides scores by the root of, where it is a whole number; else 0.
std::int64_t score_divisor(const ModelConfig& m) {
  const double scale = attention_scale(m), divisor = std::round(1 / (scale * scale));
  const bool has_place = divisor >= 1 && divisor <= double(HubSettings::most);
  return has_place && near(1 / std::sqrt(divisor), scale) ? std::int64_t(divisor) : 0;
}

/// The number whose inverse it is: 1 / (1 / x) may be near x.
double inverse_of(double inverse) {
  const double x = 1 / inverse;
  double below = x, above = x;
  for (const double one : {std::nearbyint(x), x})
    if (1 / one == inverse) return one;
  for (int steps = 0; steps < 2; ++steps) {
    below = std::nextafter(below, 0.0);
    above = std::nextafter(above, 2 * x);
    if (1 / below == inverse) return below;
    if (1 / above == inverse) return above;
  }
  return x;
}

std::string_view no_olmo(const ModelConfig& m) {
  if (skips(m)) return "norms of what layers give and of whole queries, with layers without rotary positions";
  if (m.rotary.window_base || !has_window(m) || m.rotary.scaling == RotaryScaling::none) return "";
  return "norms of what layers give and of whole queries, with angles that are stretched in all layers";
}

std::string_view no_exaone4(const ModelConfig& m) {
  if (!m.qk_norm) return "norms of what layers give alone, without norms of queries and keys";
  if (m.rotary.window_base) return "norms of what layers give alone, with angles of their own in some layers";
  const bool some = has_window(m) && !all_windowed(m);
  if (some ? !slides_where_it_turns(m) : skips(m))
    return "norms of what layers give alone, with layers without a window that turn, or the other way round";
  return "";
}

std::string_view no_later_gemma(const ModelConfig& m, GptType type) {
  if (m.qk_norm_whole) return "norms around layers, with norms of whole queries and keys";
  if (skips(m)) return "norms around layers as Gemma's, with layers without rotary positions";
  if (m.activation != Activation::gelu)
    return "norms around layers as Gemma's, with another activation than gelu's tanh form";
  if (!multiplies_as_gemma(m))
    return "norms around layers as Gemma's, without embeddings that are multiplied by the root of their "
           "width";
  if (score_divisor(m) == 0)
    return "norms around layers as Gemma's, with scores divided by the root of no whole number";
  if (type == GptType::gemma3_text && m.scores.cap > 0)
    return "norms around layers as Gemma 3's, with caps of scores, which transformers computes without";
  if (type == GptType::gemma2 && m.rotary.window_base)
    return "norms around layers as Gemma 2's, with angles of their own in some layers";
  if (type == GptType::gemma3_text && has_window(m) && !m.rotary.window_base &&
      m.rotary.scaling != RotaryScaling::none)
    return "norms around layers as Gemma's, with angles that are stretched in all layers";
  return "";
}

std::string_view no_glm4(const ModelConfig& m) {
  if (has_window(m)) return "norms around layers, with a window and no norms of queries and keys";
  if (skips(m)) return "norms around layers, with layers without rotary positions";
  return "";
}

/// In all layers, with weights that are a softmax over the chosen.
bool has_experts_as_granite(const ModelConfig& m) {
  const ExpertsConfig& x = m.experts;
  const RouterConfig& r = x.router;
  const bool plain = r.score == RouterScore::softmax && !r.softmax_first && !r.expert_bias && r.groups == 0 &&
                     r.scaling == 1;
  return plain && std::ranges::find(x.layers, 0) == x.layers.end() && !x.shared_gate && x.latent == 0 &&
         !has_mlp_bias(m);
}

}  // namespace

bool is_granite_mixture(const ModelConfig& m) {
  return m.experts.count > 0 && has_multipliers(m) && !m.hybrid.on() && no_granite(m).empty();
}

bool has_caps(const ModelConfig& m) { return m.scores.cap > 0 || m.output_cap > 0; }

bool multiplies_as_gemma(const ModelConfig& m) {
  return std::abs(m.embedding_multiplier - std::sqrt(double(m.hidden))) < 1e-6 * m.embedding_multiplier;
}

bool scales_scores(const ModelConfig& m) {
  ModelConfig usual = m;
  usual.softmax_scale = 0;
  return !near(attention_scale(m), attention_scale(usual));
}

bool has_multipliers(const ModelConfig& m) {
  return m.residual_multiplier != 1 || m.output_multiplier != 1 || m.embedding_multiplier != 1 ||
         scales_scores(m);
}

bool slides_where_it_turns(const ModelConfig& m) {
  for (int layer = 0; layer < m.layers; ++layer) {
    const bool slides =
        has_window(m) && (m.window_layers.empty() || m.window_layers[std::size_t(layer)] != 0);
    if (turns_in(m.rotary, layer) != slides) return false;
  }
  return true;
}

void drop_idle_angles(ModelConfig& m) {
  RotaryConfig& r = m.rotary;
  const bool same = r.window_base && *r.window_base == r.base && r.scaling == RotaryScaling::none;
  if (same || !has_window(m)) r.window_base.reset();
}

GptType type_of_norms(const ModelConfig& m) {
  if (m.norm_places == NormPlaces::around) {
    if (m.qk_norm) return GptType::gemma3_text;
    return has_caps(m) || m.embedding_multiplier != 1 ? GptType::gemma2 : GptType::glm4;
  }
  if (!m.qk_norm_whole) return GptType::exaone4;
  return has_window(m) ? GptType::olmo3 : GptType::olmo2;
}

std::string_view no_norms_elsewhere(const ModelConfig& m) {
  const GptType type = type_of_norms(m);
  const bool glm = type == GptType::glm4, gemma = is_later_gemma(type);
  if (m.positions != Positions::rotary) return "norms of what layers give, without rotary positions";
  if (m.norm != NormKind::rms) return "norms of what layers give, of another kind than RMS";
  if (!m.gated) return "norms of what layers give, with an MLP that is not gated";
  if (m.latent.on || m.delta.on || m.hybrid.on())
    return "norms of what layers give, with layers of other kinds than attention";
  if (m.sink != Sink::none) return "norms of what layers give, with attention sinks";
  if (m.experts.count > 0) return "norms of what layers give, with experts";
  if (m.linear_bias || (m.qkv_bias && !glm)) return "norms of what layers give, with biases";
  if (turns_a_part(m) && !glm) return "norms of what layers give, with heads of which a part turns";
  const bool scales = m.embedding_multiplier != 1 || scales_scores(m);
  if (m.residual_multiplier != 1 || m.output_multiplier != 1 || (scales && !gemma))
    return "norms of what layers give, with multipliers";
  if (glm) return no_glm4(m);
  if (gemma) return no_later_gemma(m, type);
  return m.qk_norm_whole ? no_olmo(m) : no_exaone4(m);
}

std::string_view no_granite(const ModelConfig& m) {
  if (m.positions != Positions::rotary) return "multipliers without rotary positions";
  if (m.norm != NormKind::rms || !m.gated)
    return "multipliers with a layer norm, or an MLP that is not gated";
  if (m.latent.on || m.delta.on || m.hybrid.on())
    return "multipliers in layers of other kinds than attention and an MLP";
  if (m.experts.count > 0 && !has_experts_as_granite(m))
    return "multipliers with experts that are not in all layers, or chosen otherwise than by softmax over "
           "the "
           "chosen";
  if (m.sink != Sink::none) return "multipliers with attention sinks";
  if (m.qk_norm) return "multipliers with norms of queries and keys";
  if (m.qkv_bias != m.linear_bias) return "multipliers with biases in some places";
  if (turns_a_part(m) || skips(m))
    return "multipliers with heads of which a part turns, or layers of which none";
  if (has_window(m)) return "multipliers with a window";
  return "";
}

void write_hub_norms(ordered_json& out, const ModelConfig& m, GptType type) {
  if (is_later_gemma(type)) {
    const auto cap = [](double of) { return of > 0 ? ordered_json(of) : ordered_json(); };
    out["query_pre_attn_scalar"] = score_divisor(m);
    out["final_logit_softcapping"] = cap(m.output_cap);
    if (type == GptType::gemma2) out["attn_logit_softcapping"] = cap(m.scores.cap);
  }
  if (type == GptType::gemma3_text)
    out["rope_local_base_freq"] = m.rotary.window_base.value_or(m.rotary.base);
  // Transformers 5 asks for them apart, and takes the older words, which are there too, for one of the two.
  if (type == GptType::olmo3) {
    ordered_json full =
        out["rope_scaling"].is_null() ? ordered_json{{"rope_type", "default"}} : out["rope_scaling"];
    full["rope_theta"] = m.rotary.base;
    out["rope_parameters"]["full_attention"] = full;
    out["rope_parameters"]["sliding_attention"] = {
        {"rope_type", "default"}, {"rope_theta", m.rotary.window_base.value_or(m.rotary.base)}};
  }
  if (type == GptType::exaone4) {
    const bool some = has_window(m) && !all_windowed(m);
    const auto full = std::ranges::find(m.window_layers, 0) - m.window_layers.begin();
    out["sliding_window_pattern"] = some ? ordered_json(full + 1) : ordered_json();
  }
  if (type == GptType::granite || type == GptType::granitemoehybrid || is_granite_mixture(type)) {
    out["attention_multiplier"] = attention_scale(m);
    out["embedding_multiplier"] = m.embedding_multiplier;
    out["residual_multiplier"] = m.residual_multiplier;
    out["logits_scaling"] = inverse_of(m.output_multiplier);
  }
}

}  // namespace weft
