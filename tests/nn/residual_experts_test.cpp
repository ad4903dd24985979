// Experts beside an MLP, against experts beside a shared one whose outputs are weighed beforehand.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "tests/support/few_experts.h"
#include "tests/support/tiny.h"

using namespace weft;
using namespace weft::testing;

namespace {

using Visit = std::function<void(const std::string& name, std::span<float> values)>;

void each_weight(TinyModel& model, const Visit& visit) {
  for (WeightBlock& block : model.weights().blocks())
    for (const WeightSlot& slot : block.slots)
      visit(slot.parameter->name, Weights::part(block.master, slot).as<float>());
  model.weights().publish();
}

ModelConfig mixture() { return with_four_experts(tiny_llama()); }

ModelConfig completed(ModelConfig config) {
  complete(config);
  return config;
}

bool ends(const std::string& name, const char* part) { return name.find(part) != std::string::npos; }

}  // namespace

// exp(ln 3) is three times exp(0): three quarters of what the experts say, and one of what the MLP says.
TEST(ExpertsBesideAnMlp, are_weighed_by_the_softmax_of_two_logits) {
  const auto device = open_device("cpu", {.threads = 1});
  ModelConfig config = mixture();
  config.experts.residual = true;
  TinyModel residual(completed(config), *device);
  std::map<std::string, std::vector<float>> known;
  each_weight(residual, [&](const std::string& name, std::span<float> values) {
    if (ends(name, ".residual.gate.")) std::ranges::fill(values, 0.F);
    if (name.ends_with(".residual.gate.bias")) values[0] = std::log(3.F);
    known[name].assign(values.begin(), values.end());
  });
  config.experts.residual = false;
  config.experts.shared_hidden = 8;
  TinyModel shared(completed(config), *device);
  each_weight(shared, [&](const std::string& name, std::span<float> values) {
    std::string theirs = name;
    const std::size_t at = name.find(".shared.");
    if (at != std::string::npos) theirs.replace(at, 8, ".residual.");
    std::ranges::copy(known.at(theirs), values.begin());
    const bool down = name.ends_with(".down.weight") && (ends(name, ".experts.") || at != std::string::npos);
    for (float& value : values) value *= !down ? 1.F : at != std::string::npos ? 0.25F : 0.75F;
  });
  const Batch batch = tiny_batch(*device, config, 2);
  EXPECT_NEAR(residual.evaluate(batch), shared.evaluate(batch), 1e-4);  // a sum over sixteen tokens
}
