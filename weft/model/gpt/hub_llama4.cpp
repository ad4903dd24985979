// Llama 4: experts that read weighed rows, norms of queries and keys without gains, layers that see chunks
// and those that do not turn, where queries grow.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "weft/model/gpt/hub.h"
#include "weft/model/hub_settings.h"

namespace weft {
namespace {

using nlohmann::ordered_json;

constexpr std::int64_t usual_chunk = 8192, usual_floor = 8192;
constexpr double usual_growth = 0.1;

/// Layers that turn see chunks of a text where nothing is said of it.
void read_chunks(ModelConfig& m, HubSettings& s) {
  const bool none = s.says("attention_chunk_size") && s.find("attention_chunk_size") == nullptr;
  const std::int64_t chunk = none ? 0 : s.size_or("attention_chunk_size", usual_chunk);
  const HubSettings::Json* types = s.find("layer_types");
  std::vector<int> chunked;
  for (int layer = 0; layer < m.layers; ++layer)
    chunked.push_back(types == nullptr && chunk > 0 && turns_in(m.rotary, layer));
  if (types != nullptr)
    chunked = read_hub_listed_layers(
        *types, m.layers, {"chunked_attention", "weft knows chunked_attention and full_attention"}, s);
  if (std::ranges::count(chunked, 1) == 0) return;
  if (chunk == 0) s.refuse("layer_types", "but \"attention_chunk_size\" is null");
  m.scores.chunk = chunk;
  m.window_layers = chunked;
}

/// And queries of the others grow.
void read_growth(ModelConfig& m, HubSettings& s) {
  const std::int64_t every = s.size_or("floor_scale", usual_floor);
  const double growth = s.positive("attn_scale", usual_growth);
  if (!s.yes("attn_temperature_tuning", true) || !skips(m)) return;
  m.scores.growth_every = every;
  m.scores.growth = growth;
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
  if (!x.weigh_input)
    return "chunks, queries that grow or norms without gains, with weights of what experts give";
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
  read_chunks(m, s);
  read_growth(m, s);
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

bool is_llama4(const ModelConfig& m) {
  return m.qk_norm_plain || m.experts.weigh_input || m.scores.chunk > 0 ||
         (m.scores.growth_every > 0 && m.scores.growth_of == QueryGrowth::still);
}

std::string_view no_llama4(const ModelConfig& m) {
  if (m.positions != Positions::rotary)
    return "chunks, queries that grow, norms without gains or weighed rows, without rotary positions";
  if (m.norm != NormKind::rms || !m.gated || m.norm_places != NormPlaces::before)
    return "chunks, queries that grow, norms without gains or weighed rows, with other norms or MLPs than "
           "Llama's";
  if (m.latent.on || m.delta.on || m.hybrid.on() || m.sink != Sink::none || has_window(m) ||
      turns_a_part(m) || has_caps(m))
    return "chunks, queries that grow, norms without gains or weighed rows, with other attention than Llama "
           "4's";
  if (m.linear_bias || m.qkv_bias || has_multipliers(m))
    return "chunks, queries that grow, norms without gains or weighed rows, with biases or multipliers";
  if (m.qk_norm && !m.qk_norm_plain) return "weighed rows, with norms that have gains";
  if (m.qk_norm_plain && !m.qk_norm_turning && skips(m))
    return "norms without gains in layers without rotary positions";
  if (m.ahead.depths > 0)
    return "chunks, queries that grow, norms without gains or weighed rows, with further tokens";
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
  const ScoresConfig& scores = m.scores;
  out["attention_chunk_size"] = scores.chunk > 0 ? ordered_json(scores.chunk) : ordered_json();
  for (int layer = 0; layer < m.layers; ++layer) {
    const bool chunked =
        scores.chunk > 0 && (m.window_layers.empty() || m.window_layers[std::size_t(layer)] != 0);
    out["layer_types"].push_back(chunked ? "chunked_attention" : "full_attention");
  }
  out["attn_temperature_tuning"] = scores.growth_every > 0;
  out["floor_scale"] = scores.growth_every > 0 ? scores.growth_every : usual_floor;
  out["attn_scale"] = scores.growth;
}

}  // namespace weft
