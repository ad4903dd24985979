// States in files, updated while the next step goes on: whoever looks between finds what a run in memory has.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "tests/support/temporary.h"
#include "tests/train/tiny_run.h"

using namespace weft;
using namespace weft::testing;
using support::TemporaryDirectory;

namespace {

/// A run and what it saved, step by step.
struct Ran {
  explicit Ran(TrainConfig config) : told(train(saved_in(std::move(config), folder.path()))) {
    for (const int step : {2, 4, 6})
      tensors.push_back(tensors_of(folder.path() / text("step_0000000", step)));
  }
  static TrainConfig saved_in(TrainConfig config, const std::filesystem::path& folder) {
    config.checkpoint.save = folder.string();
    config.checkpoint.interval = 2;
    return completed(config);
  }
  TemporaryDirectory folder;
  Told told;
  std::vector<std::map<std::string, std::vector<double>>> tensors;
};

void expect_same(const Ran& a, const Ran& b) {
  EXPECT_EQ(a.told.losses, b.told.losses);
  EXPECT_EQ(a.told.norms, b.told.norms);
  EXPECT_EQ(a.told.scales, b.told.scales);
  EXPECT_EQ(a.told.validations, b.told.validations);
  EXPECT_EQ(a.tensors, b.tensors);
}

TrainConfig in_files(TrainConfig config, const TemporaryDirectory& spill) {
  config.optimizer.offload = {.on = true, .directory = spill.path()};
  return config;
}

}  // namespace

// Steps are computed twice, copies are compared, weights measured, and gradients clipped to next to nothing.
TEST(Offload, shows_every_look_between_steps_what_memory_would) {
  const TemporaryDirectory spill;
  TrainConfig config = tiny_run();
  config.optimizer.clip = 0.01;
  config.parallel.dp = config.run.ranks = 2;
  config.guard.replica_check_interval = 1;
  config.guard.rerun_interval = 2;
  config.log.params_norm = true;
  expect_same(Ran(in_files(config, spill)), Ran(config));
}

// The scale doubles after each step that was applied, and every second one is not.
TEST(Offload, skips_the_steps_that_memory_would) {
  const TemporaryDirectory spill;
  TrainConfig config = tiny_run();
  config.model.precision = Precision::f16;
  config.scaling.initial = 1 << 22;
  config.scaling.hysteresis = 1;
  config.scaling.window = 1;
  const Ran memory(config), files(in_files(config, spill));
  expect_same(files, memory);
  const auto& scales = memory.told.scales;
  EXPECT_FALSE(std::ranges::is_sorted(scales));
  EXPECT_FALSE(std::ranges::is_sorted(scales, std::greater()));
}
