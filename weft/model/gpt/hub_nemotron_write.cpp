// Layers that are one thing each, in the words of Nemotron-H: writing, and how state spaces are stored there.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "weft/model/gpt/hub.h"
#include "weft/model/hub_settings.h"
#include "weft/model/layer_parts.h"

namespace weft {
namespace {

using nlohmann::ordered_json;

std::string_view no_such_experts_there(const ExpertsConfig& x) {
  if (x.count == 0) return "";
  if (x.router.score != RouterScore::sigmoid || !x.router.expert_bias)
    return "layers of one thing each, with experts that are not chosen by sigmoids and a bias";
  if (x.router.groups > 0 && x.router.chosen / x.router.groups_kept != 2)
    return "layers of one thing each, with groups of experts that are compared by other than their best two";
  if (x.shared_hidden == 0) return "layers of one thing each, with experts and no shared one";
  if (x.shared_gate) return "layers of one thing each, with a gate of the shared expert";
  return "";
}

void write_state(ordered_json& out, const StateConfig& state) {
  out["mamba_num_heads"] = state.heads;
  out["mamba_head_dim"] = state.head_channels;
  out["n_groups"] = state.groups;
  out["ssm_state_size"] = state.channels;
  out["conv_kernel"] = state.taps;
  out["mamba_hidden_act"] = "silu";
  out["use_conv_bias"] = true;
  // transformers 5 raises times to this, whatever their limit is said to be; the model does not.
  out["time_step_min"] = 1e-30;
}

void write_experts(ordered_json& out, const ExpertsConfig& x) {
  out["n_routed_experts"] = x.count;
  out["n_shared_experts"] = 1;
  out["moe_intermediate_size"] = x.ffn_hidden;
  out["moe_shared_expert_intermediate_size"] = x.shared_hidden;
  out["moe_latent_size"] = x.latent > 0 ? ordered_json(x.latent) : ordered_json();
  out["num_experts_per_tok"] = x.router.chosen;
  out["norm_topk_prob"] = x.router.chosen > 1;
  out["routed_scaling_factor"] = x.router.scaling;
  out["n_group"] = std::max(x.router.groups, 1);
  out["topk_group"] = std::max(x.router.groups_kept, 1);
}

/// Rows of all groups' parts that stand behind each other, each as wide as `width` in every group.
struct Columns {
  std::int64_t from = 0, width = 0;
};

std::vector<RowRun> group_by_group(std::int64_t groups, std::initializer_list<Columns> parts) {
  std::vector<RowRun> out;
  std::int64_t to = 0;
  for (std::int64_t g = 0; g < groups; ++g)
    for (const Columns& part : parts) {
      out.push_back({0, part.from + g * part.width, to, part.width});
      to += part.width;
    }
  return out;
}

}  // namespace

std::string_view no_nemotron_h(const ModelConfig& m) {
  if ((m.hybrid.layers + m.hybrid.ahead).find('G') != std::string::npos)
    return "layers of one thing each, with the gated delta rule";
  if (m.positions != Positions::none) return "layers of one thing each, with positions";
  if (m.norm != NormKind::rms) return "layers of one thing each, with a layer norm";
  if (parts_in_all(m, LayerPart::state) > 0 && m.state.norm_epsilon != m.norm_epsilon)
    return "state spaces whose norms have another epsilon than the others";
  if (m.latent.on) return "layers of one thing each, with latent attention";
  if (m.qk_norm) return "layers of one thing each, with norms of queries and keys";
  if (m.linear_bias || m.qkv_bias) return "layers of one thing each, with biases";
  if (m.gated) return "layers of one thing each, with a gated MLP";
  if (m.tied_output) return "layers of one thing each, with an output that is the embedding";
  return no_such_experts_there(m.experts);
}

ordered_json nemotron_h_json(const ModelConfig& m) {
  ordered_json out{{"architectures", {"NemotronHForCausalLM"}},
                   {"model_type", "nemotron_h"},
                   {"num_hidden_layers", m.layers},
                   {"hybrid_override_pattern", m.hybrid.layers},
                   {"hidden_size", m.hidden},
                   {"num_attention_heads", m.heads},
                   {"num_key_value_heads", m.groups},
                   {"head_dim", m.channels},
                   {"intermediate_size", m.ffn_hidden},
                   {"max_position_embeddings", std::max(m.max_positions, m.sequence)},
                   {"layer_norm_epsilon", m.norm_epsilon},
                   {"mlp_hidden_act", m.activation == Activation::gelu ? "gelu_pytorch_tanh"
                                                                       : hub_activation_word(m.activation)},
                   {"attention_dropout", m.attention_dropout}};
  for (const char* name : {"attention_bias", "mlp_bias", "use_bias"}) out[name] = false;
  if (parts_in_all(m, LayerPart::state) > 0) write_state(out, m.state);
  if (m.experts.count > 0) write_experts(out, m.experts);
  if (m.ahead.depths > 0) {
    out["num_nextn_predict_layers"] = m.ahead.depths;
    out["mtp_hybrid_override_pattern"] = m.hybrid.ahead;
  }
  return out;
}

// Theirs has all heads' gates and values, then all groups' writes and reads, then times: z, x, B, C, dt. Ours
// of every group its reads, writes, values, gates and times.
std::vector<RowRun> state_in_runs(const MemoryShape& shape) {
  const std::int64_t groups = shape.keys, values = shape.values(), channels = shape.channels;
  const std::int64_t writes = 2 * groups * values, reads = writes + groups * channels,
                     times = reads + groups * channels;
  return group_by_group(groups, {{reads, channels},
                                 {writes, channels},
                                 {groups * values, values},
                                 {0, values},
                                 {times, shape.per_key}});
}

// x, B, C there, and of every group reads, writes and values here.
std::vector<RowRun> state_filter_runs(const MemoryShape& shape) {
  const std::int64_t groups = shape.keys, values = shape.values(), channels = shape.channels;
  const std::int64_t writes = groups * values, reads = writes + groups * channels;
  return group_by_group(groups, {{reads, channels}, {writes, channels}, {0, values}});
}

}  // namespace weft
