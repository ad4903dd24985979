// The steps of a run that may ask for most memory, as a plan counts them.
#pragma once

#include <cstdint>
#include <vector>

#include "weft/data/excerpt.h"
#include "weft/train/config.h"

namespace weft {

struct Moment {
  std::int64_t step = 1;
  data::Rows rows;  // of a pass
  int passes = 1;   // of a rank
  bool operator==(const Moment& other) const {
    return step == other.step && passes == other.passes && rows.count == other.rows.count &&
           rows.length == other.rows.length;
  }
};

/// Of a completed configuration that trains. Whole samples come first. Then, where they are more, the most
/// tokens in a pass; the most passes; and where tokens pass layers by, the most that such a layer sees while
/// it does not see all, so that hidden states come together before it and behind it. The last one has what
/// ranks send.
std::vector<Moment> moments_of(const TrainConfig& config);

/// The model as a plan builds it: no step leaves a layer out, and where steps of the run do, what each adds
/// is weighed as it is there.
ModelConfig with_all_layers(ModelConfig model);

}  // namespace weft
