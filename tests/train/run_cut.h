// A tiny run under one layout or another.
#pragma once

#include <ostream>

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

}  // namespace weft::testing
