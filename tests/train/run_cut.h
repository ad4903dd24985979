// A tiny run under one layout or another.
#pragma once

#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "tests/train/tiny_run.h"

namespace weft::testing {

struct RunCut {
  const char* name;
  int tp = 1, dp = 1, pp = 1, micro = 8;
  int zero = 0, cp = 1;
  bool exact = false;
  Precision precision = Precision::f32;
  int groups = 1;
};
inline void PrintTo(const RunCut& of, std::ostream* out) { *out << of.name; }

inline TrainConfig cut_as(const RunCut& cut, TrainConfig config) {
  config.parallel.tp = cut.tp;
  config.parallel.dp = cut.dp;
  config.parallel.pp = cut.pp;
  config.parallel.cp = cut.cp;
  config.parallel.zero = cut.zero;
  config.parallel.shard_groups = cut.groups;
  config.run.ranks = cut.tp * cut.cp * cut.dp * cut.pp;
  config.batch.micro = cut.micro;
  config.model.exact = cut.exact;
  config.model.precision = cut.precision;
  return completed(config);
}

/// Sums over ranks and tokens are rounded in another order: tests/equal/run.h tells by how much.
inline void expect_same_but_for_rounding(const Told& told, const Told& one, const RunCut& cut) {
  ASSERT_EQ(told.losses.size(), one.losses.size());
  for (std::size_t i = 0; i < one.losses.size(); ++i)
    EXPECT_NEAR(told.losses[i], one.losses[i], 2e-6) << cut.name;
}

inline void expect_same_bits(const Told& told, const Told& one, const std::string& name) {
  EXPECT_EQ(told.losses, one.losses) << name;
  EXPECT_EQ(told.norms, one.norms) << name;
  EXPECT_EQ(told.validations, one.validations) << name;
}

/// The last three of six steps, from a checkpoint of the third.
inline void expect_it_goes_on_to_the_bit(const TrainConfig& config) {
  const support::TemporaryDirectory folder;
  TrainConfig c = saving(config, folder.path());
  c.eval.interval = 0;
  const Told whole = train(completed(c));
  c.checkpoint.load = std::exchange(c.checkpoint.save, {});
  c.checkpoint.step = 3;
  const Told rest = train(completed(c));
  EXPECT_EQ(rest.losses, std::vector<double>(whole.losses.begin() + 3, whole.losses.end()));
}

}  // namespace weft::testing
