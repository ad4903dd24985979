// Layers that remember, in the words of Qwen3-Next and Qwen 3.5, and what its layers have besides.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "weft/model/gpt/hub.h"
#include "weft/model/hub_settings.h"

namespace weft {
namespace {

using nlohmann::ordered_json;

constexpr const char *remembering = "linear_attention", *attending = "full_attention";

/// A list says which layers remember, or how often others come.
std::vector<int> read_layers(int layers, HubSettings& s) {
  const std::int64_t every = s.size_or("full_attention_interval", 4);
  const HubSettings::Json* types = s.find("layer_types");
  if (types == nullptr) return all_but_every(int(every), layers);
  if (!types->is_array() || std::ssize(*types) != layers)
    s.refuse("layer_types", text("expected a list of ", layers, " words"));
  std::vector<int> out;
  for (const HubSettings::Json& one : *types) {
    if (one != remembering && one != attending)
      s.refuse("layer_types", "weft knows linear_attention and full_attention");
    out.push_back(one == remembering);
  }
  return out;
}

std::string_view no_such_experts_there(const ExpertsConfig& x) {
  if (x.count == 0) return "";
  if (x.router.score != RouterScore::softmax || x.router.expert_bias || x.router.groups > 0 ||
      x.router.scaling != 1)
    return "layers that remember, with weights of experts that are no plain softmax";
  if (x.shared_hidden == 0 || !x.shared_gate)
    return "layers that remember, with experts and no shared one behind a gate";
  if (x.latent > 0) return "layers that remember, with experts on fewer channels";
  return "";
}

}  // namespace

void read_hub_delta(ModelConfig& m, GptType type, HubSettings& s) {
  m.norm_centered_gain = m.attention_gate = true;
  s.must_be("hidden_act", "silu");
  s.must_be("use_sliding_window", false);
  if (type != GptType::qwen3_next) {
    s.must_be("attn_output_gate", true);
    for (const char* name : {"mamba_ssm_dtype", "mtp_num_hidden_layers", "mtp_use_dedicated_embeddings"})
      (void)s.find(name);
  }
  DeltaConfig d{.on = true,
                .layers = read_layers(m.layers, s),
                .key_heads = int(s.size_or("linear_num_key_heads", 16, HubSettings::most_heads)),
                .value_heads = int(s.size_or("linear_num_value_heads", 32, HubSettings::most_heads)),
                .key_channels = s.size_or("linear_key_head_dim", 128, most_delta_channels),
                .value_channels = s.size_or("linear_value_head_dim", 128, HubSettings::widest / 16),
                .taps = int(s.size_or("linear_conv_kernel_dim", 4, most_taps))};
  if (d.layers_with() > 0) m.delta = std::move(d);
}

std::string_view no_qwen3_next(const ModelConfig& m) {
  if (m.positions != Positions::rotary) return "layers that remember, without rotary positions";
  if (m.norm != NormKind::rms) return "layers that remember, with a layer norm";
  if (m.latent.on) return "layers that remember, with latent attention";
  if (!m.attention_gate) return "layers that remember, without gates of what heads give";
  if (!m.qk_norm || m.qk_norm_whole)
    return "layers that remember, without norms of each head's queries and keys";
  if (m.linear_bias || m.qkv_bias) return "layers that remember, with biases";
  if (!m.gated) return "layers that remember, with an MLP that is not gated";
  return no_such_experts_there(m.experts);
}

void write_hub_delta(ordered_json& out, const ModelConfig& m) {
  const DeltaConfig& d = m.delta;
  out["linear_num_key_heads"] = d.key_heads;
  out["linear_num_value_heads"] = d.value_heads;
  out["linear_key_head_dim"] = d.key_channels;
  out["linear_value_head_dim"] = d.value_channels;
  out["linear_conv_kernel_dim"] = d.taps;
  for (int layer = 0; layer < m.layers; ++layer)
    out["layer_types"].push_back(d.at(layer) ? remembering : attending);
}

}  // namespace weft
