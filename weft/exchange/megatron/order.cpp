#include "weft/exchange/megatron/order.h"

#include <algorithm>
#include <span>
#include <string_view>

#include "weft/base/format.h"

namespace weft::exchange::megatron {
namespace {

// Norms stand in front of what they norm: apart without Transformer Engine, within the linear layer with it,
// where a layer's own parameters come behind its norm's. Before experts both have a norm apart.
constexpr std::string_view local_front[] = {"self_attention.linear_qkv.layer_norm_weight",
                                            "self_attention.linear_qkv.layer_norm_bias",
                                            "self_attention.core_attention.softmax_offset",
                                            "self_attention.linear_proj.weight",
                                            "self_attention.linear_proj.bias",
                                            "self_attention.linear_qkv.weight",
                                            "self_attention.linear_qkv.bias"};
constexpr std::string_view engine_front[] = {"self_attention.core_attention.softmax_offset",
                                             "self_attention.linear_proj.weight",
                                             "self_attention.linear_proj.bias",
                                             "self_attention.linear_qkv.layer_norm_weight",
                                             "self_attention.linear_qkv.layer_norm_bias",
                                             "self_attention.linear_qkv.weight",
                                             "self_attention.linear_qkv.bias"};
constexpr std::string_view between[] = {"self_attention.q_layernorm.weight",
                                        "self_attention.q_layernorm.bias",
                                        "self_attention.k_layernorm.weight",
                                        "self_attention.k_layernorm.bias",
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

std::vector<std::string> names_in_layer(std::int64_t layer, const ExpertRange& experts, const Order& order) {
  std::vector<std::string> out;
  const std::string front = text("decoder.layers.", layer, '.');
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
  return out;
}

bool is_parameter(const std::string& name) { return !name.ends_with("router.expert_bias"); }

}  // namespace weft::exchange::megatron
