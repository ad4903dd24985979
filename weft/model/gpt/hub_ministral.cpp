// Ministral 3: a Mistral whose queries grow with their places, in all layers.
#include <nlohmann/json.hpp>

#include "weft/model/gpt/hub.h"
#include "weft/model/hub_settings.h"

namespace weft {

using nlohmann::ordered_json;

HubSettings::Json usual_angles_of_ministral3() {
  return {{"rope_type", "yarn"},
          {"rope_theta", 1e6},
          {"factor", 16.0},
          {"original_max_position_embeddings", 16384U},
          {"beta_fast", 32.0},
          {"beta_slow", 1.0},
          {"mscale_all_dim", 1.0},
          {"mscale", 1.0},
          {"llama_4_scaling_beta", 0.1}};
}

// Places are counted in texts as long as those that angles were first made for.
void read_ministral3(ModelConfig& m, HubSettings& s) {
  (void)s.find("max_position_embeddings");
  if (s.find("llama_4_scaling_beta") == nullptr) return;
  m.scores.growth = s.positive("llama_4_scaling_beta", 0.1);
  m.scores.growth_every = m.rotary.original_positions;
  m.scores.growth_of = QueryGrowth::all;
}

bool is_ministral3(const ModelConfig& m) {
  return m.scores.growth_every > 0 && m.scores.growth_of == QueryGrowth::all;
}

std::string_view no_ministral3(const ModelConfig& m) {
  if (m.positions != Positions::rotary || skips(m))
    return "queries that grow in layers that do not turn, and in others";
  if (m.norm != NormKind::rms || !m.gated || m.norm_places != NormPlaces::before)
    return "queries that grow in all layers, with other norms or MLPs than Llama's";
  if (m.latent.on || m.delta.on || m.hybrid.on() || m.experts.count > 0 || m.sink != Sink::none)
    return "queries that grow in all layers, with layers of other kinds than attention and an MLP";
  if (m.linear_bias || m.qkv_bias || has_multipliers(m))
    return "queries that grow in all layers, with biases or multipliers";
  if (m.qk_norm || has_caps(m) || m.scores.chunk > 0 || (has_window(m) && !all_windowed(m)))
    return "queries that grow in all layers, with other attention than Mistral's";
  const RotaryConfig& r = m.rotary;
  if (r.scaling != RotaryScaling::none && r.scaling != RotaryScaling::yarn)
    return "queries that grow in all layers, with angles that are stretched otherwise than as YaRN does";
  if (r.scaling == RotaryScaling::yarn && r.original_positions != m.scores.growth_every)
    return "queries that grow in all layers, by another length than angles are stretched from";
  return "";
}

// In the words of transformers 5, which was the first to know it.
void write_ministral3(ordered_json& out, const ModelConfig& m) {
  ordered_json rope =
      out["rope_scaling"].is_null() ? ordered_json{{"rope_type", "default"}} : out["rope_scaling"];
  rope["rope_theta"] = m.rotary.base;
  rope["original_max_position_embeddings"] = m.scores.growth_every;
  rope["llama_4_scaling_beta"] = m.scores.growth;
  out.erase("rope_theta");
  out.erase("rope_scaling");
  out["rope_parameters"] = rope;
  out["sliding_window"] = has_window(m) ? ordered_json(m.window) : ordered_json();
}

}  // namespace weft
