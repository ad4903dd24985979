// DeepSpeed's keys of optimizers.
#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>

#include "weft/base/error.h"
#include "weft/base/format.h"
#include "weft/cli/dialect/deepspeed_rows.h"

namespace weft::cli::dialect::ds {
namespace {

using Json = nlohmann::json;
using enum Shape;

/// Theirs, and ours.
struct Rule {
  std::string_view name, kind;
};
constexpr std::array rules{Rule{"adam", "adam"},
                           Rule{"adamw", "adam"},
                           Rule{"sgd", "sgd"},
                           Rule{"lamb", "lamb"},
                           Rule{"lion", "lion"},
                           Rule{"muon", "muon"},
                           Rule{"onebitadam", "onebitadam"},
                           Rule{"zerooneadam", "zerooneadam"},
                           Rule{"onebitlamb", "onebitlamb"}};

std::string rule_in(const Taking& t) { return lower(t.word_at("optimizer.type", "")); }

/// What torch's and DeepSpeed's optimizers take where nothing is said, and Megatron's flags do not.
void usual_numbers(Taking& t, std::string_view rule) {
  t.usual("optimizer.weight_decay", "0");
  if (rule == "sgd") t.usual("optimizer.momentum", "0");
  if (rule == "lion") {
    t.usual("optimizer.lion.beta1", "0.9");
    t.usual("optimizer.lion.beta2", "0.99");
  }
  if (rule != "muon") return;
  t.usual("optimizer.muon.momentum", "0.95");
  t.usual("optimizer.muon.nesterov", "true");
  t.usual("optimizer.muon.scale", "shape_scaling");
  t.usual("optimizer.muon.rounds", "simple");
}

void optimizer(Taking& t, const Key& key, const Json& value) {
  const std::string name = lower(value.get<std::string>());
  const auto at = std::ranges::find_if(rules, [&](const Rule& rule) { return rule.name == name; });
  if (at == rules.end())
    fail(Kind::usage, key.path, " ", value.get<std::string>(),
         ": weft has Adam, AdamW, SGD, Lamb, Lion, Muon, OneBitAdam, ZeroOneAdam and OneBitLamb");
  t.set(key.path, "optimizer.kind", {std::string(at->kind)});
  usual_numbers(t, name);
}

/// A parameter of some of the optimizers, and the fields that it is there: a list gives one to each.
struct Parameter {
  std::string_view key, rule, field, second{};
};
constexpr std::string_view adams = "adam adamw lamb muon onebitadam zerooneadam onebitlamb", any = "",
                           trusting = "lamb onebitlamb";
constexpr Parameter parameters[] = {
    {"lr", any, "rate.peak"},
    {"weight_decay", any, "optimizer.weight_decay"},
    {"betas", adams, "optimizer.beta1", "optimizer.beta2"},
    {"betas", "lion", "optimizer.lion.beta1", "optimizer.lion.beta2"},
    {"eps", adams, "optimizer.epsilon"},
    {"momentum", "sgd", "optimizer.momentum"},
    {"momentum", "muon", "optimizer.muon.momentum"},
    {"nesterov", "muon", "optimizer.muon.nesterov"},
    {"ns_steps", "muon", "optimizer.muon.steps"},
    {"adam_w_mode", "adam", "optimizer.decoupled_decay"},
    {"bias_correction", "lamb", "optimizer.lamb.bias_correction"},
    {"eps_inside_sqrt", "lamb", "optimizer.lamb.epsilon_inside"},
    {"max_coeff", trusting, "optimizer.lamb.most"},
    {"min_coeff", trusting, "optimizer.lamb.least"},
    {"freeze_step", "onebitadam onebitlamb", "optimizer.onebit.freeze"},
    {"coeff_beta", "onebitlamb", "optimizer.onebit.keep"},
    {"factor_max", "onebitlamb", "optimizer.onebit.most_factor"},
    {"factor_min", "onebitlamb", "optimizer.onebit.least_factor"},
    {"factor_threshold", "onebitlamb", "optimizer.onebit.factor_step"},
    {"var_freeze_step", "zerooneadam", "optimizer.zeroone.freeze"},
    {"var_update_scaler", "zerooneadam", "optimizer.zeroone.variance_steps"},
    {"local_step_scaler", "zerooneadam", "optimizer.zeroone.local_steps"},
    {"local_step_clipper", "zerooneadam", "optimizer.zeroone.most_local"},
};

bool is_of(std::string_view rules_of, std::string_view rule) {
  if (rules_of.empty()) return true;
  return std::ranges::count(split(rules_of, ' '), rule) > 0;
}

// Of an optimizer that has no such parameter, only the value that asks for nothing goes.
void parameter(Taking& t, const Key& key, const Json& value) {
  const std::string rule = rule_in(t);
  if (rule.empty()) fail(Kind::usage, key.path, " needs optimizer.type: which optimizer it is for");
  const std::string_view name = key.path.substr(key.path.rfind('.') + 1);
  const auto at = std::ranges::find_if(
      parameters, [&](const Parameter& one) { return one.key == name && is_of(one.rule, rule); });
  if (at == std::end(parameters)) {
    if (std::ranges::count(split(key.harmless, '|'), number(value)) > 0) return;
    fail(Kind::usage, key.path, " ", number(value), ": ", rule, " has no such parameter here: ",
         key.harmless.empty() ? "leave it out" : weft::text("only ", key.harmless, " is fine"));
  }
  if (at->second.empty()) return t.set(key.path, at->field, {number(value)});
  if (value.size() != 2 || !value[0].is_number() || !value[1].is_number())
    fail(Kind::usage, key.path, " is ", value.dump(), ", not two numbers");
  t.set(key.path, at->field, {number(value[0])});
  t.set(key.path, at->second, {number(value[1])});
}

constexpr std::string_view adam = R"({"optimizer":{"type":"Adam"}})", sgd = R"({"optimizer":{"type":"SGD"}})",
                           lamb = R"({"optimizer":{"type":"Lamb"}})",
                           muon = R"({"optimizer":{"type":"Muon"}})",
                           bit_adam = R"({"optimizer":{"type":"OneBitAdam"}})",
                           bit_lamb = R"({"optimizer":{"type":"OneBitLamb"}})",
                           zero_one = R"({"optimizer":{"type":"ZeroOneAdam"}})",
                           own_way = "there is one implementation",
                           exchange = "ranks speak through what started them";

/// A parameter of optimizers: `harmless` goes where an optimizer has none of it.
constexpr Key param(std::string_view path, Shape shape, std::string_view text, std::string_view sample,
                    std::string_view harmless = {}) {
  return {
      .path = path, .shape = shape, .text = text, .harmless = harmless, .take = parameter, .sample = sample};
}

// clang-format off
constexpr Key optimizers[] = {
    does("optimizer.type", text, optimizer,
         "`optimizer.kind`: Adam and AdamW, SGD, Lamb, Lion, Muon, OneBitAdam, ZeroOneAdam, OneBitLamb, in small letters too; "
         "a decay that is not said is 0 then, as DeepSpeed has it", "\"Lamb\""),
    beside(adam, param("optimizer.params.lr", real, "`rate.peak`", "0.0003")),
    beside(adam, param("optimizer.params.betas", list, "`optimizer.beta1`, `optimizer.beta2`; Lion's are `optimizer.lion.beta1`, `.beta2`", "[0.8, 0.95]")),
    beside(adam, param("optimizer.params.eps", real, "`optimizer.epsilon`", "1e-6")),
    beside(adam, param("optimizer.params.weight_decay", real, "`optimizer.weight_decay`", "0.1")),
    beside(adam, param("optimizer.params.adam_w_mode", flag,
         "Adam: `optimizer.decoupled_decay`; true where it is not said, as DeepSpeed has it", "false", "true")),
    beside(sgd, param("optimizer.params.momentum", real, "SGD: `optimizer.momentum`, Muon: `optimizer.muon.momentum`", "0.8")),
    beside(muon, param("optimizer.params.nesterov", flag, "Muon: `optimizer.muon.nesterov`; for others only false", "false", "false")),
    beside(muon, param("optimizer.params.ns_steps", whole, "Muon: `optimizer.muon.steps`", "6")),
    beside(lamb, param("optimizer.params.bias_correction", flag, "Lamb: `optimizer.lamb.bias_correction`; for others only true", "false", "true")),
    beside(lamb, param("optimizer.params.eps_inside_sqrt", flag, "Lamb: `optimizer.lamb.epsilon_inside`; for others only false", "true", "false")),
    beside(lamb, param("optimizer.params.max_coeff", real, "`optimizer.lamb.most`", "5")),
    beside(lamb, param("optimizer.params.min_coeff", real, "`optimizer.lamb.least`", "0.1")),
    beside(bit_adam, param("optimizer.params.freeze_step", whole, "`optimizer.onebit.freeze`", "20")),
    beside(bit_lamb, param("optimizer.params.coeff_beta", real, "`optimizer.onebit.keep`", "0.8")),
    beside(bit_lamb, param("optimizer.params.factor_max", real, "`optimizer.onebit.most_factor`", "3")),
    beside(bit_lamb, param("optimizer.params.factor_min", real, "`optimizer.onebit.least_factor`", "0.6")),
    beside(bit_lamb, param("optimizer.params.factor_threshold", real, "`optimizer.onebit.factor_step`", "0.2")),
    beside(zero_one, param("optimizer.params.var_freeze_step", whole, "`optimizer.zeroone.freeze`", "20")),
    beside(zero_one, param("optimizer.params.var_update_scaler", whole, "`optimizer.zeroone.variance_steps`", "8")),
    beside(zero_one, param("optimizer.params.local_step_scaler", whole, "`optimizer.zeroone.local_steps`", "100")),
    beside(zero_one, param("optimizer.params.local_step_clipper", whole, "`optimizer.zeroone.most_local`", "8")),
    beside(sgd, refuses("optimizer.params.dampening", real, "momentum that is damped", "0", "0.1")),
    beside(adam, refuses("optimizer.params.amsgrad", flag, "second moments that never shrink", "false", "true")),
    beside(bit_adam, refuses("optimizer.params.max_grad_norm", real, "a norm of the optimizer's own; gradient_clipping is the key", "0", "1")),
    beside(muon, refuses("optimizer.params.muon_lr", real, "a learning rate for matrices alone; --decoupled-lr is one for embeddings", "", "0.01")),
    beside(muon, refuses("optimizer.params.adam_lr", real, "a learning rate for all but matrices; --decoupled-lr is one for embeddings", "", "0.01")),
    beside(muon, refuses("optimizer.params.ns_method", text, "another way to make matrices orthogonal", "standard", "\"gram\"")),
    beside(adam, idle("optimizer.params.torch_adam", flag, own_way, "true")),
    beside(adam, idle("optimizer.params.fp32_optimizer_states", flag, own_way, "true")),
    beside(bit_adam, idle("optimizer.params.cuda_aware", flag, exchange, "true")),
    beside(bit_adam, idle("optimizer.params.comm_backend_name", text, exchange, "\"nccl\"")),
    beside(adam, idle("optimizer.legacy_fusion", flag, own_way, "true")),
};
// clang-format on

}  // namespace

std::vector<Key> rule_keys() { return {std::begin(optimizers), std::end(optimizers)}; }

}  // namespace weft::cli::dialect::ds
