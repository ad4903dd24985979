// DeepSpeed's keys of layers that steps leave out, and of tokens that pass layers by.
#include <nlohmann/json.hpp>

#include "weft/base/error.h"
#include "weft/cli/dialect/deepspeed_rows.h"

namespace weft::cli::dialect::ds {
namespace {

using Json = nlohmann::json;
using enum Shape;

// Theirs is 1 where nobody says another.
void layers(Taking& t, const Key& key, const Json& value) {
  if (value == true && t.find("progressive_layer_drop.theta") == nullptr)
    fail(Kind::usage, key.path,
         " needs progressive_layer_drop.theta: without it DeepSpeed takes 1, which leaves no layer out");
}

constexpr std::string_view ltd = "data_efficiency.data_routing.random_ltd";

void nothing_more(Taking&, const Key&, const Json&) {}  // it switches on what stands in its block

void passing_by(Taking& t, const Key& key, const Json& value) {
  if (value == true && t.find(weft::text(ltd, ".random_ltd_layer_id")) == nullptr)
    fail(Kind::usage, key.path, " needs ", ltd,
         ".random_ltd_layer_id: which layers tokens pass by, counted from 0");
}

void layer_ids(Taking& t, const Key& key, const Json& value) {
  std::vector<std::string> words;
  for (const Json& one : value) {
    if (!one.is_number_integer())
      fail(Kind::usage, key.path, " is ", value.dump(), ", not a list of whole numbers");
    words.push_back(one.dump());
  }
  const Json* count = t.find(weft::text(ltd, ".random_ltd_layer_num"));
  if (count != nullptr && *count != value.size())
    fail(Kind::usage, ltd, ".random_ltd_layer_num ", count->dump(), ": random_ltd_layer_id names ",
         value.size(), " layers");
  t.set(key.path, "model.token_drop.layers", std::move(words));
}

constexpr std::string_view
    layers_on = R"({"progressive_layer_drop":{"enabled":true,"theta":0.5}})",
    ltd_on =
        R"({"data_efficiency":{"enabled":true,"data_routing":{"enabled":true,"random_ltd":{"enabled":true,)"
        R"("random_ltd_layer_id":[1],"random_ltd_schedule":{"min_value":64}}}}})",
    rates_on =
        R"({"data_efficiency":{"enabled":true,"data_routing":{"enabled":true,"random_ltd":{"enabled":true,)"
        R"("random_ltd_layer_id":[1],"layer_token_lr_schedule":{"enabled":true}}}}})",
    its_own = "weft's layers know their masks and the order of their dimensions",
    by_tokens = "a learning rate that goes by the tokens of layers";

// clang-format off
constexpr Key table[] = {
    beside(layers_on, does("progressive_layer_drop.enabled", flag, layers, "the two keys below count", "true")),
    beside(layers_on, sets("progressive_layer_drop.theta", real, "model.layer_drop.theta",
         "layer l of L is kept with a chance of 1 - l / L (1 - theta_t), theta_t falling from 1 to this", "0.8")),
    beside(layers_on, sets("progressive_layer_drop.gamma", real, "model.layer_drop.gamma",
         "how fast: theta_t = (1 - theta) exp(-gamma t) + theta", "0.01")),
    beside(ltd_on, does("data_efficiency.data_routing.enabled", flag, nothing_more, "the block below counts", "true")),
    beside(ltd_on, does("data_efficiency.data_routing.random_ltd.enabled", flag, passing_by, "some layers see a part of each sample's tokens, as the keys below say", "true")),
    beside(ltd_on, sets("data_efficiency.data_routing.random_ltd.total_layer_num", whole, "model.layers", "which --num-layers says too", "24")),
    beside(ltd_on, idle("data_efficiency.data_routing.random_ltd.random_ltd_layer_num", whole, "random_ltd_layer_id names as many", "1")),
    beside(ltd_on, does("data_efficiency.data_routing.random_ltd.random_ltd_layer_id", list, layer_ids, "`model.token_drop.layers`: counted from 0", "[1, 2]")),
    beside(ltd_on, idle("data_efficiency.data_routing.random_ltd.model_mask_name", text, its_own, "\"mask\"")),
    beside(ltd_on, idle("data_efficiency.data_routing.random_ltd.model_type", text, its_own, "\"decoder\"")),
    beside(ltd_on, idle("data_efficiency.data_routing.random_ltd.hidden_state_order", text, its_own, "\"seq_batch_dim\"")),
    beside(ltd_on, sets("data_efficiency.data_routing.random_ltd.random_ltd_schedule.min_value", whole, "model.token_drop.least", "tokens that these layers see in the first step", "128")),
    beside(ltd_on, sets("data_efficiency.data_routing.random_ltd.random_ltd_schedule.max_value", whole, "model.token_drop.most", "and at last", "2048")),
    beside(ltd_on, refuses("data_efficiency.data_routing.random_ltd.random_ltd_schedule.schedule_type", text, "numbers of tokens that grow in another way", "fixed_linear", "\"fixed_root\"")),
    beside(ltd_on, sets("data_efficiency.data_routing.random_ltd.random_ltd_schedule.schedule_config.require_steps", whole, "model.token_drop.steps", "steps until then", "200000")),
    beside(ltd_on, sets("data_efficiency.data_routing.random_ltd.random_ltd_schedule.schedule_config.seq_per_step", whole, "model.token_drop.multiple", "between, numbers are rounded down to multiples of it", "16")),
    beside(ltd_on, refuses("data_efficiency.data_routing.random_ltd.layer_token_lr_schedule.enabled", flag, by_tokens, "false", "true")),
    beside(rates_on, refuses("data_efficiency.data_routing.random_ltd.layer_token_lr_schedule.total_layer_tokens", whole, by_tokens, "", "10000")),
    beside(rates_on, refuses("data_efficiency.data_routing.random_ltd.layer_token_lr_schedule.warmup_type", text, by_tokens, "", "\"linear\"")),
    beside(rates_on, refuses("data_efficiency.data_routing.random_ltd.layer_token_lr_schedule.warmup_layer_tokens", whole, by_tokens, "", "100")),
};
// clang-format on

}  // namespace

std::vector<Key> left_out_keys() { return {std::begin(table), std::end(table)}; }

}  // namespace weft::cli::dialect::ds
