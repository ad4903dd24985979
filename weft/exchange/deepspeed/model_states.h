// What the first rank's file says of the model: which tensors, in which order, and what goes by two names.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "weft/exchange/deepspeed/opened.h"

namespace weft::exchange::deepspeed {

struct ModelStates {
  struct Parameter {
    std::string name;
    Shape shape;
  };
  /// Of each group of the optimizer, or part of one, in the order in which its numbers lie; empty where no
  /// optimizer of DeepSpeed's cuts any.
  std::vector<std::vector<Parameter>> groups;
  std::vector<std::pair<std::string, std::string>> shared;  // a second name, and the first
  std::set<std::string> buffers;                            // in the file, and learned by nobody
  std::int64_t steps = 0, samples = 0;
  std::int64_t batch = 0, micro_batch = 0;  // 0: not said
  double clip = 0;
};
/// Fails with Kind::data where it says something that weft does not read.
ModelStates model_states(const Opened& file);

}  // namespace weft::exchange::deepspeed
