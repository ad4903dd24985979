// Llama 4: experts that read weighed rows, norms of queries and keys without gains, and layers that do not
// turn.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "weft/model/gpt/hub.h"
#include "weft/model/hub_settings.h"

namespace weft {
namespace {

using nlohmann::ordered_json;

constexpr std::int64_t usual_chunk = 8192, usual_floor = 8192;

/// Layers that turn see chunks of a text, and in the others scores grow with every so many places: up to
/// there weft computes the same.
std::int64_t longest(const ModelConfig& m, HubSettings& s) {
  std::int64_t positions = m.max_positions;
  const std::int64_t chunk = s.says("attention_chunk_size") && s.find("attention_chunk_size") == nullptr
                                 ? positions
                                 : s.size_or("attention_chunk_size", usual_chunk);
  if (chunk < positions) positions = chunk;
  const std::int64_t floor = s.size_or("floor_scale", usual_floor);
  (void)s.number("attn_scale", 0.1);
  if (s.yes("attn_temperature_tuning", true) && floor - 1 < positions) positions = floor - 1;
  if (positions < 1) s.refuse("floor_scale", "weft can only compute what stands before it");
  if (const HubSettings::Json* types = s.find("layer_types"))
    for (const HubSettings::Json& one : *types)
      if (one != "chunked_attention" && one != "full_attention")
        s.refuse("layer_types", "weft knows chunked_attention and full_attention");
  return positions;
}

std::vector<int> layers_with_experts(int layers, HubSettings& s) {
  const std::int64_t step = s.size_or("interleave_moe_layer_step", 1, HubSettings::most_layers);
  const HubSettings::Json* list = s.find("moe_layers");
  std::vector<int> out;
  for (int layer = 0; layer < layers; ++layer) out.push_back(list == nullptr && (layer + 1) % step == 0);
  if (list == nullptr) return out;
  for (const HubSettings::Json& one : *list) {
    if (!one.is_number_unsigned() || one.get<std::uint64_t>() >= std::uint64_t(layers))
      s.refuse("moe_layers", text("expected a list of layers from 0 to ", layers - 1));
    out[one.get<std::size_t>()] = 1;
  }
  return out;
}

bool is_every_nth(const std::vector<int>& layers, int n) {
  for (int layer = 0; layer < int(layers.size()); ++layer)
    if ((layers[std::size_t(layer)] != 0) != ((layer + 1) % n == 0)) return false;
  return true;
}

std::string_view no_such_router(const ModelConfig& m) {
  const ExpertsConfig& x = m.experts;
  if (!x.weigh_input) return "norms without gains, with weights of what experts give";
  if (x.router.score != RouterScore::sigmoid || x.router.chosen != 1)
    return "weighed rows of others than one expert a token, chosen by sigmoids";
  if (x.router.expert_bias || x.router.groups > 0 || x.router.scaling != 1)
    return "weighed rows, with an expert bias, groups or scaled weights";
  if (x.shared_hidden != x.ffn_hidden || x.shared_gate)
    return "weighed rows, without a shared expert as wide as the others and without a gate";
  return "";
}

}  // namespace

void read_llama4(ModelConfig& m, HubSettings& s) {
  s.must_be("attention_bias", false);
  m.max_positions = longest(m, s);
  m.qk_norm = m.qk_norm_plain = m.qk_norm_turning = s.yes("use_qk_norm", true);
  ExpertsConfig& x = m.experts;
  x.ffn_hidden = x.shared_hidden = s.size("intermediate_size", HubSettings::widest);
  x.count = int(s.size("num_local_experts", 1 << 16));
  x.router.chosen = int(s.size_or("num_experts_per_tok", 1, x.count));
  if (x.router.chosen != 1) s.refuse("num_experts_per_tok", "weft can only compute 1, chosen by sigmoids");
  x.router.score = RouterScore::sigmoid;
  x.weigh_input = true;
  x.layers = layers_with_experts(m.layers, s);
  for (const char* name : {"router_aux_loss_coef", "router_jitter_noise", "output_router_logits"})
    (void)s.find(name);
  if (std::ranges::count(x.layers, 1) == 0) x = {};
}

bool is_llama4(const ModelConfig& m) { return m.qk_norm_plain || m.experts.weigh_input; }

std::string_view no_llama4(const ModelConfig& m) {
  if (m.positions != Positions::rotary)
    return "norms without gains or weighed rows, without rotary positions";
  if (m.norm != NormKind::rms || !m.gated || m.norm_places != NormPlaces::before)
    return "norms without gains or weighed rows, with other norms or MLPs than Llama's";
  if (m.latent.on || m.delta.on || m.hybrid.on() || m.sink != Sink::none || has_window(m) || turns_a_part(m))
    return "norms without gains or weighed rows, with other attention than Llama 4's";
  if (m.linear_bias || m.qkv_bias || has_multipliers(m))
    return "norms without gains or weighed rows, with biases or multipliers";
  if (m.qk_norm && !m.qk_norm_plain) return "weighed rows, with norms that have gains";
  if (m.qk_norm_plain && !m.qk_norm_turning && skips(m))
    return "norms without gains in layers without rotary positions";
  if (m.ahead.depths > 0) return "norms without gains or weighed rows, with further tokens";
  return m.experts.count > 0 ? no_such_router(m) : "";
}

void write_llama4(ordered_json& out, const ModelConfig& m) {
  const ExpertsConfig& x = m.experts;
  const bool some = x.count > 0;
  out["intermediate_size_mlp"] = m.ffn_hidden;
  out["intermediate_size"] = some ? x.ffn_hidden : m.ffn_hidden;
  out["num_local_experts"] = std::max(x.count, 1);
  out["num_experts_per_tok"] = 1;
  out["output_router_logits"] = false;
  int step = 1;
  while (some && step < m.layers && !is_every_nth(x.layers, step)) ++step;
  out["interleave_moe_layer_step"] = step;
  out["moe_layers"] = ordered_json::array();
  for (int layer = 0; layer < m.layers; ++layer)
    if (x.at(layer)) out["moe_layers"].push_back(layer);
  out["use_qk_norm"] = m.qk_norm_plain;
  out["attention_bias"] = false;
  // What longer texts would have and weft does not compute.
  const bool longer = m.max_positions >= usual_floor;
  out["attention_chunk_size"] = longer ? ordered_json() : ordered_json(usual_chunk);
  out["attn_temperature_tuning"] = !longer;
}

}  // namespace weft
