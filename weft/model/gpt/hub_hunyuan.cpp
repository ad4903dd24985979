// Hunyuan 1, dense or with experts: a Llama whose queries and keys are normed behind turning.
#include <algorithm>
#include <cmath>

#include "weft/model/gpt/hub.h"
#include "weft/model/hub_settings.h"

namespace weft {
namespace {

/// Of every layer the same: a number, or a list of one for each.
std::int64_t same_in_all(const char* name, std::int64_t otherwise, std::int64_t greatest, HubSettings& s) {
  const HubSettings::Json* said = s.find(name);
  if (said == nullptr || !said->is_array()) return s.size_or(name, otherwise, greatest);
  const auto of_one = [](const HubSettings::Json& one) {
    return one.is_number_unsigned() ? one.get<std::uint64_t>() : 0;
  };
  if (said->empty() || of_one((*said)[0]) < 1 || of_one((*said)[0]) > std::uint64_t(greatest) ||
      std::ranges::any_of(*said, [&](const HubSettings::Json& one) { return one != (*said)[0]; }))
    s.refuse(name, text("weft can only compute the same from 1 to ", greatest, " in all layers"));
  return std::int64_t(of_one((*said)[0]));
}

bool has_experts_as_hunyuan(const ModelConfig& m) {
  const ExpertsConfig& x = m.experts;
  const RouterConfig& r = x.router;
  const bool plain = r.score == RouterScore::softmax && !r.softmax_first && !r.expert_bias && r.groups == 0 &&
                     r.scaling == 1;
  return plain && std::ranges::find(x.layers, 0) == x.layers.end() && !x.shared_gate && x.latent == 0 &&
         x.shared_hidden == x.ffn_hidden && !x.weigh_input && m.ahead.depths == 0;
}

}  // namespace

// What it says beside is of other programs, and of models that see.
void read_hunyuan(ModelConfig&, HubSettings& s) {
  s.must_be("use_qk_norm", true);
  for (const char* name : {"use_cla", "position_embedding_xdrope", "add_classification_head"})
    s.must_be(name, false);
  for (const char* name :
       {"attention_head_dim", "cla_share_factor", "class_num", "eod_token_id", "im_end_id", "im_newline_id",
        "im_start_id", "mask_init_id", "norm_type", "org_vocab_size", "pad_id", "pool_type", "sep_token_id",
        "text_end_id", "text_start_id", "use_rotary_pos_emb", "dense_list"})
    (void)s.find(name);
}

// "dynamic" with an alpha is no more than another base.
void stretch_base(RotaryConfig& rotary, std::int64_t channels, HubSettings& s) {
  const double alpha = s.positive("alpha", 1), d = double(channels);
  rotary.base *= std::pow(alpha, d / (d - 2));
  for (const char* name : {"factor", "beta_fast", "beta_slow", "mscale", "mscale_all_dim"})
    (void)s.find(name);
}

// All experts are as wide as the MLP that stands beside them.
void read_experts_of_hunyuan(ModelConfig& m, HubSettings& s) {
  constexpr std::int64_t most = 1 << 16;
  ExpertsConfig& x = m.experts;
  x.count = int(same_in_all("num_experts", 1, most, s));
  x.router.chosen = int(same_in_all("moe_topk", 1, x.count, s));
  x.ffn_hidden = x.shared_hidden = m.ffn_hidden;
  x.layers.assign(std::size_t(m.layers), 1);
  for (const auto& [name, only] :
       {std::pair{"num_shared_expert", std::int64_t{1}}, std::pair{"moe_intermediate_size", m.ffn_hidden}})
    if (same_in_all(name, only, HubSettings::widest, s) != only)
      s.refuse(name, text("weft can only compute ", only));
  for (const char* name :
       {"use_mixed_mlp_moe", "moe_layer_num_skipped", "moe_drop_tokens", "moe_random_routing_dropped_token",
        "capacity_factor", "router_aux_loss_coef", "output_router_logits", "group_limited_greedy", "n_group",
        "topk_group", "norm_topk_prob", "routed_scaling_factor", "num_experts_per_tok", "num_local_experts"})
    (void)s.find(name);
}

std::string_view no_hunyuan(const ModelConfig& m) {
  if (m.positions != Positions::rotary || m.norm != NormKind::rms || !m.gated ||
      m.norm_places != NormPlaces::before)
    return "norms of queries and keys behind turning, with other positions, norms or MLPs than Llama's";
  if (m.qk_norm_whole || m.qk_norm_plain || m.qk_norm_each)
    return "norms of queries and keys behind turning, with other gains than one for all heads";
  if (m.latent.on || m.delta.on || m.hybrid.on() || m.sink != Sink::none)
    return "norms of queries and keys behind turning, in layers of other kinds than attention and an MLP";
  if ((m.qkv_bias || m.linear_bias) && !biases_attention_alone(m))
    return "norms of queries and keys behind turning, with biases of MLPs or of no projection";
  if (has_window(m) || skips(m) || turns_a_part(m) || has_multipliers(m))
    return "norms of queries and keys behind turning, with windows, multipliers, or heads or layers that do "
           "not turn";
  if (m.experts.count > 0 && !has_experts_as_hunyuan(m))
    return "norms of queries and keys behind turning, with experts that are not in all layers, beside one as "
           "wide as each, and weighed by a softmax over the chosen";
  return "";
}

}  // namespace weft
