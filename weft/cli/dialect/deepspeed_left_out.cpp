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

constexpr std::string_view drops = "tokens that pass layers by",
                           layers_on = R"({"progressive_layer_drop":{"enabled":true,"theta":0.5}})",
                           data_on = R"({"data_efficiency":{"enabled":true}})",
                           routing_on =
                               R"({"data_efficiency":{"enabled":true,"data_routing":{"enabled":true}}})",
                           ltd_on = R"({"data_efficiency":{"enabled":true,"data_routing":{"enabled":true,)"
                                    R"("random_ltd":{"enabled":true}}}})";

/// Of a block that is switched on: it has no value that asks for nothing.
constexpr Key part(std::string_view on, std::string_view path, Shape shape, std::string_view text,
                   std::string_view sample) {
  return beside(on, refuses(path, shape, text, "", sample));
}

// clang-format off
constexpr Key table[] = {
    beside(layers_on, does("progressive_layer_drop.enabled", flag, layers, "the two keys below count", "true")),
    beside(layers_on, sets("progressive_layer_drop.theta", real, "model.layer_drop.theta",
         "layer l of L is kept with a chance of 1 - l / L (1 - theta_t), theta_t falling from 1 to this", "0.8")),
    beside(layers_on, sets("progressive_layer_drop.gamma", real, "model.layer_drop.gamma",
         "how fast: theta_t = (1 - theta) exp(-gamma t) + theta", "0.01")),
    beside(data_on, refuses("data_efficiency.data_routing.enabled", flag, drops, "false", "true")),
    beside(routing_on, refuses("data_efficiency.data_routing.random_ltd.enabled", flag, drops, "false", "true")),
    part(ltd_on, "data_efficiency.data_routing.random_ltd.total_layer_num", whole, drops, "24"),
    part(ltd_on, "data_efficiency.data_routing.random_ltd.random_ltd_layer_num", whole, drops, "22"),
    part(ltd_on, "data_efficiency.data_routing.random_ltd.random_ltd_layer_id", list, drops, "[1]"),
    part(ltd_on, "data_efficiency.data_routing.random_ltd.model_mask_name", text, drops, "\"mask\""),
    part(ltd_on, "data_efficiency.data_routing.random_ltd.model_type", text, drops, "\"decoder\""),
    part(ltd_on, "data_efficiency.data_routing.random_ltd.hidden_state_order", text, drops, "\"seq_batch_dim\""),
    part(ltd_on, "data_efficiency.data_routing.random_ltd.random_ltd_schedule", map, drops, "{}"),
    part(ltd_on, "data_efficiency.data_routing.random_ltd.layer_token_lr_schedule", map, drops, "{}"),
};
// clang-format on

}  // namespace

std::vector<Key> left_out_keys() { return {std::begin(table), std::end(table)}; }

}  // namespace weft::cli::dialect::ds
