#include "weft/exchange/megatron/order.h"

#include <algorithm>
#include <span>
#include <string_view>

#include "weft/base/format.h"

namespace weft::exchange::megatron {
namespace {

// Norms stand in front of what they norm: apart without Transformer Engine, within the linear layer with it,
// where a layer's own parameters come behind its norm's. Before experts both have a norm apart.
constexpr std::string_view local_front[] = {"input_layernorm.weight",
                                            "input_layernorm.bias",
                                            "self_attention.linear_qkv.layer_norm_weight",
                                            "self_attention.linear_qkv.layer_norm_bias",
                                            "self_attention.core_attention.softmax_offset",
                                            "self_attention.linear_proj.weight",
                                            "self_attention.linear_proj.bias",
                                            "self_attention.linear_qkv.weight",
                                            "self_attention.linear_qkv.bias",
                                            "self_attention.linear_q_proj.weight",
                                            "self_attention.linear_q_down_proj.weight",
                                            "self_attention.linear_q_up_proj.weight",
                                            "self_attention.linear_kv_down_proj.weight",
                                            "self_attention.linear_kv_up_proj.weight"};
constexpr std::string_view engine_front[] = {"input_layernorm.weight",
                                             "input_layernorm.bias",
                                             "self_attention.core_attention.softmax_offset",
                                             "self_attention.linear_proj.weight",
                                             "self_attention.linear_proj.bias",
                                             "self_attention.linear_qkv.layer_norm_weight",
                                             "self_attention.linear_qkv.layer_norm_bias",
                                             "self_attention.linear_qkv.weight",
                                             "self_attention.linear_qkv.bias",
                                             "self_attention.linear_q_proj.weight",
                                             "self_attention.linear_q_down_proj.weight",
                                             "self_attention.linear_q_up_proj.layer_norm_weight",
                                             "self_attention.linear_q_up_proj.layer_norm_bias",
                                             "self_attention.linear_q_up_proj.weight",
                                             "self_attention.linear_kv_down_proj.weight",
                                             "self_attention.linear_kv_up_proj.layer_norm_weight",
                                             "self_attention.linear_kv_up_proj.layer_norm_bias",
                                             "self_attention.linear_kv_up_proj.weight"};
constexpr std::string_view between[] = {"self_attention.q_layernorm.weight",
                                        "self_attention.q_layernorm.bias",
                                        "self_attention.k_layernorm.weight",
                                        "self_attention.k_layernorm.bias",
                                        "self_attention.kv_layernorm.weight",
                                        "self_attention.kv_layernorm.bias",
                                        "pre_cross_attn_layernorm.weight",
                                        "pre_cross_attn_layernorm.bias",
                                        "cross_attention.linear_proj.weight",
                                        "cross_attention.linear_proj.bias",
                                        "cross_attention.linear_q.weight",
                                        "cross_attention.linear_q.bias",
                                        "cross_attention.linear_kv.weight",
                                        "cross_attention.linear_kv.bias",
                                        "pre_mlp_layernorm.weight",
                                        "pre_mlp_layernorm.bias",
                                        "mlp.linear_fc1.layer_norm_weight",
                                        "mlp.linear_fc1.layer_norm_bias",
                                        "mlp.linear_fc1.weight",
                                        "mlp.linear_fc1.bias",
                                        "mlp.linear_fc2.weight",
                                        "mlp.linear_fc2.bias",
                                        "mlp.router.weight",
                                        "mlp.router.bias"};
constexpr std::string_view behind[] = {"mlp.shared_experts.gate_weight",
                                       "mlp.shared_experts.linear_fc1.weight",
                                       "mlp.shared_experts.linear_fc2.weight"};
constexpr std::string_view expert[] = {"linear_fc1.weight", "linear_fc1.bias", "linear_fc2.weight",
                                       "linear_fc2.bias"};

/// Behind all layers.
constexpr std::string_view heads[] = {
    "lm_head.dense.weight",    "lm_head.dense.bias",          "lm_head.layer_norm.weight",
    "lm_head.layer_norm.bias", "lm_head.output_layer.weight", "lm_head.output_layer.bias",
    "output_layer.weight",     "output_layer.bias",           "binary_head.weight",
    "binary_head.bias",        "pooler.dense.weight",         "pooler.dense.bias"};

void add_norm(std::vector<std::string>& out, const std::string& name) {
  out.push_back(name + ".weight");
  out.push_back(name + ".bias");
}

void add_layer(std::vector<std::string>& out, const std::string& front, const ExpertRange& experts,
               const Order& order) {
  const auto add = [&](std::span<const std::string_view> names) {
    for (const std::string_view name : names) out.push_back(front + std::string(name));
  };
  const auto add_experts = [&](std::span<const std::string_view> names) {
    for (std::int64_t e = experts.first; e < experts.first + experts.count; ++e)
      for (const std::string_view name : names) out.push_back(text(front, "mlp.experts.", e, '.', name));
  };
  add(order.layers == Layers::local ? std::span<const std::string_view>(local_front) : engine_front);
  add(between);
  if (order.experts == Experts::one_by_one) {
    add_experts(expert);
  } else {
    add_experts(std::span(expert).first(2));
    add_experts(std::span(expert).last(2));
  }
  add(behind);
}

}  // namespace

std::vector<Order> orders_of(const Arguments& args) {
  std::vector<Order> out;
  for (const Layers layers : {Layers::transformer_engine, Layers::local})
    for (const Experts experts : {Experts::by_matrix, Experts::one_by_one, Experts::on_its_side})
      out.push_back({layers, experts});
  const Layers layers = args.word("transformer_impl", "transformer_engine") == "local"
                            ? Layers::local
                            : Layers::transformer_engine;
  const Experts grouped = layers == Layers::local || args.flag("moe_use_legacy_grouped_gemm")
                              ? Experts::on_its_side
                              : Experts::by_matrix;
  const Experts experts = args.flag("moe_grouped_gemm") ? grouped : Experts::one_by_one;
  std::ranges::stable_sort(out, std::greater(), [&](const Order& one) {
    return 2 * int(one.layers == layers) + int(one.experts == experts);
  });
  if (args.whole("num_experts") > 0) return out;
  std::erase_if(out, [&](const Order& one) { return one.experts != experts; });
  return out;
}

ModuleNames::ModuleNames(Family family, const Arguments& args)
    : family_(family), layers_(args.whole("num_layers")), further_(args.whole("mtp_num_layers")) {
  if (family != Family::t5) return;
  encoder_layers_ = args.whole("encoder_num_layers", layers_);
  layers_ += encoder_layers_;
}

std::vector<std::string> ModuleNames::before_layers() const {
  return {"embedding.word_embeddings.weight", "embedding.position_embeddings.weight",
          "embedding.tokentype_embeddings.weight", "encoder_relative_pos_emb.relative_attention_bias.weight",
          "decoder_relative_pos_emb.relative_attention_bias.weight"};
}

std::vector<std::string> ModuleNames::of_layer(std::int64_t layer, const ExpertRange& experts,
                                               const Order& order) const {
  std::vector<std::string> out;
  if (family_ == Family::gpt) {
    add_layer(out, text("decoder.layers.", layer, '.'), experts, order);
  } else if (family_ == Family::bert || layer < encoder_layers_) {
    add_layer(out, text("encoder.layers.", layer, '.'), experts, order);
    if (layer + 1 == encoder_layers_) add_norm(out, "encoder.final_layernorm");
  } else {
    add_layer(out, text("decoder.layers.", layer - encoder_layers_, '.'), experts, order);
  }
  return out;
}

std::vector<std::string> ModuleNames::behind_layers(const ExpertRange& experts, const Order& order) const {
  std::vector<std::string> out;
  add_norm(out, family_ == Family::bert ? "encoder.final_layernorm" : "decoder.final_layernorm");
  for (std::int64_t depth = 0; depth < further_; ++depth) {
    const std::string front = text("mtp.layers.", depth, '.');
    add_norm(out, front + "enorm");
    add_norm(out, front + "hnorm");
    out.push_back(front + "eh_proj.weight");
    add_layer(out, front + "transformer_layer.", experts, order);
    add_norm(out, front + "final_layernorm");
  }
  for (const std::string_view name : heads) out.emplace_back(name);
  return out;
}

bool is_parameter(const std::string& name) { return !name.ends_with("router.expert_bias"); }

}  // namespace weft::exchange::megatron
