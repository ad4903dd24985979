// Experts and latent attention in the words of Mixtral, Qwen, OLMoE and DeepSeek.
#include <algorithm>

#include "weft/model/gpt/hub.h"
#include "weft/model/hub_settings.h"

namespace weft {
namespace {

constexpr std::int64_t most_experts = 1 << 16;

bool is_qwen(GptType type) {
  return type == GptType::qwen2_moe || type == GptType::qwen3_moe || type == GptType::qwen3_next;
}

/// Of Qwen's without any, what is said of them is of no layer.
bool has_no_experts(GptType type, HubSettings& s) {
  const HubSettings::Json* count = s.find("num_experts");
  if (!is_qwen(type) || count == nullptr || *count != 0) return false;
  for (const char* name : {"num_experts_per_tok", "moe_intermediate_size", "shared_expert_intermediate_size",
                           "norm_topk_prob", "decoder_sparse_step", "mlp_only_layers", "num_local_experts"})
    (void)s.find(name);
  return true;
}

// transformers 5 writes Qwen3-MoE's number under Mixtral's name; published files have the other.
std::int64_t experts_in(GptType type, HubSettings& s) {
  if (says_as_deepseek(type)) return s.size("n_routed_experts", most_experts);
  const bool local = says_as_mixtral(type);
  const char* const usual = local ? "num_local_experts" : "num_experts";
  const char* const other = local ? "num_experts" : "num_local_experts";
  return s.find(usual) == nullptr && s.find(other) != nullptr ? s.size(other, most_experts)
                                                              : s.size(usual, most_experts);
}

/// Layers without experts that stand first, where nothing is said of them.
std::int64_t usual_dense(GptType type) {
  if (type == GptType::glm4_moe || type == GptType::glm4_moe_lite) return 1;
  return is_deepseek_v3(type) ? 3 : 0;
}

/// A list of words counts more than a number.
void read_words_of_layers(ModelConfig& m, HubSettings& s) {
  const HubSettings::Json* words = s.find("mlp_layer_types");
  if (words == nullptr) return;
  if (!words->is_array() || std::ssize(*words) != m.layers)
    s.refuse("mlp_layer_types", text("expected a list of ", m.layers, " words"));
  for (std::size_t layer = 0; layer < words->size(); ++layer) {
    const HubSettings::Json& word = (*words)[layer];
    if (word != "dense" && word != "sparse") s.refuse("mlp_layer_types", "weft knows dense and sparse");
    m.experts.layers[layer] = word == "sparse";
  }
}

// Layers that have none: Qwen names them and says how often others come, DeepSeek's stand first.
void read_layers(ModelConfig& m, GptType type, HubSettings& s) {
  m.experts.layers.assign(std::size_t(m.layers), 1);
  if (is_qwen(type)) {
    const std::int64_t every = s.size_or("decoder_sparse_step", 1);
    for (int layer = 0; layer < m.layers; ++layer)
      if ((layer + 1) % every != 0) m.experts.layers[std::size_t(layer)] = 0;
    if (const HubSettings::Json* dense = s.find("mlp_only_layers"))
      for (const HubSettings::Json& one : *dense) {
        if (!one.is_number_unsigned()) s.refuse("mlp_only_layers", "expected a list of layers");
        if (one.get<std::uint64_t>() < std::uint64_t(m.layers)) m.experts.layers[one.get<std::size_t>()] = 0;
      }
  }
  if (!says_as_deepseek(type)) return;
  s.must_be("moe_layer_freq", 1);
  const std::int64_t dense = s.whole("first_k_dense_replace", usual_dense(type), HubSettings::most_layers);
  for (int layer = 0; layer < m.layers && layer < dense; ++layer) m.experts.layers[std::size_t(layer)] = 0;
  if (type == GptType::glm4_moe_lite) read_words_of_layers(m, s);
}

double usual_scaling(GptType type) {
  if (type == GptType::glm4_moe_lite) return 1.8;
  return is_deepseek_v3(type) ? 2.5 : 1;
}

/// What it says beside is of layers that it has not.
void read_minimax(const RouterConfig& router, HubSettings& s) {
  if (router.chosen == 1) s.refuse("num_experts_per_tok", "and weft has no weight of 1 for one alone");
  for (const char* name : {"use_routing_bias", "use_qk_norm"}) s.must_be(name, true);
  for (const char* name : {"scoring_func", "shared_moe_mode"}) s.must_be(name, "sigmoid");
  s.must_be("qk_norm_type", "per_layer");
  s.must_be("shared_intermediate_size", 0);
  for (const char* name : {"attn_type_list", "layernorm_full_attention_beta",
                           "layernorm_linear_attention_beta", "layernorm_mlp_beta", "mlp_intermediate_size",
                           "mtp_transformer_layers", "num_mtp_modules", "use_mtp"})
    (void)s.find(name);
}

void read_sigmoid_router(RouterConfig& router, GptType type, HubSettings& s) {
  router.score = RouterScore::sigmoid;
  router.expert_bias = true;
  if (type == GptType::minimax_m2) return read_minimax(router, s);
  router.scaling = s.positive("routed_scaling_factor", usual_scaling(type));
  s.must_be("scoring_func", "sigmoid");
  s.must_be("topk_method", "noaux_tc");
  check_hub_weights(router, s);
  read_hub_groups(router, 2, s);
}

// Weights are scores over all experts; transformers divides them by nothing, whatever the file says.
void read_scaled_softmax_router(RouterConfig& router, HubSettings& s) {
  router.softmax_first = true;
  router.scaling = s.positive("routed_scaling_factor", 1);
  s.must_be("scoring_func", "softmax");
  s.must_be("norm_topk_prob", false);
  const std::string method = s.word("topk_method", "greedy");
  if (method == "group_limited_greedy") return read_hub_groups(router, 1, s);
  if (method != "greedy") s.refuse("topk_method", "weft knows greedy and group_limited_greedy");
  for (const char* name : {"n_group", "topk_group"}) (void)s.find(name);
}

void read_softmax_router(RouterConfig& router, GptType type, HubSettings& s) {
  // Softmax over all, of which the chosen are scaled to a sum of 1, is softmax over the chosen.
  router.softmax_first = !says_as_mixtral(type) && !s.yes("norm_topk_prob", type == GptType::qwen3_next);
}

// Newer versions of transformers have another name for it.
void read_further(ModelConfig& m, HubSettings& s) {
  const char* const name =
      s.find("num_nextn_predict_layers") != nullptr ? "num_nextn_predict_layers" : "num_mtp_layers";
  m.ahead.depths = int(s.whole(name, 0, most_depths));
}

// Settings of training: they change no logit.
void pass_over(HubSettings& s) {
  for (const char* name : {"router_aux_loss_coef", "router_jitter_noise", "output_router_logits",
                           "aux_loss_alpha", "seq_aux", "ep_size"})
    (void)s.find(name);
}

}  // namespace

// A group is as good as its best two to DeepSeek-V3, its best to V2, and its best k / groups kept to us.
void read_hub_groups(RouterConfig& router, int best, HubSettings& s) {
  router.groups = int(s.size_or("n_group", 1, most_experts));
  router.groups_kept = int(s.size_or("topk_group", 1, most_experts));
  if (router.groups_kept > router.groups) s.refuse("topk_group", "expected at most n_group");
  if (router.groups_kept == router.groups) {
    router.groups = router.groups_kept = 0;
    return;
  }
  if (router.chosen / router.groups_kept != best)
    s.refuse("topk_group", text("weft compares groups by their best ", router.chosen / router.groups_kept,
                                " experts, and transformers by their best ", best, ": of ", router.chosen,
                                " experts of a token it can only keep ", router.chosen / best, " groups"));
}

void check_hub_weights(const RouterConfig& router, HubSettings& s) {
  const bool sum_to_one = router.chosen > 1;
  if (s.yes("norm_topk_prob", true) != sum_to_one)
    s.refuse("norm_topk_prob", text("weft can only compute ", sum_to_one ? "true" : "false", " with ",
                                    router.chosen, sum_to_one ? " experts" : " expert", " of a token"));
}

void read_hub_experts(ModelConfig& m, GptType type, HubSettings& s) {
  if (has_no_experts(type, s)) return pass_over(s);
  if (type == GptType::hunyuan_v1_moe) return read_experts_of_hunyuan(m, s);
  ExpertsConfig& x = m.experts;
  x.count = int(experts_in(type, s));
  const bool own_width = !says_as_mixtral(type) && type != GptType::olmoe;
  x.ffn_hidden = own_width ? s.size("moe_intermediate_size", HubSettings::widest) : m.ffn_hidden;
  x.router.chosen = int(s.size("num_experts_per_tok", x.count));
  if (has_shared_gate(type)) {
    x.shared_hidden = s.size("shared_expert_intermediate_size", HubSettings::widest);
    x.shared_gate = true;
  }
  if (type == GptType::granitemoeshared)
    x.shared_hidden = s.whole("shared_intermediate_size", 0, HubSettings::widest);
  if (says_as_deepseek(type)) {
    const std::int64_t usual = type == GptType::deepseek_v2 ? 2 : 1;
    x.shared_hidden = s.whole("n_shared_experts", usual, most_experts) * x.ffn_hidden;
  }
  read_layers(m, type, s);
  if (chooses_by_sigmoids(type))
    read_sigmoid_router(x.router, type, s);
  else if (type == GptType::deepseek_v2)
    read_scaled_softmax_router(x.router, s);
  else if (type == GptType::qwen3_5_moe_text)
    s.must_be("norm_topk_prob", true);
  else
    read_softmax_router(x.router, type, s);
  if (type == GptType::olmoe) s.must_be_absent("clip_qkv");
  if (says_as_deepseek(type)) read_further(m, s);
  pass_over(s);
  const bool none = std::ranges::count(x.layers, 1) == 0;
  if (none) x = {};
}

// transformers multiplies by 1.702 in the sigmoid and adds one, whatever the name of the activation.
void read_hub_gates(ModelConfig& m, HubSettings& s) {
  m.sink = Sink::learned;
  m.activation = Activation::quick_gelu;
  m.gate_limit = s.positive("swiglu_limit", 7);
  m.gate_offset = 1;
  s.must_be("swiglu_alpha", 1.702);
  s.must_be("hidden_act", "silu");
  if (const HubSettings::Json* packed = s.find("quantization_config"))
    if (const auto method = packed->find("quant_method"); method == packed->end() || *method != "mxfp4")
      s.refuse("quantization_config", "weft reads mxfp4");
  for (const char* name : {"experts_per_token", "initial_context_length"}) (void)s.find(name);
}

void read_hub_latent(ModelConfig& m, HubSettings& s) {
  m.latent = {.on = true,
              .query_rank = s.size_or("q_lora_rank", 0, HubSettings::widest),
              .rank = s.size("kv_lora_rank", HubSettings::widest),
              .plain_channels = s.size("qk_nope_head_dim", HubSettings::widest),
              .turned_channels = s.size("qk_rope_head_dim", HubSettings::widest),
              .value_channels = s.size("v_head_dim", HubSettings::widest)};
  m.qk_norm = true;
  m.groups = 0;
  s.must_be("num_key_value_heads", m.heads);
  s.must_be("qk_head_dim", m.latent.plain_channels + m.latent.turned_channels);
  s.must_be("head_dim", m.latent.turned_channels);
  s.must_be("rope_interleave", true);
  if (m.norm_epsilon != epsilon_of_latents) m.latent.norm_epsilon = epsilon_of_latents;
}

}  // namespace weft
