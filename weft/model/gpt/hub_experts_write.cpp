// Which type has a mixture of experts such as a model's, and how it says so.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "weft/model/gpt/hub.h"

namespace weft {
namespace {

using nlohmann::ordered_json;

bool all_have(const ModelConfig& m) {
  return std::ranges::all_of(m.experts.layers, [](int one) { return one != 0; });
}

/// Layers without experts that stand first; -1 where others do.
int dense_first(const ModelConfig& m) {
  const auto& layers = m.experts.layers;
  if (m.experts.count == 0) return m.layers;
  const auto first = std::ranges::find(layers, 1);
  return std::all_of(first, layers.end(), [](int one) { return one != 0; }) ? int(first - layers.begin())
                                                                            : -1;
}

std::string_view no_softmax_experts(const ModelConfig& m, GptType type) {
  const ExpertsConfig& x = m.experts;
  if (x.router.score != RouterScore::softmax) return "experts chosen by roots, without latent attention";
  if (x.router.expert_bias) return "an expert bias, without latent attention";
  if (x.router.groups > 0) return "experts in groups, without latent attention";
  if (x.router.scaling != 1) return "weights of experts that are scaled, without latent attention";
  if (type == GptType::qwen2_moe && x.shared_hidden == 0)
    return "experts without a shared one, with biases of queries, keys and values";
  if (type == GptType::qwen2_moe && !x.shared_gate) return "a shared expert without a gate";
  if (type != GptType::qwen2_moe && x.shared_hidden > 0)
    return "a shared expert without biases of queries, keys and values";
  if (type == GptType::mixtral && x.router.softmax_first)
    return "weights of experts that do not add up to 1, without norms of queries and keys";
  if ((type == GptType::mixtral || type == GptType::olmoe) && !all_have(m))
    return "layers without experts, in such a model";
  return "";
}

// Of shared experts' width DeepSeek tells the number, each as wide as a chosen one.
std::string_view no_deepseek(const ModelConfig& m, GptType type) {
  const ExpertsConfig& x = m.experts;
  if (!m.qk_norm) return "latents without norms";
  const double of_latents = m.latent.norm_epsilon > 0 ? m.latent.norm_epsilon : m.norm_epsilon;
  if (of_latents != epsilon_of_latents) return "norms of latents with an epsilon other than 1e-6";
  if (m.qk_norm_whole) return "latents with norms of whole queries";
  if (x.count == 0) return "";
  const bool third = type == GptType::deepseek_v3;
  if (third && (x.router.score != RouterScore::sigmoid || !x.router.expert_bias))
    return "latent attention with experts that are chosen by roots or without an expert bias";
  if (!third && !x.router.softmax_first) return "latent attention with softmax over the chosen experts";
  if (!third && m.ahead.depths > 0) return "further tokens with experts that are chosen by softmax";
  if (x.shared_gate) return "latent attention with a gate of the shared expert";
  if (x.shared_hidden % x.ffn_hidden != 0)
    return "latent attention with a shared expert that is not a multiple as wide as the others";
  if (third && x.router.groups > 0 && x.router.chosen / x.router.groups_kept != 2)
    return "groups of experts that are compared by other than their best two";
  if (!third && x.router.groups > 0 && x.router.chosen / x.router.groups_kept != 1)
    return "groups of experts that are compared by other than their best, under softmax";
  if (dense_first(m) < 0) return "latent attention with layers without experts behind some that have them";
  return "";
}

void write_experts_as_deepseek(ordered_json& out, const ModelConfig& m) {
  const ExpertsConfig& x = m.experts;
  const bool some = x.count > 0;
  out["first_k_dense_replace"] = dense_first(m);
  out["n_routed_experts"] = some ? x.count : 8;
  out["n_shared_experts"] = some ? x.shared_hidden / x.ffn_hidden : 1;
  out["num_experts_per_tok"] = some ? x.router.chosen : 2;
  out["moe_intermediate_size"] = some ? x.ffn_hidden : m.ffn_hidden;
  out["n_group"] = std::max(x.router.groups, 1);
  out["topk_group"] = std::max(x.router.groups_kept, 1);
  out["routed_scaling_factor"] = x.router.scaling;
  out["norm_topk_prob"] = !some || x.router.chosen > 1;
}

std::string_view no_minimax(const ModelConfig& m) {
  const RouterConfig& r = m.experts.router;
  if (m.qkv_bias) return "experts chosen by sigmoids, with biases and norms of whole queries and keys";
  if (has_window(m)) return "experts chosen by sigmoids, with a window and norms of whole queries and keys";
  if (m.experts.shared_hidden > 0 || m.ahead.depths > 0)
    return "experts chosen by sigmoids beside a shared one or further tokens, with norms of whole queries "
           "and "
           "keys";
  if (r.groups > 0 || r.scaling != 1 || r.chosen == 1)
    return "experts chosen by sigmoids in groups, with scaled weights or one a token, and norms of whole "
           "queries and keys";
  return all_have(m) ? "" : "norms of whole queries and keys, with layers without experts";
}

std::string_view no_dots(const ModelConfig& m) {
  if (!m.qk_norm) return "experts chosen by sigmoids, with a window and no norms of queries and keys";
  if (m.qkv_bias) return "experts chosen by sigmoids, with a window and biases";
  if (turns_a_part(m)) return "experts chosen by sigmoids, with a window and heads of which a part turns";
  return m.ahead.depths > 0 ? "experts chosen by sigmoids, with a window and further tokens" : "";
}

}  // namespace

bool has_glm_experts(const ModelConfig& m) {
  return m.experts.count > 0 && m.experts.router.score == RouterScore::sigmoid && !m.latent.on &&
         !m.delta.on && !m.hybrid.on() && m.sink == Sink::none && m.positions == Positions::rotary;
}

std::string_view no_glm4_moe(const ModelConfig& m) {
  const ExpertsConfig& x = m.experts;
  if (!x.router.expert_bias) return "experts chosen by sigmoids without an expert bias";
  if (m.linear_bias) return "experts or latent attention with biases";
  if (x.latent > 0) return "experts that work on fewer channels";
  const GptType type = type_of_experts(m);
  if (type == GptType::minimax_m2) return no_minimax(m);
  if (const auto reason = type == GptType::dots1 ? no_dots(m) : ""; !reason.empty()) return reason;
  if (x.shared_gate) return "experts chosen by sigmoids, with a gate of the shared expert";
  if (x.shared_hidden % x.ffn_hidden != 0)
    return "experts chosen by sigmoids, with a shared expert that is not a multiple as wide as the others";
  if (x.router.groups > 0 && x.router.chosen / x.router.groups_kept != 2)
    return "groups of experts that are compared by other than their best two";
  if (dense_first(m) < 0)
    return "experts chosen by sigmoids, with layers without experts behind some that have them";
  return "";
}

std::string_view no_gpt_oss(const ModelConfig& m) {
  const ExpertsConfig& x = m.experts;
  if (m.positions != Positions::rotary) return "attention sinks without rotary positions";
  if (m.norm != NormKind::rms) return "attention sinks with a layer norm";
  if (m.latent.on) return "attention sinks with latent attention";
  if (m.qk_norm) return "attention sinks with norms of queries and keys";
  if (!m.linear_bias || !m.qkv_bias) return "attention sinks without biases";
  if (x.count == 0 || !all_have(m)) return "attention sinks in layers without experts";
  if (!m.gated || m.activation != Activation::quick_gelu || m.gate_limit == 0 || m.gate_offset != 1)
    return "attention sinks with gates other than quick_gelu's with a limit and an offset of 1";
  if (x.router.score != RouterScore::softmax || x.router.softmax_first || x.router.groups > 0 ||
      x.router.scaling != 1)
    return "attention sinks with weights of experts that are no softmax over the chosen";
  if (x.shared_hidden > 0 || x.latent > 0)
    return "attention sinks with shared experts, or with experts on fewer channels";
  return "";
}

GptType type_of_experts(const ModelConfig& m) {
  const bool softmax = m.experts.count > 0 && m.experts.router.score == RouterScore::softmax;
  if (has_glm_experts(m))
    return m.qk_norm_whole ? GptType::minimax_m2 : has_window(m) ? GptType::dots1 : GptType::glm4_moe;
  if (m.latent.on) return softmax ? GptType::deepseek_v2 : GptType::deepseek_v3;
  if (m.qk_norm_whole) return GptType::olmoe;
  if (m.qk_norm) return GptType::qwen3_moe;
  return m.qkv_bias ? GptType::qwen2_moe : GptType::mixtral;
}

std::string_view no_such_experts(const ModelConfig& m, GptType type) {
  if (m.experts.latent > 0) return "experts that work on fewer channels";
  return is_deepseek(type) ? no_deepseek(m, type) : no_softmax_experts(m, type);
}

void write_hub_experts(ordered_json& out, const ModelConfig& m, GptType type) {
  if (type == GptType::glm4_moe) {
    out["use_qk_norm"] = m.qk_norm;
    out["num_nextn_predict_layers"] = m.ahead.depths;
    return write_experts_as_deepseek(out, m);
  }
  if (type == GptType::dots1) return write_experts_as_deepseek(out, m);
  if (type == GptType::hunyuan_v1_moe) {
    out["num_experts"] = m.experts.count;
    out["moe_topk"] = m.experts.router.chosen;
    out["intermediate_size"] = m.experts.ffn_hidden;
    return;
  }
  const ExpertsConfig& x = m.experts;
  out[says_as_mixtral(type) ? "num_local_experts" : "num_experts"] = x.count;
  out["num_experts_per_tok"] = x.router.chosen;
  out["output_router_logits"] = false;
  if (type == GptType::gpt_oss) out["swiglu_limit"] = m.gate_limit;
  if (type == GptType::granitemoeshared) out["shared_intermediate_size"] = x.shared_hidden;
  if (says_as_mixtral(type)) {
    out["intermediate_size"] = x.ffn_hidden;
    return;
  }
  out["norm_topk_prob"] = !x.router.softmax_first;
  if (type == GptType::olmoe) {
    out["intermediate_size"] = x.ffn_hidden;
    return;
  }
  out["moe_intermediate_size"] = x.ffn_hidden;
  out["decoder_sparse_step"] = 1;
  out["mlp_only_layers"] = ordered_json::array();
  for (int layer = 0; layer < m.layers; ++layer)
    if (!x.at(layer)) out["mlp_only_layers"].push_back(layer);
  if (has_shared_gate(type)) out["shared_expert_intermediate_size"] = x.shared_hidden;
  if (type == GptType::qwen2_moe) out["qkv_bias"] = m.qkv_bias;
}

void write_hub_latent(ordered_json& out, const ModelConfig& m, GptType type) {
  const LatentConfig& l = m.latent;
  out["num_key_value_heads"] = m.heads;
  out["head_dim"] = l.turned_channels;
  out["q_lora_rank"] = l.query_rank > 0 ? ordered_json(l.query_rank) : ordered_json();
  out["kv_lora_rank"] = l.rank;
  out["qk_nope_head_dim"] = l.plain_channels;
  out["qk_rope_head_dim"] = l.turned_channels;
  out["v_head_dim"] = l.value_channels;
  out["moe_layer_freq"] = 1;
  write_experts_as_deepseek(out, m);
  if (type == GptType::deepseek_v2) {
    out["topk_method"] = m.experts.router.groups > 0 ? "group_limited_greedy" : "greedy";
    out["norm_topk_prob"] = false;
    return;
  }
  out["qk_head_dim"] = m.channels;
  out["rope_interleave"] = true;
  out["scoring_func"] = "sigmoid";
  out["topk_method"] = "noaux_tc";
  if (m.ahead.depths > 0) out["num_nextn_predict_layers"] = m.ahead.depths;
}

}  // namespace weft
