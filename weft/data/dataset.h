// Dataset: samples by number. The same number gives the same sample on every rank and in every run.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "weft/data/sample.h"

namespace weft::data {

/// Where a piece of a sample comes from.
struct Origin {
  std::string source;                // the prefix of the data set
  std::int64_t sequence = 0;         // its number there
  std::int64_t from = 0, count = 0;  // tokens
};

/// Const methods may be called by many threads at once.
class Dataset {
 public:
  virtual ~Dataset() = default;
  virtual std::int64_t size() const = 0;
  /// Sample i takes the place of what `into` held, whose memory is used again.
  virtual void fill(std::int64_t i, Sample& into) const = 0;
  Sample get(std::int64_t i) const {
    Sample sample;
    fill(i, sample);
    return sample;
  }
  /// The pieces that sample i is made of, in order.
  virtual std::vector<Origin> origins(std::int64_t i) const = 0;
};

}  // namespace weft::data
