// Weights from a checkpoint into a model of another layout and precision.
#include <gtest/gtest.h>

#include <map>
#include <mutex>

#include "tests/support/refused.h"
#include "tests/support/temporary.h"
#include "tests/support/tiny.h"
#include "weft/checkpoint/find.h"
#include "weft/checkpoint/save.h"
#include "weft/comm/threads.h"
#include "weft/mesh/mesh.h"
#include "weft/model/gpt/gpt.h"
#include "weft/train/resume_weights.h"

using namespace weft;
using namespace weft::testing;
using support::TemporaryDirectory;

namespace {

/// A tiny model's weights on `tp` ranks, handed to `act` on each.
void on_ranks(int tp, Dtype compute, Weights::For purpose,
              const std::function<void(Weights&, Communicator&)>& act) {
  run_as_threads(tp, [&](Communicator& world) {
    const auto device = open_device("cpu", {.threads = 1});
    const ModelConfig config = tiny_gpt2();
    const ProcessMesh mesh(ParallelLayout({.tp = tp}), world);
    const Stage stage = kind_named("gpt").build(config, {.first_layer = 0, .layers = config.layers},
                                                {.tp = mesh.along(Axis::tp)}, *device);
    Weights weights([&](const VisitParameter& visit) { stage.each_parameter(visit); }, *device, compute,
                    purpose, {.mesh = &mesh});
    act(weights, world);
  });
}

/// A tiny model's weights from a seed, saved by two ranks.
void save_tiny(const std::filesystem::path& root, std::uint64_t seed) {
  on_ranks(2, Dtype::bf16, Weights::For::training, [&](Weights& weights, Communicator& world) {
    weights.initialize(seed);
    checkpoint::save(checkpoint::step_directory(root, 3), named_weights(weights), R"({"a": 1})", world);
  });
}

std::map<std::string, std::vector<double>> values_of(const Weights& weights) {
  std::map<std::string, std::vector<double>> out;
  for (const WeightBlock& block : weights.blocks())
    for (const WeightSlot& slot : block.slots)
      out[slot.parameter->name] = numbers(Weights::part(block.values, slot));
  return out;
}

}  // namespace

TEST(ResumeWeights, fill_a_model_of_another_layout_that_only_reads_them) {
  const TemporaryDirectory folder;
  save_tiny(folder.path(), 7);
  on_ranks(1, Dtype::bf16, Weights::For::reading, [&](Weights& weights, Communicator& world) {
    std::vector<std::string> notices;
    EXPECT_EQ(load_weights(checkpoint_step(folder.path(), notices), weights, world), R"({"a": 1})");
    const auto loaded = values_of(weights);
    weights.initialize(7);
    EXPECT_EQ(loaded, values_of(weights));
  });
}

TEST(ResumeWeights, fill_masters_and_what_layers_read) {
  const TemporaryDirectory folder;
  save_tiny(folder.path(), 7);
  on_ranks(4, Dtype::bf16, Weights::For::training, [&](Weights& weights, Communicator& world) {
    std::vector<std::string> notices;
    load_weights(checkpoint_step(folder / "step_00000003", notices), weights, world);
    std::vector<std::vector<double>> masters;
    for (const WeightBlock& block : weights.blocks()) masters.push_back(numbers(block.master));
    const auto loaded = values_of(weights);
    weights.initialize(7);
    EXPECT_EQ(loaded, values_of(weights));
    for (std::size_t i = 0; i < masters.size(); ++i)
      EXPECT_EQ(masters[i], numbers(weights.blocks()[i].master));
  });
}

TEST(ResumeWeights, of_a_directory_without_a_step_are_refused) {
  const TemporaryDirectory folder;
  std::vector<std::string> notices;
  EXPECT_EQ(refused([&] { (void)checkpoint_step(folder.path(), notices); }),
            folder.path().string() + ": no complete checkpoint: " + folder.path().string() +
                ": holds no directory of a step");
}
